// The update of eight weights, whose gradient is the sum over all ranks, as in update.cuh.
// G is the type of a gradient: T, or float with -DGRADIENT_FLOAT. Needs update.cuh and peer.cuh.

#ifdef GRADIENT_FLOAT
typedef float G;
#else
typedef T G;
#endif

// What an update reads except for the gradient; `master` and the moments have the index of the weight.
struct State {
#if MASTER == 1
  Line<T> high;
  Line<short> low;
#else
  Line<float> w;
#endif
  Line<float> first;
#if OPTIMIZER == 2
  Line<float> second;
#endif
};

__device__ __forceinline__ void load_state(State& s, const Update& u, int i) {
#if MASTER == 1
  s.high = *(const Line<T>*)(u.weight + i);
  s.low = *(const Line<short>*)((const short*)u.master + i);
#elif MASTER == 2
  s.w = *(const Line<float>*)((const float*)u.master + i);
#else
  s.w = *(const Line<float>*)(u.weight + i);
#endif
  s.first = *(const Line<float>*)(u.first + i);
#if OPTIMIZER == 2
  s.second = *(const Line<float>*)(u.second + i);
#endif
}

// Stores the moments and the master of weights i..i+7; returns the weights for the products.
__device__ __forceinline__ Line<T> step_line(const Update& u, int i, State& s, const float (&sum)[8],
                                             float rate) {
  Line<T> out;
#pragma unroll
  for (int e = 0; e < 8; e++) {
    float none = 0.f;
#if OPTIMIZER == 2
    float& second = s.second.at[e];
#else
    float& second = none;
#endif
#if MASTER == 1
    float w = __uint_as_float(((unsigned)s.high.at[e].bits << 16) + (int)s.low.at[e]);
#else
    float w = s.w.at[e];
#endif
    w = stepped(u, w, sum[e] + u.l2 * w, s.first.at[e], second, rate);
#if MASTER == 1
    const unsigned bits = __float_as_uint(w), high = (bits + 0x8000u) >> 16;
    out.at[e].bits = (unsigned short)high;
    s.low.at[e] = (short)(bits - (high << 16));
#else
    s.w.at[e] = w;
    out.at[e] = from_float<T>(w);
#endif
  }
  *(Line<float>*)(u.first + i) = s.first;
#if OPTIMIZER == 2
  *(Line<float>*)(u.second + i) = s.second;
#endif
#if MASTER == 1
  *(Line<short>*)((short*)u.master + i) = s.low;
#elif MASTER == 2
  *(Line<float>*)((float*)u.master + i) = s.w;
#endif
  return out;
}

// Updates bias c with gradient g; reads it in u.bias, writes it to `next`.
__device__ __forceinline__ void step_bias(const Update& u, T* next, int c, float g, float rate) {
  float b, first = u.bias_first[c], second = 0.f;
  read_master<1>(u.bias, u.bias_master, c, &b);
#if OPTIMIZER == 2
  second = u.bias_second[c];
#endif
  b = stepped(u, b, g, first, second, rate);
  u.bias_first[c] = first;
#if OPTIMIZER == 2
  u.bias_second[c] = second;
#endif
  write_master<1>(next, u.bias_master, c, &b);
}

// The sum of the partial sums of column c (lane of 32), by all THREADS, for every thread of the lane.
__device__ __forceinline__ float sum_of_column(const Update& u, int c) {
  constexpr int GROUPS = THREADS / 32;
  __shared__ float sums[GROUPS][33];
  const int lane = threadIdx.x & 31, group = threadIdx.x >> 5;
  float mine = 0.f;
  if (c < u.outputs)
#pragma unroll 4
    for (int p = group; p < u.parts; p += GROUPS) mine += u.partial[(size_t)p * u.outputs + c];
  __syncthreads();
  sums[group][lane] = mine;
  __syncthreads();
  float total = 0.f;
#pragma unroll
  for (int k = 0; k < GROUPS; k++) total += sums[k][lane];
  return total * u.bias_scale;
}

// The mean loss of the rows of this rank, by one warp; a rank without rows keeps none.
__device__ __forceinline__ void keep_loss(const Update& u, int step) {
  if (!u.loss || !u.rows || blockIdx.x || threadIdx.x >= 32) return;
  float total = 0.f;
  for (int p = threadIdx.x; p < u.loss_parts; p += 32) total += u.loss[p];
  total = warp_sum(total);
  if (threadIdx.x == 0) u.losses[step] = total / u.rows;
}
