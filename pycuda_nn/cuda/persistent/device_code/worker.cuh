// A worker: a step of the training, and the update of its tiles of the weights.

struct Worker : Gradients {
  float rate;
  const float momentum, l2;

  __device__ Worker(const Persistent& args, Shared& shared)
      : Gradients(args, shared), momentum(args.momentum), l2(args.l2) {}

  // ---- the update, as in step/update.cuh
  __device__ __forceinline__ void learn(float& w, float& first, float& second, float sum,
                                        float decay) const {
    const float gradient = fmaf(decay, w, sum * (1.f / EXAMPLES));
#if defined(PLAN_ADAM)
    first = fmaf(momentum, first, (1.f - momentum) * gradient);
    second = fmaf(a.beta2, second, (1.f - a.beta2) * gradient * gradient);
    w -= rate * __fdividef(first, square_root(second) + a.eps);
#elif defined(PLAN_NESTEROV)
    first = fmaf(momentum, first, gradient);
    w -= rate * fmaf(momentum, first, gradient);
#else
    first = fmaf(momentum, first, gradient);
    w -= rate * first;
#endif
  }

  // PENDING: number of later fetches that can still be in progress.
  template <int l, int PENDING> __device__ __forceinline__ void update() {
    const Part<l> part(block, warp);
    if (!part.ours) return;
    float c[fragments<l> + 1][4] = {};
#pragma unroll 1
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
      if constexpr (CHUNKS > 1) {
        if (chunk + 1 < CHUNKS) {
          fetch_inputs<l>(chunk + 1, turn ^ 1);
          fetch_deltas<l>(chunk + 1, turn ^ 1);
        } else {
          fetch_next<updated_after<l>>(turn ^ 1);
        }
      }
      copy_wait<(CHUNKS > 1 ? 1 : PENDING)>();
      settle_operands<l>(chunk);
      sync_workers();
      MARK(GRADIENT_FETCHED + l)
      multiply<l>(part, c);
      if constexpr (CHUNKS > 1) {
        sync_workers();
        turn ^= 1;
      }
    }
#pragma unroll
    for (int f = 0; f < part.N; f++)  // also fragments that do not exist: nothing reads them
#pragma unroll
      for (int e = 0; e < 4; e++) 
        learn(of<l>().w[f][e], of<l>().first[f][e], of<l>().second(f)[e], c[f][e], l2);
    if (part.bias && t == 0)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        Parameter& bias = s.biases[biases_at<l> + part.row + g + e * 8];
        learn(bias.value, bias.moments[0], bias.moments[MOMENTS - 1], c[part.N][2 * e], 0.f);
      }
    share_weights<l>(part, next);
    MARK(LAYER_UPDATED + LAYERS - l)
  }

  // ---- a step
  template <int l> __device__ __forceinline__ void fetch_hidden_inputs() {
    fetch_inputs<l>(0, 0);
    if constexpr (l + 1 < LAYERS) fetch_hidden_inputs<l + 1>();
  }
  template <int l> __device__ __forceinline__ void fetch_all_deltas() {
    fetch_deltas<l>(0, 0);
    if constexpr (l > 0) fetch_all_deltas<l - 1>();
  }
  template <int l> __device__ __forceinline__ void forward_from() {
    if constexpr (l < HIDDEN) {
      forward<l>();
      MARK(NEXT_HIDDEN + l)
      forward_from<l + 1>();
    }
  }
  template <int l> __device__ __forceinline__ void update_from() {
    if constexpr (l < HIDDEN) {
      update<l, 0>();
      update_from<l + 1>();
    }
  }

  __device__ __forceinline__ void train_step() {
    MARK(STEP_WAITS)
    barrier_sync<STEP_BEGINS, THREADS>();
    MARK(STEP_BEGAN)
    rate = a.rates[a.first_step + step];
    forward<0>();
    barrier_arrive<INPUT_READ, THREADS>();
    MARK(FIRST_HIDDEN)
    if constexpr (CHUNKS == 1) fetch_inputs<0>(0, 0);
    MARK(INPUTS_REQUESTED)
    forward_from<1>();
    fetch_last_hidden();
    barrier_sync<OUTPUT_HERE, THREADS>();  // s.hidden and the weights are written
    MARK(LAST_HIDDEN_FETCHED)
    if constexpr (CHUNKS == 1) fetch_hidden_inputs<1>();
    copy_commit();
    output();
    MARK(OUTPUT_DONE)
    last_hidden();
    MARK(LAST_DELTA)
    if constexpr (HIDDEN > 1) backward<HIDDEN - 1>(); else sync_workers();
    MARK(ALL_DELTAS)
    turn = 0;
    if constexpr (CHUNKS == 1) fetch_all_deltas<HIDDEN>(); else fetch_next<HIDDEN>(turn);
    MARK(DELTAS_REQUESTED)
    update<HIDDEN, HIDDEN>();
    update<0, 0>();  // before the others: the next step needs it first
    update_from<1>();
    MARK(STEP_ENDED)
  }

  __device__ __forceinline__ void run() {
    now.base = a.exchange;
    load_all();
    share_all<0>(now);
    for (step = 0; step < a.n_steps; step++) {
      now.base = a.exchange + step % 3 * TURN;
      next.base = a.exchange + (step + 1) % 3 * TURN;
      train_step();
    }
    store_all();
  }
};
