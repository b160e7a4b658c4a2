// One minibatch on several GPUs: gradients of all ranks -> new weights on all ranks, one kernel per
// layer. A rank reads its shard of the gradient from every rank, adds in the order of the ranks in
// float, updates its shard of the weights (ZeRO-1, Rajbhandari et al. 2020, section 5.1) and stores
// the new weights, as the products read them, into the memory of every rank.
//
//   rank 0  gradient ----READY----> reads shard 0 of all -> update -> stores shard 0 to all --DONE-->
//   rank 1  gradient ----READY----> reads shard 1 of all -> update -> stores shard 1 to all --DONE-->
//
// `turn` counts the exchanges of a layer from 1. Ranks run the same exchanges in the same order.
//
// Nothing is overwritten before it was read:
// - A gradient: rank r writes it again after its exchange ended, so after DONE of every rank, which
//   a rank sends after it has read the gradient of r.
// - Weights exist twice; a step reads one copy and its exchanges write the other. Rank r stores to
//   rank q after READY of q, whose gradient of this step exists, so that no product of q still reads
//   the copy of the step before.
// - Sums of a bias exist twice, too, by the parity of the turn: rank r stores them for turn t + 2
//   after its kernel of turn t + 1, so after q sent its sums of turn t + 1, so after the kernel of q
//   of turn t.
// Nothing waits forever: a wait is only for a flag that another rank sets before it waits for a later
// turn; blocks that wait leave multiprocessors for the products (see exchange.py); and a wait ends
// when the host says so, or after `limit` beats of the host. Then `trouble` is set, and all waits end.
//
// -DRANKS, -DTHREADS. Needs shared_update.cuh.

constexpr int MOST = 16, GROUPS_OF_BIAS = 32;                    // ranks; blocks of exchange_bias
constexpr int READY = 0, DONE = MOST, BIAS = 2 * MOST;           // flags: [rank], [rank], [rank][block]
enum Trouble { NO_ANSWER = 1, STOPPED = 2 };

struct Exchange {
  const G* gradients[MOST]; T* weights[MOST];   // of this layer, of each rank
  float* sums[MOST]; unsigned* flags[MOST];     // sums: [parity][rank][outputs]
  T* bias_next;
  unsigned* local;        // [0] turns that ended, [1] blocks that arrived; [2..3] for the bias
  unsigned* trouble;      // on this device
  const unsigned* host;   // [0] whether to stop, [1] a counter of beats
  Update u;               // master and moments have the index of the whole layer
  int rank, begin, end;   // shard: weights begin..end-1, multiples of 8
  unsigned limit;
};

// Waits until a flag reaches `turn`, unless there is trouble.
__device__ __forceinline__ void wait_flag(const Exchange& x, const unsigned* at, unsigned turn) {
  unsigned first_beat = 0;
  for (unsigned polls = 0; (int)(get_flag(at) - turn) < 0; polls++) {
    if ((polls & 255) != 255) continue;
    const unsigned beat = glance(x.host + 1);
    if (polls == 255) first_beat = beat;
    if (glance(x.trouble)) return;
    if (glance(x.host)) return note(x.trouble, STOPPED);
    if (beat - first_beat > x.limit) return note(x.trouble, NO_ANSWER);
  }
}

// Ends a turn in the last block that arrives; returns whether this is it.
__device__ __forceinline__ bool arrive_last(unsigned* local, unsigned turn) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();  // also for what the other threads stored
    last = atomicAdd(&local[1], 1u) == gridDim.x - 1;
    if (last) {
      __threadfence_system();
      local[1] = 0;
      local[0] = turn;
    }
  }
  __syncthreads();
  return last;
}

extern "C" __global__ void __launch_bounds__(THREADS) exchange(const __grid_constant__ Exchange x) {
  const unsigned turn = glance(&x.local[0]) + 1;
  const int me = threadIdx.x;
  const float rate = x.u.rates[x.u.clock->step + x.u.j];
  if (blockIdx.x == 0 && me < RANKS) put_flag(x.flags[me] + READY + x.rank, turn);
  if (me < RANKS) wait_flag(x, x.flags[x.rank] + READY + me, turn);
  __syncthreads();
  constexpr int AT_ONCE = sizeof(G) == 2 && RANKS <= 4 && OPTIMIZER != 2 ? 2 : 1;
  const int stride = gridDim.x * THREADS * 8 * AT_ONCE;
  for (int first = x.begin + (blockIdx.x * THREADS * AT_ONCE + me) * 8; first < x.end; first += stride) {
    Line<G> g[AT_ONCE][RANKS];
    State state[AT_ONCE];
#pragma unroll
    for (int a = 0; a < AT_ONCE; a++) {
      const int i = first + a * THREADS * 8;
      if (i >= x.end) break;
#pragma unroll
      for (int r = 0; r < RANKS; r++) load_line(g[a][r], x.gradients[r] + i);
      load_state(state[a], x.u, i);
    }
#pragma unroll
    for (int a = 0; a < AT_ONCE; a++) {
      const int i = first + a * THREADS * 8;
      if (i >= x.end) break;
      float sum[8];
#pragma unroll
      for (int e = 0; e < 8; e++) {
        sum[e] = to_float(g[a][0].at[e]);
#pragma unroll
        for (int r = 1; r < RANKS; r++) sum[e] += to_float(g[a][r].at[e]);
      }
      const Line<T> w = step_line(x.u, i, state[a], sum, rate);
#pragma unroll
      for (int r = 0; r < RANKS; r++) store_line(x.weights[r] + i, w);
    }
  }
  if (!arrive_last(x.local, turn)) return;
  if (me < RANKS) {
    put_flag(x.flags[me] + DONE + x.rank, turn);
    wait_flag(x, x.flags[x.rank] + DONE + me, turn);
  }
}

// The bias of a layer: every rank adds the sums of all ranks and updates the whole bias. It is a
// kernel of its own, early in the backward pass: fences behind its stores would delay the weights.
extern "C" __global__ void __launch_bounds__(THREADS) exchange_bias(const __grid_constant__ Exchange x) {
  const Update& u = x.u;
  const unsigned turn = glance(&x.local[2]) + 1;
  const int me = threadIdx.x, lane = me & 31, warp = me >> 5, groups = (u.outputs + 31) / 32;
  const int step = u.clock->step + u.j, set = (turn & 1) * RANKS * u.outputs;
  const float rate = u.rates[step];
  for (int b = blockIdx.x; b < groups; b += gridDim.x) {
    const int c = b * 32 + lane;
    const float g = sum_of_column(u, c);
    for (int r = warp; r < RANKS && c < u.outputs; r += THREADS / 32)
      x.sums[r][set + x.rank * u.outputs + c] = g;
  }
  __syncthreads();
  if (me < RANKS) put_flag(x.flags[me] + BIAS + x.rank * GROUPS_OF_BIAS + blockIdx.x, turn);
  keep_loss(u, step);
  if (me < RANKS) wait_flag(x, x.flags[x.rank] + BIAS + me * GROUPS_OF_BIAS + blockIdx.x, turn);
  __syncthreads();
  for (int b = blockIdx.x + warp * gridDim.x; b < groups; b += gridDim.x * (THREADS / 32)) {
    const int c = b * 32 + lane;
    if (c >= u.outputs) continue;
    float g = 0.f;
#pragma unroll
    for (int r = 0; r < RANKS; r++) g += fresh(&x.sums[x.rank][set + r * u.outputs + c]);
    step_bias(u, x.bias_next, c, g, rate);
  }
  arrive_last(x.local + 2, turn);
}
