// The last layer of a classifier with few classes in one kernel: logits, softmax, loss, its gradient
// and the gradient of the layer below. One warp per row; the weights stay in registers.
// Dropout only with relu, whose elements are 0 where they were dropped.
// -DHEAD_WIDTH: padded inputs; -DHEAD_CLASSES: at most 16. Needs activation.cuh and loss.cuh.

struct Head {
  const T* h; const T* weight; const T* bias; const int* y;  // (rows, width), (width, 16), (16)
  T* below; T* delta;                                        // (rows, width), (rows, 16)
  float* loss; float* partial; float* partial_below;         // for each block
  int rows;
  float scale, keep;  // of the gradients of outputs; of the elements that dropout keeps
};

// Weights of a block, transposed so that a lane reads 16 bytes of a class; later column sums.
union HeadShared {
  T weight[HEAD_CLASSES][HEAD_WIDTH + Pack<T>::N];
  float columns[8][HEAD_WIDTH];
};

__device__ __forceinline__ void load_transposed(const T* weight, HeadShared& shared) {
  constexpr int N = Pack<T>::N, PER_ROW = 16 / N;
#pragma unroll 4
  for (int i = threadIdx.x; i < HEAD_WIDTH * PER_ROW; i += 256) {
    Pack<T> p = ((const Pack<T>*)weight)[i];
    int row = i / PER_ROW, first = i % PER_ROW * N;
#pragma unroll
    for (int e = 0; e < N; e++)
      if (first + e < HEAD_CLASSES) shared.weight[first + e][row] = p.at[e];
  }
  __syncthreads();
}

// Prevents the compiler from storing a pack of 16-bit numbers in twice as many registers as floats.
template <int K, int C> __device__ __forceinline__ void keep_packed(Pack<T> (&w)[K][C]) {
#pragma unroll
  for (int i = 0; i < K * C; i++) {
    unsigned* u = (unsigned*)&w[i / C][i % C];
    asm volatile("" : "+r"(u[0]), "+r"(u[1]), "+r"(u[2]), "+r"(u[3]));
  }
}

__device__ __forceinline__ void head_of(const Head& u) {
  constexpr int N = Pack<T>::N, PACKS = HEAD_WIDTH / N, C = (PACKS + 31) / 32, K = HEAD_CLASSES;
  __shared__ __align__(16) HeadShared shared;
  __shared__ float classes[8][16];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  load_transposed(u.weight, shared);
  Pack<T> w[K][C];  // lanes after the last pack have unused weights, and zeros of h
#pragma unroll
  for (int k = 0; k < K; k++)
#pragma unroll
    for (int c = 0; c < C; c++)
      w[k][c] = *(const Pack<T>*)&shared.weight[k][min(c * 32 + lane, PACKS - 1) * N];
  float bias[K], sum[C][N], of_class = 0.f, mine = 0.f;
#pragma unroll
  for (int k = 0; k < K; k++) bias[k] = to_float(u.bias[k]);
#pragma unroll
  for (int c = 0; c < C; c++)
#pragma unroll
    for (int e = 0; e < N; e++) sum[c][e] = 0.f;
  for (int r = blockIdx.x * 8 + warp; r < u.rows; r += gridDim.x * 8) {
    keep_packed(w);
    Pack<T> h[C];
    float z[K];
#pragma unroll
    for (int c = 0; c < C; c++)
      if (c * 32 + lane < PACKS) h[c] = ((const Pack<T>*)u.h)[(size_t)r * PACKS + c * 32 + lane];
      else
#pragma unroll
        for (int e = 0; e < N; e++) h[c].at[e] = from_float<T>(0.f);
    int label = u.y[r];
#pragma unroll
    for (int k = 0; k < K; k++) {
      z[k] = 0.f;
#pragma unroll
      for (int c = 0; c < C; c++)
#pragma unroll
        for (int e = 0; e < N; e++) z[k] += to_float(h[c].at[e]) * to_float(w[k][c].at[e]);
    }
#pragma unroll
    for (int other = 16; other; other >>= 1)
#pragma unroll
      for (int k = 0; k < K; k++) z[k] += __shfl_xor_sync(~0u, z[k], other);
    float top = -infinity(), total = 0.f, of_label = 0.f, delta = 0.f;
#pragma unroll
    for (int k = 0; k < K; k++) {
      z[k] += bias[k];
      top = fmaxf(top, z[k]);
      if (k == label) of_label = z[k];
    }
#pragma unroll
    for (int k = 0; k < K; k++) { z[k] = expf(z[k] - top); total += z[k]; }
    mine += logf(total) + top - of_label;
#pragma unroll
    for (int k = 0; k < K; k++) {
      z[k] = to_float(from_float<T>((z[k] / total - (k == label)) * u.scale));
      if (lane == k) delta = z[k];
    }
    of_class += delta;
    keep_packed(w);
    if (lane < 16) u.delta[(size_t)r * 16 + lane] = from_float<T>(delta);
#pragma unroll
    for (int c = 0; c < C; c++) {
      Pack<T> out;
#pragma unroll
      for (int e = 0; e < N; e++) {
        float g = 0.f;
#pragma unroll
        for (int k = 0; k < K; k++) g += z[k] * to_float(w[k][c].at[e]);
        out.at[e] = from_float<T>(g * u.keep * slope(to_float(h[c].at[e])));
        sum[c][e] += to_float(out.at[e]);
      }
      if (c * 32 + lane < PACKS) ((Pack<T>*)u.below)[(size_t)r * PACKS + c * 32 + lane] = out;
    }
  }
  __syncthreads();  // all threads have read the weights
#pragma unroll
  for (int c = 0; c < C; c++)
#pragma unroll
    for (int e = 0; e < N; e++)
      if (c * 32 + lane < PACKS) shared.columns[warp][(c * 32 + lane) * N + e] = sum[c][e];
  if (lane < 16) classes[warp][lane] = of_class;
  block_loss(mine, u.loss);
  __syncthreads();
  for (int c = threadIdx.x; c < HEAD_WIDTH; c += 256) {
    float total = 0.f;
#pragma unroll
    for (int k = 0; k < 8; k++) total += shared.columns[k][c];
    u.partial_below[(size_t)blockIdx.x * HEAD_WIDTH + c] = total;
  }
  if (threadIdx.x < 16) {
    float total = 0.f;
#pragma unroll
    for (int k = 0; k < 8; k++) total += classes[k][threadIdx.x];
    u.partial[blockIdx.x * 16 + threadIdx.x] = total;
  }
}

extern "C" __global__ void __launch_bounds__(256) head(const __grid_constant__ Head u) { head_of(u); }
