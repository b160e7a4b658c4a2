// The order of an epoch, computed on the device: rows sorted by their random words, ties by index,
// as in pycuda_nn/rng.py; of each network, blockIdx.z. Needs philox.cuh. The words are uniform, so
// their first bits divide the rows into buckets of about the same size (a sample sort, Frazer and
// McKellar 1970, JACM 17), which a block each sorts in shared memory. Words are drawn again wherever
// they are needed: that is faster than to store them.

constexpr int TILE = 2048;  // most rows that are sorted in shared memory
constexpr int APART = 8;    // ints from one bucket to the next: atomics on the same 32 bytes are slow
constexpr int SORT_THREADS = 256, SCAN_THREADS = 1024;

struct Drawn { unsigned long long seed, epoch; };

__device__ __forceinline__ int bucket_of(unsigned long long word, int buckets) {
  return (int)__umul64hi(word, (unsigned long long)buckets);
}

__device__ __forceinline__ Words words_from(int row, const Drawn& of, unsigned long long purpose) {
  return philox(1 + (unsigned long long)(row / 4), of.epoch, 0, of.seed, purpose);
}

__device__ __forceinline__ unsigned long long word_of(int row, const Drawn& of, unsigned long long purpose) {
  const Words drawn = words_from(row, of, purpose);
  const unsigned long long low = row & 1 ? drawn.w[1] : drawn.w[0], high = row & 1 ? drawn.w[3] : drawn.w[2];
  return row & 2 ? high : low;
}

// Counts the rows of each bucket; `counts` must be 0.
extern "C" __global__ void count_rows(int* counts, const Drawn* drawn, unsigned long long purpose, int n,
                                      int buckets) {
  counts += (size_t)blockIdx.z * buckets * APART;
  const long long first = 4ll * (blockIdx.x * blockDim.x + threadIdx.x);
  if (first >= n) return;
  const Words words = words_from((int)first, drawn[blockIdx.z], purpose);
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (first + k < n) atomicAdd(counts + (size_t)bucket_of(words.w[k], buckets) * APART, 1);
}

// Turns the counts of the buckets into their first places, by one block.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) scan_buckets(int* counts, int buckets) {
  counts += (size_t)blockIdx.z * buckets * APART;
  __shared__ int sums[SCAN_THREADS];
  const int me = threadIdx.x;
  int before = 0;
  for (int first = 0; first < buckets; first += SCAN_THREADS) {
    const int bucket = first + me;
    const int mine = bucket < buckets ? counts[(size_t)bucket * APART] : 0;
    sums[me] = mine;
    __syncthreads();
    for (int distance = 1; distance < SCAN_THREADS; distance *= 2) {
      const int more = me >= distance ? sums[me - distance] : 0;
      __syncthreads();
      sums[me] += more;
      __syncthreads();
    }
    if (bucket < buckets) counts[(size_t)bucket * APART] = before + sums[me] - mine;
    before += sums[SCAN_THREADS - 1];
    __syncthreads();
  }
}

// Writes the rows of each bucket in any order; its first place becomes that behind its last row.
extern "C" __global__ void scatter_rows(int* places, int* unsorted, const Drawn* drawn, unsigned long long purpose,
                                        int n, int buckets, int slots) {
  places += (size_t)blockIdx.z * buckets * APART;
  unsorted += (size_t)blockIdx.z * slots;
  const long long first = 4ll * (blockIdx.x * blockDim.x + threadIdx.x);
  if (first >= n) return;
  const Words words = words_from((int)first, drawn[blockIdx.z], purpose);
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (first + k < n)
      unsorted[atomicAdd(places + (size_t)bucket_of(words.w[k], buckets) * APART, 1)] = (int)first + k;
}

__device__ __forceinline__ bool after(unsigned long long a, int row_a, unsigned long long b, int row_b) {
  return a > b || (a == b && row_a > row_b);
}

__device__ __forceinline__ void exchange(unsigned long long* words, int* rows, int low, int high, bool up) {
  const unsigned long long a = words[low], b = words[high];
  const int row_a = rows[low], row_b = rows[high];
  if (after(a, row_a, b, row_b) == up) {
    words[low] = b; rows[low] = row_b;
    words[high] = a; rows[high] = row_a;
  }
}

// Sorts a bucket that is too large for shared memory, without any: such a bucket is extremely improbable.
__device__ __forceinline__ void sort_by_counting(const int* unsorted, int* rows, int size, Drawn of,
                                              unsigned long long purpose) {
  for (int i = threadIdx.x; i < size; i += blockDim.x) {
    const int row = unsorted[i];
    const unsigned long long word = word_of(row, of, purpose);
    int place = 0;
    for (int k = 0; k < size; k++) place += after(word, row, word_of(unsorted[k], of, purpose), unsorted[k]);
    rows[place] = row;
  }
}

// Sorts bucket blockIdx.x, by a bitonic sort (Batcher 1968, AFIPS, section 5) of a power of two of rows.
// A single bucket contains all rows in their own order: nothing has been counted or scattered.
extern "C" __global__ void __launch_bounds__(SORT_THREADS, 5)
sort_rows(const int* ends, const int* unsorted, int* rows, const Drawn* drawn, unsigned long long purpose, int n,
          int buckets, int slots) {
  __shared__ unsigned long long w[TILE];
  __shared__ int r[TILE];
  const Drawn of = drawn[blockIdx.z];
  const int bucket = blockIdx.x;
  const bool all = buckets == 1;
  ends += (size_t)blockIdx.z * buckets * APART;
  const int begin = bucket ? ends[(size_t)(bucket - 1) * APART] : 0;
  const int size = (all ? n : ends[(size_t)bucket * APART]) - begin;
  rows += (size_t)blockIdx.z * slots + begin;
  unsorted += (size_t)blockIdx.z * slots + begin;
  if (size > TILE) return sort_by_counting(unsorted, rows, size, of, purpose);
  int width = 1;
  while (width < size) width *= 2;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const int row = i >= size ? 0x7fffffff : all ? i : unsorted[i];
    w[i] = i < size ? word_of(row, of, purpose) : ~0ull;
    r[i] = row;
  }
  for (int run = 2; run <= width; run *= 2)
    for (int distance = run / 2; distance; distance /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < width / 2; i += blockDim.x) {
        const int low = 2 * i - (i & (distance - 1));
        exchange(w, r, low, low + distance, (low & run) == 0);
      }
    }
  __syncthreads();
  for (int i = threadIdx.x; i < size; i += blockDim.x) rows[i] = r[i];
}
