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
// - Sums of a bias: rank r sends those of turn t + 1 after its exchange of turn t ended, so after DONE
//   of every rank, which a rank sends after it has read the sums of r. READY follows the sums.
// Nothing waits forever: a wait is only for a flag that another rank sets before it waits for a later
// turn; blocks that wait leave multiprocessors for the products (see room.py); and a wait ends when
// the host says so, or after `limit` beats of the host. Then `trouble` is set, and all waits end.
//
// -DRANKS, -DTHREADS. Needs shared_update.cuh.

constexpr int MOST = 16;                // ranks
constexpr int READY = 0, DONE = MOST;   // flags: [rank], [rank]
enum Trouble { NO_ANSWER = 1, STOPPED = 2 };

struct Exchange {
  const G* gradients[MOST]; T* weights[MOST];   // of this layer, of each rank
  float* sums[MOST]; unsigned* flags[MOST];     // sums: [rank][outputs]
  T* bias_next;
  unsigned* local;        // [0] turns that ended, [1] blocks that arrived
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
__device__ __forceinline__ bool arrive_last(const Exchange& x, unsigned turn) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();  // also for what the other threads stored
    last = atomicAdd(&x.local[1], 1u) == gridDim.x - 1;
    if (last) {
      __threadfence_system();
      x.local[1] = 0;
      x.local[0] = turn;
    }
  }
  __syncthreads();
  return last;
}

// Tells all ranks that this rank has come to a place of its turn.
__device__ __forceinline__ void tell(const Exchange& x, int place, unsigned turn) {
  put_flag(x.flags[threadIdx.x] + place + x.rank, turn);
}

// The bias of a layer: every rank adds the sums of all ranks and updates the whole bias.
__device__ __forceinline__ void update_bias(const Exchange& x, float rate) {
  for (int c = blockIdx.x * THREADS + threadIdx.x; c < x.u.outputs; c += gridDim.x * THREADS) {
    float g = 0.f;
#pragma unroll
    for (int r = 0; r < RANKS; r++) g += fresh(&x.sums[x.rank][r * x.u.outputs + c]);
    step_bias(x.u, x.bias_next, c, g, rate);
  }
}

// Loads what the update of eight weights needs: the gradients of all ranks, and the state.
__device__ __forceinline__ void load_all(const Exchange& x, Line<G> (&g)[RANKS], State& state, int i) {
#pragma unroll
  for (int r = 0; r < RANKS; r++) load_line(g[r], x.gradients[r] + i);
  load_state(state, x.u, i);
}

// Updates eight weights, and stores them on all ranks.
__device__ __forceinline__ void finish_line(const Exchange& x, const Line<G> (&g)[RANKS], State& state,
                                            int i, float rate) {
  float sum[8];
#pragma unroll
  for (int e = 0; e < 8; e++) {
    sum[e] = to_float(g[0].at[e]);
#pragma unroll
    for (int r = 1; r < RANKS; r++) sum[e] += to_float(g[r].at[e]);
  }
  const Line<T> w = step_line(x.u, i, state, sum, rate);
#pragma unroll
  for (int r = 0; r < RANKS; r++) store_line(x.weights[r] + i, w);
}

extern "C" __global__ void __launch_bounds__(THREADS) exchange(const __grid_constant__ Exchange x) {
  const unsigned turn = glance(&x.local[0]) + 1;
  const int me = threadIdx.x;
  const float rate = x.u.rates[x.u.clock->step + x.u.j];
  if (blockIdx.x == 0 && me < RANKS) tell(x, READY, turn);
  if (me < RANKS) wait_flag(x, x.flags[x.rank] + READY + me, turn);
  __syncthreads();
  const int stride = gridDim.x * THREADS * 8;
  // With enough registers the next line is under way during an update.
  constexpr int SETS = sizeof(G) * RANKS <= (OPTIMIZER == 2 ? 4 : 8) ? 2 : 1;
  Line<G> g[SETS][RANKS];
  State state[SETS];
  int i = x.begin + (blockIdx.x * THREADS + me) * 8;
  if (SETS == 2 && i < x.end) load_all(x, g[0], state[0], i);
  while (i < x.end) {
#pragma unroll
    for (int set = 0; set < SETS; set++) {
      const int other = (set + 1) % SETS, to_load = SETS == 2 ? stride : 0;
      if (to_load < x.end - i) load_all(x, g[other], state[other], i + to_load);
      finish_line(x, g[set], state[set], i, rate);
      i += stride;
      if (i >= x.end) break;
    }
  }
  update_bias(x, rate);
  if (!arrive_last(x, turn)) return;
  if (me < RANKS) {
    tell(x, DONE, turn);
    wait_flag(x, x.flags[x.rank] + DONE + me, turn);
  }
}

// Sends the sums of a bias's gradient to all ranks, early in the backward pass; waits for nothing.
extern "C" __global__ void __launch_bounds__(THREADS) send_sums(const __grid_constant__ Exchange x) {
  const Update& u = x.u;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, groups = (u.outputs + 31) / 32;
  for (int b = blockIdx.x; b < groups; b += gridDim.x) {
    const int c = b * 32 + lane;
    const float g = sum_of_column(u, c);
    for (int r = warp; r < RANKS && c < u.outputs; r += THREADS / 32)
      x.sums[r][x.rank * u.outputs + c] = g;
  }
  keep_loss(u, u.clock->step + u.j);
}
