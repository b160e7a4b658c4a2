// The order of an epoch, computed on the device: rows sorted by their random words, ties by index,
// as in pycuda_nn/rng.py. Needs philox.cuh. Bitonic sort (Batcher 1968, AFIPS, section 5) of
// `slots` pairs (word, row), a power of two, for each blockIdx.z; rows from n are sorted to the end.

constexpr int TILE = 2048;  // pairs that a block sorts in shared memory

struct Pair { unsigned long long word; int row; };

__device__ __forceinline__ bool after(const Pair& a, const Pair& b) {
  return a.word > b.word || (a.word == b.word && a.row > b.row);
}

__device__ __forceinline__ void draw_of(unsigned long long* words, int* rows, int n, int slots,
                                        unsigned long long seed, unsigned long long purpose,
                                        unsigned long long epoch) {
  int block = blockIdx.x * blockDim.x + threadIdx.x;
  if (block * 4 >= slots) return;
  Words drawn = philox(1 + (unsigned long long)block, epoch, 0, seed, purpose);
#pragma unroll
  for (int k = 0; k < 4; k++) {
    int i = block * 4 + k;
    if (i >= slots) return;
    words[i] = i < n ? drawn.w[k] : ~0ull;
    rows[i] = i;
  }
}

extern "C" __global__ void draw(unsigned long long* words, int* rows, int n, int slots,
                                unsigned long long seed, unsigned long long purpose,
                                unsigned long long epoch) {
  draw_of(words, rows, n, slots, seed, purpose, epoch);
}

__device__ __forceinline__ void exchange(unsigned long long* words, int* rows, int low, int high, bool up) {
  Pair a = {words[low], rows[low]}, b = {words[high], rows[high]};
  if (after(a, b) == up) {
    words[low] = b.word; rows[low] = b.row;
    words[high] = a.word; rows[high] = a.row;
  }
}

// One pass over all pairs: runs of `run` slots, partners `distance` apart.
extern "C" __global__ void merge_pass(unsigned long long* words, int* rows, int slots, int run, int distance) {
  words += (size_t)blockIdx.z * slots;
  rows += (size_t)blockIdx.z * slots;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= slots / 2) return;
  int low = (i / distance) * 2 * distance + i % distance;
  exchange(words, rows, low, low + distance, (low & run) == 0);
}

// All passes of runs of `first` .. `last` slots with partners in the same tile; one tile per block.
extern "C" __global__ void __launch_bounds__(TILE / 2)
merge_tile(unsigned long long* words, int* rows, int slots, int first, int last) {
  words += (size_t)blockIdx.z * slots;
  rows += (size_t)blockIdx.z * slots;
  __shared__ unsigned long long w[TILE];
  __shared__ int r[TILE];
  int base = blockIdx.x * TILE, size = min(TILE, slots);
  for (int i = threadIdx.x; i < size; i += blockDim.x) { w[i] = words[base + i]; r[i] = rows[base + i]; }
  for (int run = first; run <= last; run *= 2)
    for (int distance = min(run, size) / 2; distance; distance /= 2) {
      __syncthreads();
      int i = threadIdx.x;
      if (i < size / 2) {
        int low = (i / distance) * 2 * distance + i % distance;
        exchange(w, r, low, low + distance, ((base + low) & run) == 0);
      }
    }
  __syncthreads();
  for (int i = threadIdx.x; i < size; i += blockDim.x) { words[base + i] = w[i]; rows[base + i] = r[i]; }
}
