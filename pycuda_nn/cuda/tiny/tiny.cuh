// Many training steps of a tiny network in one launch, in float32: all weights, and the values of the rows of a block,
// stay in its shared memory.
//
// One block, or several that share the rows of each minibatch. Each of several then publishes its gradient, sums the
// gradients of all for its slice of the parameters, updates that, and fetches the slices of the others: two barriers of
// all blocks for each step. All sums have a fixed order. Needs update.cuh.

template <int l = 0> __device__ __forceinline__ void forward_pass(const Tiny& a, float* s, const float* x, int step) {
  if constexpr (l < LAYERS) {
    forward<l>(a, s, x, step);
    __syncthreads();
    forward_pass<l + 1>(a, s, x, step);
  }
}

// The weights of layer l are read by the gradient below it, and then updated, while the gradient of the next is computed.
template <int l = LAYERS - 1>
__device__ __forceinline__ void backward_pass(const Tiny& a, float* s, const float* x, int step, float rate) {
  if constexpr (l > 0) {
    below<l>(a, s, step);
    __syncthreads();
  }
  weight_gradient<l>(a, s, x, rate);
  if constexpr (l > 0) backward_pass<l - 1>(a, s, x, step, rate);
}

template <int h = 0> __device__ __forceinline__ void set_ones(float* s) {
  if constexpr (h < LAYERS) {
    for (int r = threadIdx.x; r < ROWS; r += THREADS) {
      if constexpr (h == 0) {
        s[X_AT + r * pitch<0> + ones<0>] = s[X_AT + X_SIZE + r * pitch<0> + ones<0>] = 1.f;
      } else {
        s[hidden_at<at_least(1, h)> + r * pitch<h> + ones<h>] = 1.f;
      }
    }
    set_ones<h + 1>(s);
  }
}

// Copies the parameters, and the moments of the slice of this block, to shared memory or back.
template <bool LOAD> __device__ __forceinline__ void copy_state(const Tiny& a, float* s) {
  int first = (int)blockIdx.x * SLICE;
  for (int p = threadIdx.x; p < PARAMS; p += THREADS) {
    int place = global_place(p, a.networks, a.network), moment = p - first;
    bool mine = moment >= 0 && moment < SLICE;
    if (place < 0 || !(LOAD || mine)) continue;
    if (LOAD) s[p] = a.params[place];
    else a.params[place] = s[p];
    if (!mine) continue;
    float* moments = s + MOMENTS_AT + moment;
    if (LOAD) moments[0] = a.first[place];
    else a.first[place] = moments[0];
#if OPTIMIZER == 2
    if (LOAD) moments[SLICE] = a.second[place];
    else a.second[place] = moments[SLICE];
#endif
  }
}

__device__ __forceinline__ void prefetch(const Tiny& a, const Clock& clock, float* s, int step) {
  gather_rows(a, s, step);
#if DROPOUT
  draw_masks(a, clock, s, step);
#endif
}

__device__ __forceinline__ void begin(const Tiny& a, const Clock& clock, float* s) {
  for (int i = threadIdx.x; i < WORDS; i += THREADS) s[i] = 0.f;
  __syncthreads();
  copy_state<true>(a, s);
  set_ones(s);
  int* places = (int*)(s + PLACES_AT);
  for (int r = threadIdx.x; r < ROWS; r += THREADS)
    for (int step = a.first_step; step < a.first_step + 2; step++)
      places[(step & 1) * ROWS + r] = place_of(a, step, r);
  __syncthreads();
  prefetch(a, clock, s, a.first_step);
  copies_end();
  __syncthreads();
}

__device__ __forceinline__ void train(const Tiny& a) {
  extern __shared__ __align__(128) float s[];
  const Clock clock = *a.clock;
  int turn = 0, end = a.first_step + a.n_steps;
  begin(a, clock, s);
  for (int step = a.first_step; step < end; step++) {
    const float* x = s + X_AT + (step & 1) * X_SIZE;
    float rate = a.rates[step];
    int place = threadIdx.x < ROWS ? place_of(a, step + 2, threadIdx.x) : 0;
    if (step + 1 < end) prefetch(a, clock, s, step + 1);
    forward_pass(a, s, x, step);
    float loss = losses(a, s, step);
    __syncthreads();
    sum_by_warp(s, loss);
    backward_pass(a, s, x, step, rate);
    if (threadIdx.x < ROWS) ((int*)(s + PLACES_AT))[(step & 1) * ROWS + threadIdx.x] = place;
    copies_end();
    if constexpr (BLOCKS > 1) exchange(a, s, step, rate, turn);
    __syncthreads();
    if (BLOCKS == 1 && threadIdx.x == THREADS - 1) a.losses[step] = loss_of_block(s) / rows_of_step(a, step);
  }
  copy_state<false>(a, s);
  if constexpr (PLAN_CLUSTER) all_blocks(a.counter, turn);  // the others have read the memory of this block
}
