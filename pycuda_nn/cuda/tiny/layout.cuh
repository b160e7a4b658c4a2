// Constants and shared memory of the tiny kernel. The plan (plan.py) defines the PLAN_ macros. Layers count from
// 0, their inputs and outputs too: layer l leads from values h = l (0: the rows) to values h = l + 1.
// Needs common.cuh.

constexpr int LAYERS = PLAN_LAYERS, BATCH = PLAN_BATCH, BLOCKS = PLAN_BLOCKS, THREADS = PLAN_THREADS;
constexpr int WARPS = THREADS / 32, MOMENTS = OPTIMIZER == 2 ? 2 : 1;
typedef PLAN_X X;            // numbers of the rows in global memory
typedef PLAN_TARGET Target;  // int for classes

struct alignas(16) Four { float at[4]; };

__host__ __device__ constexpr int at_least(int a, int b) { return a > b ? a : b; }
__host__ __device__ constexpr int at_most(int a, int b) { return a < b ? a : b; }
__host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
__host__ __device__ constexpr int fours(int n) { return (n + 3) / 4 * 4; }
__host__ __device__ constexpr int power_up(int n) { return n < 2 ? 1 : 2 * power_up((n + 1) / 2); }
__host__ __device__ constexpr int power_down(int n) { return n < 2 ? 1 : 2 * power_down(n / 2); }
__host__ __device__ constexpr int odd_fours(int n) { return 4 * ((fours(n) / 4) | 1); }  // no bank conflicts

constexpr int WIDTHS[] = {PLAN_WIDTHS}, SIZES[] = {PLAN_SIZES};
template <int h> constexpr int width = WIDTHS[h];
template <int h> constexpr int size = SIZES[h];  // padded, in global memory
constexpr int OUTPUTS = width<LAYERS>, TARGETS = PLAN_TARGETS;

// Rows of the minibatch in a block. The last block has fewer, and buffers have whole fours of rows; a row that is not
// there has the gradient 0.
constexpr int SHARE = ceil_div(BATCH, BLOCKS), ROWS = fours(SHARE);
constexpr int LANES = at_most(32, power_up(OUTPUTS)), WARP_ROWS = 32 / LANES;  // of a row in the loss; rows of a warp
constexpr int LOSS_ROWS = ceil_div(ROWS, WARP_ROWS) * WARP_ROWS, LOSS_WARPS = at_most(WARPS, LOSS_ROWS / WARP_ROWS);

// Values (rows, pitch): column `ones` is 1, so that row `ones` of the weights is the bias and needs no code.
template <int h> constexpr int ones = fours(width<h>);
template <int h> constexpr int pitch = odd_fours(ones<h> + 4);
template <int l> constexpr int weight_pitch = odd_fours(width<l + 1>);
template <int l> constexpr int weights_at = weights_at<l - 1> + (ones<l - 1> + 4) * weight_pitch<l - 1>;
template <> constexpr int weights_at<0> = 0;
constexpr int PARAMS = weights_at<LAYERS>;

// Parameters that a block updates, with their moments in its shared memory.
constexpr int SLICE = fours(ceil_div(PARAMS, BLOCKS));

// ---- shared memory, in words of 4 bytes
constexpr bool KEEPS_Z = ACTIVATION == 3;
constexpr int MOMENTS_AT = PARAMS, X_AT = MOMENTS_AT + MOMENTS * SLICE;
constexpr int X_SIZE = ROWS * pitch<0>;
template <int h> constexpr int hidden_at = hidden_at<h - 1> + (h > 1 ? ROWS * pitch<h - 1> : 0);
template <> constexpr int hidden_at<1> = X_AT + 2 * X_SIZE;
template <int h> constexpr int z_at = z_at<h - 1> + (KEEPS_Z && h > 1 ? ROWS * pitch<h - 1> : 0);
template <> constexpr int z_at<1> = hidden_at<LAYERS>;
template <int h> constexpr int delta_at = delta_at<h - 1> + ROWS * pitch<h - 1>;
template <> constexpr int delta_at<1> = z_at<LAYERS>;
constexpr int LOGITS_AT = delta_at<LAYERS> + LOSS_ROWS * pitch<LAYERS>;
constexpr int Y_AT = LOGITS_AT + LOSS_ROWS * pitch<LAYERS>, Y_SIZE = fours(LOSS_ROWS * TARGETS);
constexpr int PLACES_AT = Y_AT + 2 * Y_SIZE, LOSSES_AT = PLACES_AT + 2 * ROWS;
constexpr int LOSS_AT = LOSSES_AT + 32, SCRATCH_AT = LOSS_AT + 4;
constexpr int GRADIENT_AT = SCRATCH_AT + (BLOCKS > 1 ? 4 * THREADS : 0);
constexpr int MASKS_AT = GRADIENT_AT + (PLAN_CLUSTER ? PARAMS : 0);
// Bits of dropout, 16 elements to a short
template <int h> constexpr int mask_shorts = ROWS * width<h> / 16 + 2;
template <int h> constexpr int mask_at = mask_at<h - 1> + (h > 1 ? mask_shorts<h - 1> : 0);
template <> constexpr int mask_at<1> = 0;
constexpr int MASKS_SIZE = DROPOUT ? fours(ceil_div(mask_at<LAYERS>, 2)) : 0;
constexpr int WORDS = MASKS_AT + 2 * MASKS_SIZE;

// ---- the parameters in global memory: weights (in, out) of all layers, then all biases. Each of them is repeated in
// place for each of several networks.
template <int l> constexpr int global_weights = global_weights<l - 1> + size<l - 1> * size<l>;
template <> constexpr int global_weights<0> = 0;
template <int l> constexpr int global_bias = global_bias<l - 1> + size<l>;
template <> constexpr int global_bias<0> = global_weights<LAYERS>;

// Returns the place in global memory of parameter p of shared memory of a network, -1 for padding.
template <int l = 0> __device__ int global_place(int p, int networks, int network) {
  if constexpr (l < LAYERS) {
    if (p >= weights_at<l + 1>) return global_place<l + 1>(p, networks, network);
    int row = (p - weights_at<l>) / weight_pitch<l>, column = (p - weights_at<l>) % weight_pitch<l>;
    if (column >= width<l + 1>) return -1;
    if (row < width<l>)
      return global_weights<l> * networks + (network * size<l> + row) * size<l + 1> + column;
    return row == ones<l> ? global_bias<l> * networks + network * size<l + 1> + column : -1;
  }
  return -1;
}

// Returns whether parameter p is a bias, or padding.
template <int l = 0> __device__ __forceinline__ bool is_bias(int p) {
  if constexpr (l < LAYERS)
    return p < weights_at<l + 1> ? p >= weights_at<l> + ones<l> * weight_pitch<l> : is_bias<l + 1>(p);
  return true;
}

// Arguments of the kernel; all pointers are addresses of the device.
struct Tiny {
  const X* x; const Target* y; const int* order; const float* rates; float* losses; const Clock* clock;
  float* params; float* first; float* second;                       // in the padded layout
  float* partial; float* weights; float* block_losses; int* counter;  // of several blocks: what they exchange
  unsigned long long seed, purpose;
  int first_step, n_steps, rows;  // rows of an epoch
  int networks, network;          // networks whose parameters follow each other, and which of them this is
  unsigned threshold;
  float momentum, beta2, eps, l2, scale;
};
