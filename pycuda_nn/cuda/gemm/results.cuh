// What a block does with its results of a product D (m, n) = alpha A B + beta D; with a bias (n), D = max(alpha A B + bias, 0).
// -DEPILOGUE=0|1|2|3: stores D; stores its activation; multiplies it by the slope of the activation and sums its columns; or
// updates the weights of which it is the gradient. 1 and 2 need hidden.cuh, 3 needs update.cuh with -DGRADIENT.
// -DTILE_N, -DSPLIT: as in sgemm.cuh. A thread writes 4 neighbours at a time.

struct Sgemm {
  const float* a; const float* b; float* d; const float* bias;
  int m, n, k;
  float alpha, beta;
};

#if EPILOGUE == 0
struct Task { Sgemm p; };
#elif EPILOGUE == 3
struct Task { Sgemm p; Update u; };
#else
struct Task { Sgemm p; Activation u; };
#endif

__device__ __forceinline__ void add(Pack<float>& sum, const Pack<float>& more) {
#pragma unroll
  for (int e = 0; e < 4; e++) sum.at[e] += more.at[e];
}

// A result of the product, before what follows it.
__device__ __forceinline__ Pack<float> scaled(const Sgemm& u, Pack<float> sum) {
#pragma unroll
  for (int e = 0; e < 4; e++) sum.at[e] *= u.alpha;
  return sum;
}

#if EPILOGUE == 1 || EPILOGUE == 2
constexpr bool DRAWS = DROPOUT && (EPILOGUE == 1 || ACTIVATION != 0);  // as in hidden.cuh

// The dropout of the results of a thread, a bit for each in their order: drawn before the product, it takes no time.
struct Drawn {
  float scale;
  unsigned kept = 0;
  __device__ __forceinline__ float factor(long long) {
    bool keep = kept & 1;
    kept >>= 1;
    return keep ? scale : 0.f;
  }
};
#endif

#if EPILOGUE == 0
__device__ __forceinline__ void write_pack(const Sgemm& u, int row, int column, Pack<float> sum) {
  Pack<float>* to = (Pack<float>*)(u.d + (size_t)row * u.n + column);
  Pack<float> old = {}, bias = {};
  if (u.beta != 0.f) old = *to;
  if (u.bias) bias = *(const Pack<float>*)(u.bias + column);
#pragma unroll
  for (int e = 0; e < 4; e++) {
    float v = u.alpha * sum.at[e] + u.beta * old.at[e];
    if (u.bias) {
      v += bias.at[e];
      v = v != v ? v : fmaxf(v, 0.f);  // NaN stays NaN
    }
    sum.at[e] = v;
  }
  *to = sum;
}
#elif EPILOGUE == 1
__device__ __forceinline__ void write_pack(const Task& t, Drawn& drawn, int row, int column, Pack<float> sum) {
  size_t at = (size_t)row * t.p.n + column;
  Pack<float> z = scaled(t.p, sum), bias = *(const Pack<float>*)(t.u.bias + column), out;
#pragma unroll
  for (int e = 0; e < 4; e++) {
    z.at[e] += bias.at[e];
    out.at[e] = activated(t.u, drawn, z.at[e], row, column + e);
  }
#if ACTIVATION == 3
  *(Pack<float>*)(t.u.z + at) = z;
#endif
  *(Pack<float>*)(t.p.d + at) = out;
}
#elif EPILOGUE == 2
__device__ __forceinline__ Pack<float> write_pack(const Task& t, Drawn& drawn, int row, int column, Pack<float> sum) {
  size_t at = (size_t)row * t.p.n + column;
  Pack<float> v = scaled(t.p, sum), h = *(const Pack<float>*)(t.u.h + at);
#pragma unroll
  for (int e = 0; e < 4; e++) v.at[e] = through_activation(t.u, drawn, v.at[e], h.at[e], row, column + e);
  *(Pack<float>*)(t.p.d + at) = v;
  return v;
}

// Writes the sums of the columns of this block to `partial`; a thread has the sum of 4 columns from `c`.
__device__ __forceinline__ void sum_columns(const Task& t, float* shared, int n0, int c, Pack<float> sum) {
  constexpr int GROUPS = 1024 / TILE_N;
  *(Pack<float>*)(shared + threadIdx.x / (TILE_N / 4) * TILE_N + c) = sum;
  __syncthreads();
  int column = n0 + threadIdx.x;
  if (threadIdx.x >= TILE_N || column >= t.p.n) return;
  float total = 0.f;
#pragma unroll
  for (int g = 0; g < GROUPS; g++) total += shared[g * TILE_N + threadIdx.x];
  t.u.partial[(size_t)(blockIdx.y * SPLIT + blockIdx.z) * t.p.n + column] = total;
}
#else
__device__ __forceinline__ void write_pack(const Task& t, float rate, int row, int column, Pack<float> sum) {
  int i = row * t.p.n + column;
  Neighbours<4> state;
  state.read(t.u, i);
  Pack<float> grad = scaled(t.p, sum);
  state.learn(t.u, i, grad.at, rate);
}
#endif
