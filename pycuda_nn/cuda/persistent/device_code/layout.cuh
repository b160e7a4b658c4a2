// Memory layout of the persistent kernel: constants of the network, the exchange between blocks,
// shared memory. The plan (plan.py) defines the PLAN_ macros. Layers count from 0, hidden layers
// from 1: layer l leads from hidden layer l (0: the input) to hidden layer l + 1.

constexpr int LAYERS = PLAN_LAYERS, HIDDEN = LAYERS - 1;
constexpr int ROW_GROUPS = PLAN_ROW_GROUPS, COLUMN_GROUPS = PLAN_COLUMN_GROUPS;
constexpr int BLOCKS = ROW_GROUPS * COLUMN_GROUPS;
constexpr int ROWS = PLAN_ROWS;  // rows of the minibatch in a group of blocks
// Rows of the minibatch, and with the padding: copies of the last row, without loss and gradient.
constexpr int EXAMPLES = PLAN_EXAMPLES, BATCH = ROWS * ROW_GROUPS;
constexpr int CHUNK = PLAN_CHUNK;  // rows of a weight gradient in shared memory
constexpr int CHUNKS = BATCH / CHUNK;
constexpr int MOMENTS = PLAN_MOMENTS;    // of a parameter: velocity, or Adam's two
constexpr bool DROPOUT = PLAN_DROPOUT;   // whether elements of the hidden layers are dropped
constexpr bool SLOPES = PLAN_SLOPES;     // whether slopes are stored: they need more than the value
constexpr int TARGETS = PLAN_TARGETS;    // words of the target of a row

constexpr int WARPS = 8, WORKERS = 32 * WARPS, SERVERS = 128, THREADS = WORKERS + SERVERS;
constexpr int TALL = ROWS > 16 ? 2 : 1;     // tiles of 16 rows that a warp multiplies
constexpr int ROW_WARPS = ROWS / (16 * TALL);  // warps that share the rows
constexpr int DEEP = WARPS / ROW_WARPS;        // warps that share the depth of a product

__host__ __device__ constexpr int at_least(int a, int b) { return a > b ? a : b; }
__host__ __device__ constexpr int at_most(int a, int b) { return a < b ? a : b; }
__host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
__host__ __device__ constexpr int power_of_2(int n) { return n < 2 ? 1 : 2 * power_of_2((n + 1) / 2); }

// Rows of a chunk of n whose products are summed by mma; sums of more rows lose accuracy.
__host__ __device__ constexpr int span(int n, int rows = 96) {
  return rows < 48 ? n : n % rows ? span(n, rows - 16) : rows;
}

// Pitch of rows in shared memory, without bank conflicts: rows that are read by 16 bytes per lane
// start 64 bytes apart (mod 128), rows that are read as 8x8 matrices an odd multiple of 16 bytes.
__host__ __device__ constexpr int pitch_of_lanes(int n) {
  return n + (12 * PIECE - n % (8 * PIECE)) % (8 * PIECE);
}
__host__ __device__ constexpr int pitch_of_matrices(int n) { return n / 8 % 2 ? n : n + 8; }

// Variable templates, not functions: they are constants wherever the kernel uses them.
constexpr int SIZES[] = {PLAN_SIZES}, WIDTHS[] = {PLAN_WIDTHS}, FIRST_BLOCKS[] = {PLAN_FIRST_BLOCK};
constexpr int TILE_INS[] = {PLAN_TILE_IN}, TILE_OUTS[] = {PLAN_TILE_OUT};
template <int h> constexpr int size = SIZES[h];    // padded size of a layer
template <int h> constexpr int width = WIDTHS[h];  // size without padding
constexpr int CLASSES = width<LAYERS>, OUTPUTS = size<LAYERS>;

// ---- the parameters: weights (in, out) of all layers, then all biases
template <int l> constexpr int weights_at = weights_at<l - 1> + size<l - 1> * size<l>;
template <> constexpr int weights_at<0> = 0;
template <int l> constexpr int bias_at = bias_at<l - 1> + size<l>;
template <> constexpr int bias_at<0> = 0;

// ---- tiles of the weights, (out, in): each belongs to one block, each fragment to one warp
template <int l> constexpr int first_block = FIRST_BLOCKS[l];
template <int l> constexpr int tile_in = TILE_INS[l];
template <int l> constexpr int tile_out = TILE_OUTS[l];
template <int l> constexpr int tiles_across = ceil_div(size<l>, tile_in<l>);
template <int l> constexpr int tiles = tiles_across<l> * ceil_div(size<l + 1>, tile_out<l>);
template <int l> constexpr int warps_down = tile_out<l> / 16;
template <int l> constexpr int warps_across = WARPS / warps_down<l>;
template <int l>  // the last layer is updated first, then from the first layer; LAYERS: none
constexpr int updated_after = l == HIDDEN ? 0 : l + 1 < HIDDEN ? l + 1 : LAYERS;
template <int l> constexpr int fragments = ceil_div(tile_in<l> / 8, warps_across<l>);

// ---- strips of columns of a hidden layer: tiles of 16 per strip, and most strips of a block
template <int h> constexpr int strip =
    TALL == 1 && size<h> % 32 == 0 && size<h> / 16 > COLUMN_GROUPS ? 2 : 1;
template <int h> constexpr int share = ceil_div(size<h> / 16 / strip<h>, COLUMN_GROUPS);
constexpr int ROW_PAIRS = ROWS * 8;  // pairs of neighbours in a tile

