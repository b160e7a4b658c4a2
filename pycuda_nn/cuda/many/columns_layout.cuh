// Memory of the column kernel, and functions for its instructions. The plan (columns_plan.py) defines the
// COLUMNS_ macros. Needs tensor.cuh, update.cuh and net.cuh.

constexpr int INS = COLUMNS_INS, HIDDEN = COLUMNS_HIDDEN, WIDTH = COLUMNS_WIDTH;  // WIDTH: without padding
constexpr int CLASSES = COLUMNS_CLASSES, OUTS = 16, EXAMPLES = COLUMNS_BATCH;
constexpr int TILES = COLUMNS_TILES, WORKERS = COLUMNS_WORKERS;  // tiles of 16 inputs in a slice
constexpr int BLOCKS = HIDDEN / 16, WARPS = WORKERS + 1, THREADS = 32 * WARPS;
constexpr int SLICE = 16 * TILES, PIECES = 2 * TILES, ROWS = (EXAMPLES + 31) / 32 * 32, ROUNDS = ROWS / 32;
constexpr int SHARE = (ROWS + BLOCKS - 1) / BLOCKS, LABELS = (SHARE + WARPS - 1) / WARPS;
static_assert(TILES % 2 == 1 && PIECES <= 16, "rows of a slice would have bank conflicts");

struct ManyColumns {
  const T* x; const int* y; const int* order; const float* rates; float* losses; const Clock* clock;
  T* weight; void* master; float* first; float* second;  // of all networks
  const Net* nets; const int* members;
  unsigned long long purpose;
  int networks, slots, steps, first_step, n_steps;
};

struct alignas(16) Shared {
  T x[WORKERS][ROWS][SLICE];  // neighbouring pieces of 16 bytes are exchanged in rows 4 to 7 of 8
  union {
    float sums[WORKERS][32][16];  // of the slices
    struct { T out_deltas[ROWS][OUTS], deltas[ROWS][16]; } after;  // gradients of outputs and columns
  };
  float parts[BLOCKS][SHARE][OUTS];  // of the outputs of our share of the rows
  T hidden[ROWS][16];
  T out_weights[16][OUTS];
  float losses[SHARE * BLOCKS], bias[16], out_bias[OUTS];
  unsigned short kept[ROWS];
};
static_assert(sizeof(Shared) <= COLUMNS_SHARED, "the plan counts less shared memory");

__device__ __forceinline__ void load_matrices(unsigned (&to)[4], const T* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row)));
}
template <class P> __device__ __forceinline__ P* peer(P* at, int block) {
  P* there;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(at), "r"(block));
  return there;
}
__device__ __forceinline__ void all_blocks() {
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

// A parameter and its moments in registers.
struct Learned {
  float value, first, second;
  __device__ __forceinline__ void read(const Update& u, int at) {
    read_master<1>(u.weight, u.master, at, &value);
    first = u.first[at];
    second = 0.f;  // of Adam, which is not covered
  }
  __device__ __forceinline__ void write(const Update& u, int at) const {
    write_master<1>(u.weight, u.master, at, &value);
    u.first[at] = first;
  }
  __device__ __forceinline__ void learn(const Update& u, float sum, float decay, float rate) {
    value = stepped(u, value, fmaf(decay, value, sum * (1.f / EXAMPLES)), first, second, rate);
  }
};
