// Gradients of the weights and their update: by one block at once, or by several, each for its slice of the parameters.
// Needs passes.cuh and step/update.cuh.

__device__ __forceinline__ Update constants(const Tiny& a) {
  Update u{};
  u.momentum = a.momentum;
  u.beta2 = a.beta2;
  u.eps = a.eps;
  return u;
}

// Updates 4 parameters from p, whose moments are from `moment`.
__device__ __forceinline__ void update_four(const Tiny& a, float* s, int p, int moment, const float* gradient,
                                            float rate, bool decays) {
  Update u = constants(a);
  Four w = *(const Four*)(s + p), first = *(const Four*)(s + MOMENTS_AT + moment), second{};
#if OPTIMIZER == 2
  second = *(const Four*)(s + MOMENTS_AT + SLICE + moment);
#endif
  float l2 = decays ? a.l2 : 0.f;
#pragma unroll
  for (int e = 0; e < 4; e++)
    w.at[e] = stepped(u, w.at[e], gradient[e] + l2 * w.at[e], first.at[e], second.at[e], rate);
  *(Four*)(s + p) = w;
  *(Four*)(s + MOMENTS_AT + moment) = first;
#if OPTIMIZER == 2
  *(Four*)(s + MOMENTS_AT + SLICE + moment) = second;
#endif
}

// Tiles of TALL inputs and 4 outputs, for which a pass over the threads takes the least time.
template <int l> constexpr int gradient_columns = fours(width<l + 1>) / 4;
template <int l> __host__ __device__ constexpr int tiles_of(int tall) { return (ones<l> / tall + 1) * gradient_columns<l>; }
template <int l> __host__ __device__ constexpr int gradient_cost(int tall) {
  return ceil_div(tiles_of<l>(tall), THREADS) * (ROWS * (6 + 4 * tall) + 40 * tall);
}
template <int l> __host__ __device__ constexpr int gradient_tall() {
  return gradient_cost<l>(4) <= at_most(gradient_cost<l>(2), gradient_cost<l>(1)) ? 4
         : gradient_cost<l>(2) <= gradient_cost<l>(1)                            ? 2
                                                                                  : 1;
}

template <int N> struct alignas(4 * N) Tall { float at[N]; };

// Gradient of the weights and the bias of layer l over the rows of the block; updates them, or keeps it for all blocks.
template <int l>
__device__ __forceinline__ void weight_gradient(const Tiny& a, float* s, const float* x, float rate) {
  constexpr int COLUMNS = gradient_columns<l>, TALL = gradient_tall<l>(), TILES = tiles_of<l>(TALL);
  // The threads that layer 1 leaves idle begin with layer 0.
  constexpr int BUSY = l == 0 && LAYERS > 1 ? tiles_of<at_most(1, LAYERS - 1)>(gradient_tall<at_most(1, LAYERS - 1)>()) : 0;
  constexpr int OFFSET = THREADS - ceil_div(BUSY, 32) * 32 % THREADS;
  const float* in = l == 0 ? x : s + hidden_at<at_least(1, l)>;
  const float* delta = s + delta_at<l + 1>;
  for (int tile = (threadIdx.x + OFFSET) % THREADS; tile < TILES; tile += THREADS) {
    int c = tile % COLUMNS * 4, k = tile / COLUMNS * TALL;
    Four sum[TALL] = {};
#pragma unroll 4
    for (int r = 0; r < ROWS; r++) {
      Tall<TALL> v = *(const Tall<TALL>*)(in + r * pitch<l> + k);
      Four d = *(const Four*)(delta + r * pitch<l + 1> + c);
#pragma unroll
      for (int i = 0; i < TALL; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) sum[i].at[e] += v.at[i] * d.at[e];
    }
#pragma unroll
    for (int i = 0; i < TALL; i++) {
      int p = weights_at<l> + (k + i) * weight_pitch<l> + c;
      if constexpr (BLOCKS == 1) {
        update_four(a, s, p, p, sum[i].at, rate, k + i < ones<l>);
      } else {
        put_gradient(a, s, p, sum[i]);
      }
    }
  }
}

// Sums the gradients of all blocks for the slice of this one, updates it, and fetches the other slices.
__device__ __forceinline__ void exchange(const Tiny& a, float* s, int step, float rate, int& turn) {
  constexpr int FOURS = SLICE / 4;
  constexpr int DEEP = at_most(power_down(BLOCKS), power_down(at_least(1, THREADS / FOURS)));  // threads for a sum
  constexpr int ACROSS = THREADS / DEEP;
  int first = (int)blockIdx.x * SLICE, column = threadIdx.x % ACROSS, part = threadIdx.x / ACROSS;
  __syncthreads();
  if (threadIdx.x == 0) put_loss(a, s, loss_of_block(s));
  all_blocks(a.counter, turn);
  for (int base = 0; base < FOURS; base += ACROSS) {
    int moment = 4 * (base + column), p = first + moment;
    bool inside = moment < SLICE && p < PARAMS;
    Four sum{};
    if (inside)
#pragma unroll 8
      for (int block = part; block < BLOCKS; block += DEEP) {
        Four one = gradient_of(a, s, block, p);
#pragma unroll
        for (int e = 0; e < 4; e++) sum.at[e] += one.at[e];
      }
    if constexpr (DEEP > 1) {
      Four* scratch = (Four*)(s + SCRATCH_AT);
      scratch[threadIdx.x] = sum;
      __syncthreads();
      for (int k = 1; part == 0 && k < DEEP; k++)
#pragma unroll
        for (int e = 0; e < 4; e++) sum.at[e] += scratch[k * ACROSS + column].at[e];
    }
    if (inside && part == 0) {
      update_four(a, s, p, moment, sum.at, rate, !is_bias(p));
      put_weights(a, s, p);
    }
    if constexpr (DEEP > 1) __syncthreads();
  }
  if (blockIdx.x == 0 && threadIdx.x < 32) {
    float loss = 0.f;
    for (int block = threadIdx.x; block < BLOCKS; block += 32) loss += loss_of(a, s, block);
    loss = warp_sum(loss);
    if (threadIdx.x == 0) a.losses[step] = loss / rows_of_step(a, step);
  }
  all_blocks(a.counter, turn);
#pragma unroll 4
  for (int p = 4 * threadIdx.x; p < PARAMS; p += 4 * THREADS) {
    int block = p / SLICE;
    if (!PLAN_CLUSTER || block != (int)blockIdx.x) *(Four*)(s + p) = weights_of(a, s, block, p);
  }
}