// ---- the exchange: three buffers, used by the steps in turn
template <int h> constexpr int hidden_at = hidden_at<h - 1> + BATCH * size<h - 1>;
template <> constexpr int hidden_at<1> = 0;
template <int h> constexpr int delta_at = delta_at<h - 1> + BATCH * size<h - 1>;
template <> constexpr int delta_at<1> = hidden_at<LAYERS>;  // gradients of z, times the batch size
template <int l> constexpr int forward_at = delta_at<LAYERS + 1> + weights_at<l>;  // W (out, in)
template <int l>  // W (in, out) of the layers between hidden layers
constexpr int backward_at = forward_at<LAYERS> + weights_at<l> - weights_at<1>;
constexpr int slopes_at = backward_at<HIDDEN>;  // of the last hidden layer
constexpr int WORDS = (slopes_at + (SLOPES ? BATCH * size<HIDDEN> : 0)) / WORD;  // followed by floats: biases, a loss per row group
constexpr int TURN = (WORDS + bias_at<LAYERS> + ROW_GROUPS + 63) / 64 * 64;  // in words

struct Turn {
  unsigned* base;
  __device__ T* data(int at) const { return (T*)base + at; }
  __device__ unsigned* biases(int at) const { return base + WORDS + at; }
  __device__ unsigned* loss(int group) const { return base + WORDS + bias_at<LAYERS> + group; }
};

// ---- shared memory
template <int h> constexpr int widest = at_least(size<h>, widest<h + 1>);
template <> constexpr int widest<LAYERS> = 0;
constexpr int INPUT_PITCH = pitch_of_lanes(size<0>), HIDDEN_PITCH = pitch_of_matrices(widest<1>);
constexpr int OUTPUT_PITCH = OUTPUTS + PIECE, OUTPUT_WEIGHTS_PITCH = pitch_of_matrices(size<HIDDEN>);
constexpr int SUM_PITCH = TALL == 1 ? 40 : 24;
template <int h> constexpr int own_at = own_at<h - 1> + share<h - 1> * strip<h - 1> * ROW_PAIRS;
template <> constexpr int own_at<1> = 0;
constexpr int MASKS = DROPOUT ? own_at<LAYERS> / 8 : 8;  // of 16 elements

// Operands of the weight gradients: all layers side by side, with the deltas in the memory of the
// rows of a hidden layer; or two chunks in turn. The inputs of the first layer are separate.
template <int l> constexpr int delta_pitch = pitch_of_matrices(tile_out<l>);
template <int l> constexpr int input_pitch = pitch_of_matrices(tile_in<l>);
template <int l> constexpr int pair_size = CHUNK * (delta_pitch<l> + input_pitch<l>);
template <int l> constexpr int widest_pair = at_least(pair_size<l>, widest_pair<l + 1>);
template <> constexpr int widest_pair<LAYERS> = 0;
template <int l> constexpr int deltas_at = deltas_at<l - 1> + CHUNK * delta_pitch<l - 1>;
template <> constexpr int deltas_at<0> = 0;
template <int l> constexpr int inputs_at = inputs_at<l - 1> + CHUNK * input_pitch<l - 1>;
template <> constexpr int inputs_at<1> = at_least(ROWS * HIDDEN_PITCH, deltas_at<LAYERS>);
constexpr int STAGE = CHUNKS > 1 ? at_least(ROWS * HIDDEN_PITCH, 2 * widest_pair<0>)
                                 : inputs_at<LAYERS>;
template <int l> constexpr int biases_at = biases_at<l - 1> + tile_out<l - 1>;
template <> constexpr int biases_at<0> = 0;

struct Parameter { float value, moments[MOMENTS]; };

struct alignas(16) Shared {
  T input[ROWS * INPUT_PITCH];                         // rows of this step, later of the next
  T columns[CHUNKS > 1 ? 8 : CHUNK * input_pitch<0>];  // of the input, all rows of the minibatch
  T hidden[STAGE];                                     // rows of a hidden layer, later operands
  T slopes[SLOPES ? ROWS * HIDDEN_PITCH : 8];          // of the last hidden layer
  T output_weights[OUTPUTS * OUTPUT_WEIGHTS_PITCH];
  T output[ROWS * OUTPUT_PITCH];         // gradient of the logits
  float sums[2][DEEP][ROWS][SUM_PITCH];  // parts of a product
  Pair own[own_at<LAYERS>];              // strips of the hidden layers of this block, or slopes
  Parameter biases[biases_at<LAYERS>];   // of this block
  float losses[ROWS];
  int index[2][BATCH];
  unsigned targets[2][ROWS * TARGETS];   // class numbers, or floats
  unsigned short masks[2][MASKS];        // of the elements in `own` that are kept
};
static_assert(sizeof(Shared) <= PLAN_SHARED_BYTES, "the plan counts less shared memory");

struct Persistent {  // argument of the kernel
  const T* x;
  const unsigned* y;
  const int* order;
  const float* rates;
  float *params, *first, *second, *losses;
  const long long* clock;  // clock[1]: number of steps before this epoch
  unsigned* exchange;
  int* counter;
  long long* profile;
  unsigned long long seed, purpose;
  int first_step, n_steps;
  unsigned threshold;  // an element is dropped if its 16 bits are below it
  float scale;         // of the elements that are kept
  float momentum, beta2, eps, l2;
};
