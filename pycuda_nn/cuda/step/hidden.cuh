// Bias, activation and dropout between two dense layers, in one kernel. -DDROPOUT=0|1.
// Needs activation.cuh and dropout.cuh of pycuda_nn/layers.

// activation(z) with dropout of element (r, c); 0 in columns from `width`. With clock = 0 there is no dropout.
template <class K> __device__ __forceinline__ float activated(const Activation& u, K& keeper, float z, int r, int c) {
  float v = activate(z);
#if DROPOUT
  if (u.clock) v *= keeper.factor((long long)(u.first + r) * u.width + c);
#endif
  return c < u.width ? v : 0.f;
}

// The gradient v of element (r, c) times activation'(z) and the dropout factor; h is a, or z for a formula.
// With relu it draws nothing: an element is 0 where it was dropped.
template <class K>
__device__ __forceinline__ float through_activation(const Activation& u, K& keeper, float v, float h, int r, int c) {
#if DROPOUT && ACTIVATION == 0
  return h > 0.f ? v * u.scale : 0.f;
#elif DROPOUT
  float keep = keeper.factor((long long)(u.first + r) * u.width + c);
#if ACTIVATION != 3
  h /= keep > 0.f ? keep : 1.f;
#endif
  return keep > 0.f && c < u.width ? v * keep * slope(h) : 0.f;
#elif ACTIVATION == 3  // in columns from `width` the slope is possibly not finite
  return c < u.width ? v * slope(h) : 0.f;
#elif ACTIVATION == 0
  return h > 0.f ? v : 0.f;
#else
  return v * slope(h);
#endif
}

// a = activation(z + bias) with dropout, in place, one pack per thread; columns from `width` are 0.
// With clock = 0 there is no dropout.
__device__ __forceinline__ void bias_activation_of(const Activation& u) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, r = i / u.packs, c = (i - r * u.packs) * Pack<T>::N;
  if (r >= u.rows) return;
  Pack<T> p = ((Pack<T>*)u.a)[i];
#if ACTIVATION == 3
  Pack<T> kept;
#endif
  Keeper keeper(u);
#pragma unroll
  for (int e = 0; e < Pack<T>::N; e++) {
    float z = to_float(p.at[e]) + to_float(u.bias[c + e]);
#if ACTIVATION == 3
    kept.at[e] = from_float<T>(z);
#endif
    p.at[e] = from_float<T>(activated(u, keeper, z, r, c + e));
  }
  ((Pack<T>*)u.a)[i] = p;
#if ACTIVATION == 3
  if (u.z) ((Pack<T>*)u.z)[i] = kept;
#endif
}

extern "C" __global__ void bias_activation(const __grid_constant__ Activation u) { bias_activation_of(u); }

// a (a gradient) *= activation'(z) and the dropout factors of the forward pass, in place; the column
// sums of `share` rows are written to partial[blockIdx.y]. 32 packs wide, 8 rows at a time.
// With h = 0 only the sums.
__device__ __forceinline__ void activation_grad_of(const Activation& u) {
  constexpr int N = Pack<T>::N;
  __shared__ float sums[8][32 * N];
  int lane = threadIdx.x & 31, group = threadIdx.x >> 5, pack = blockIdx.x * 32 + lane;
  int end = min(u.rows, (int)(blockIdx.y + 1) * u.share);
  float sum[N];
#pragma unroll
  for (int e = 0; e < N; e++) sum[e] = 0.f;
#pragma unroll 4
  for (int r = blockIdx.y * u.share + group; r < end && pack < u.packs; r += 8) {
    Pack<T>* at = (Pack<T>*)u.a + (size_t)r * u.packs + pack;
    Pack<T> g = *at;
    if (u.h) {
      Pack<T> h = ((const Pack<T>*)u.h)[(size_t)r * u.packs + pack];
      Keeper keeper(u);
#pragma unroll
      for (int e = 0; e < N; e++)
        g.at[e] = from_float<T>(through_activation(u, keeper, to_float(g.at[e]), to_float(h.at[e]), r, pack * N + e));
      *at = g;
    }
#pragma unroll
    for (int e = 0; e < N; e++) sum[e] += to_float(g.at[e]);
  }
#pragma unroll
  for (int e = 0; e < N; e++) sums[group][lane * N + e] = sum[e];
  __syncthreads();
  for (int c = threadIdx.x; c < 32 * N; c += 256) {
    int column = blockIdx.x * 32 * N + c;
    if (column >= u.packs * N) return;
    float total = 0.f;
#pragma unroll
    for (int k = 0; k < 8; k++) total += sums[k][c];
    u.partial[(size_t)blockIdx.y * u.packs * N + column] = total;
  }
}

extern "C" __global__ void __launch_bounds__(256) activation_grad(const __grid_constant__ Activation u) {
  activation_grad_of(u);
}
