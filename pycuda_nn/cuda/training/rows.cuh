// Rows of a minibatch, conversion of numbers, and the clock of the steps. Needs common.cuh.
// m rows of a minibatch; widths are padded and padding is zero; sums have a fixed order.

struct Clock { int step; int pad; long long total; };  // steps of this epoch, and of all epochs

// ---- rows: x[r] = X[order[(step + j) * batch + r]], and their targets

template <class S>
__device__ __forceinline__ void copy_row_piece(const S* from, T* to) {
  Pack<T> out;
  if constexpr (sizeof(S) == sizeof(T)) {
    out = *(const Pack<T>*)from;
  } else {
#pragma unroll
    for (int e = 0; e < Pack<T>::N; e++) out.at[e] = from_float<T>(to_float(from[e]));
  }
  *(Pack<T>*)to = out;
}

extern "C" __global__ void gather(const T* __restrict__ X, const unsigned* __restrict__ Y,
                                  const int* __restrict__ order, const Clock* clock, int j,
                                  int batch, int rows, int packs, int words, T* x, unsigned* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, r = i / packs, c = i - r * packs;
  if (r >= rows) return;
  long long s = order[(long long)(clock->step + j) * batch + r];
  copy_row_piece(X + (s * packs + c) * Pack<T>::N, x + (size_t)i * Pack<T>::N);
  if (c == 0)
    for (int k = 0; k < words; k++) y[(size_t)r * words + k] = Y[s * words + k];
}

// Converts float rows (n, columns) to T rows of `packs` packs, padded with zeros.
extern "C" __global__ void convert(const float* __restrict__ from, long long n, int columns,
                                   int packs, T* to) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x, r = i / packs;
  int c = (int)(i - r * packs) * Pack<T>::N;
  if (r >= n) return;
  Pack<T> out;
#pragma unroll
  for (int e = 0; e < Pack<T>::N; e++)
    out.at[e] = from_float<T>(c + e < columns ? from[r * columns + c + e] : 0.f);
  *(Pack<T>*)(to + i * Pack<T>::N) = out;
}

// Rounds float weights to the T of the products.
extern "C" __global__ void round_weights(const float* __restrict__ from, int n, T* to) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from_float<T>(from[i]);
}

extern "C" __global__ void tick(Clock* clock, int steps) {
  clock->step += steps;
  clock->total += steps;
}

// Fills `out` with numbers for timing matrix products: with zeros they are too fast.
extern "C" __global__ void noise(T* out, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  unsigned h = (unsigned)i * 2654435761u;
  h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
  if (i < n) out[i] = from_float<T>((float)(h >> 8) * (1.f / 8388608.f) - 1.f);
}
