// A worker: the passes, and the update of its tiles of the weights.

template <int l> struct Tile {  // tile of this block in layer l
  bool ours, has_bias;
  int in, out;
  __device__ explicit Tile(int block) {
    const int at = (block - first_block<l> + BLOCKS) % BLOCKS;
    ours = at < tiles<l>;
    in = at % tiles_across<l> * tile_in<l>;
    out = at / tiles_across<l> * tile_out<l>;
    has_bias = ours && at % tiles_across<l> == tiles_across<l> - 1;
  }
};

template <int l> struct Part : Tile<l> {  // part of a warp in the tile: fragments<l> of 16 x 8
  static constexpr int N = fragments<l>;
  int row, column;   // within the tile
  bool rows, bias;   // whether its rows exist; whether it updates the bias
  __device__ Part(int block, int warp) : Tile<l>(block) {
    row = warp % warps_down<l> * 16;
    column = warp / warps_down<l> * N * 8;
    rows = this->ours && this->out + row < size<l + 1>;
    bias = rows && this->has_bias && warp / warps_down<l> == warps_across<l> - 1;
  }
  __device__ bool exists(int f) const {
    return rows && column + f * 8 < tile_in<l> && this->in + column + f * 8 < size<l>;
  }
};

struct Worker : Passes {
  Mine<0> mine{};
  float rate;
  const float momentum, l2;

  __device__ Worker(const Persistent& args, Shared& shared)
      : Passes(args, shared), momentum(args.momentum), l2(args.l2) {}

  template <int l> __device__ __forceinline__ Mine<l>& of() { return mine; }

  // ---- parameters: from and to memory, to the exchange

  // Calls each(master, velocity, their addresses in params and velocity).
  template <int l, class Each> __device__ __forceinline__ void each_parameter(Each each) {
    const Part<l> part(block, warp);
    const int row = part.out + part.row + g;
    const int first = weights_at<l> + (part.in + part.column + 2 * t) * size<l + 1> + row;
    float *w = a.params + first, *v = a.velocity + first;
#pragma unroll
    for (int f = 0; f < part.N; f++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int at = (f * 8 + e % 2) * size<l + 1> + e / 2 * 8;
        if (part.exists(f)) each(of<l>().w[f][e], of<l>().v[f][e], w + at, v + at);
      }
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const int at = weights_at<LAYERS> + bias_at<l> + row + e * 8;
      if (part.bias && t == 0) {
        float2& bias = s.biases[biases_at<l> + part.row + g + e * 8];
        each(bias.x, bias.y, a.params + at, a.velocity + at);
      }
    }
    if constexpr (l + 1 < LAYERS) each_parameter<l + 1>(each);
  }

  template <int l> __device__ __forceinline__ void share_weights(const Part<l>& part, Turn to) {
    constexpr int IN = size<l>, OUT = size<l + 1>;
    const int row = part.out + part.row;
#pragma unroll
    for (int f = 0; f < part.N; f++) {
      if (!part.exists(f)) continue;
      const auto& w = of<l>().w[f];
      const unsigned top = pair(w[0], w[1]), low = pair(w[2], w[3]);
      const int column = part.in + part.column + f * 8;
      T* at = to.data(forward_at<l>) + (row + g) * IN + column + 2 * t;
      publish(at, top);
      publish(at + 8 * IN, low);
      if constexpr (0 < l && l < HIDDEN) {
        at = to.data(backward_at<l>) + (column + g) * OUT + row + 2 * t;
        publish(at, transposed(top));
        publish(at + 8, transposed(low));
      }
    }
    if (part.bias && t == 0)
#pragma unroll
      for (int e = 0; e < 2; e++)
        publish(to.biases(bias_at<l> + row + g + e * 8),
                __float_as_uint(s.biases[biases_at<l> + part.row + g + e * 8].x));
  }

  template <int l> __device__ __forceinline__ void share_all(Turn to) {
    share_weights<l>(Part<l>(block, warp), to);
    if constexpr (l + 1 < LAYERS) share_all<l + 1>(to);
  }

  // ---- weight gradients: deltas (BATCH, out) transposed times inputs (BATCH, in)
  template <int l> __device__ __forceinline__ T* deltas(int chunk) {
    return s.hidden + (CHUNKS > 1 ? chunk % 2 * widest_pair<0> : deltas_at<l>);
  }
  template <int l> __device__ __forceinline__ T* inputs(int chunk) {
    if constexpr (CHUNKS > 1)
      return deltas<l>(chunk) + CHUNK * delta_pitch<l>;
    else if constexpr (l > 0)
      return s.hidden + inputs_at<l>;
    else
      return s.columns;
  }
  template <int l> __device__ __forceinline__ auto delta_rows(int chunk, int out) const {
    const T* from = now.data(delta_at<l + 1>) + chunk * CHUNK * size<l + 1> + out;
    return [from](int r) { return from + r * size<l + 1>; };
  }
  template <int l> __device__ __forceinline__ auto input_rows(int chunk, int in) const {
    if constexpr (l > 0) {
      const T* from = now.data(hidden_at<l>) + chunk * CHUNK * size<l> + in;
      return [from](int r) { return from + r * size<l>; };
    } else {
      const int* index = s.index[step & 1] + chunk * CHUNK;
      const T* from = a.x + in;
      return [from, index](int r) { return from + (long long)index[r] * size<0>; };
    }
  }

  template <int l> __device__ __forceinline__ void fetch_inputs(int chunk) {
    const Tile<l> tile(block);
    if (tile.ours)
      fetch<WORKERS, CHUNK, tile_in<l>, input_pitch<l>>(
          inputs<l>(chunk), me, size<l> - tile.in, input_rows<l>(chunk, tile.in));
  }
  template <int l> __device__ __forceinline__ void fetch_deltas(int chunk) {
    const Tile<l> tile(block);
    if (tile.ours)
      fetch<WORKERS, CHUNK, tile_out<l>, delta_pitch<l>>(
          deltas<l>(chunk), me, size<l + 1> - tile.out, delta_rows<l>(chunk, tile.out));
    copy_commit();
  }
  template <int l> __device__ __forceinline__ void settle_operands(int chunk) {
    const Tile<l> tile(block);
    settle_fetched<WORKERS, CHUNK, tile_out<l>, delta_pitch<l>>(
        deltas<l>(chunk), me, size<l + 1> - tile.out, delta_rows<l>(chunk, tile.out));
    if constexpr (l > 0)
      settle_fetched<WORKERS, CHUNK, tile_in<l>, input_pitch<l>>(
          inputs<l>(chunk), me, size<l> - tile.in, input_rows<l>(chunk, tile.in));
  }

  // The gradient of the bias is the sum of the deltas, computed as their product with ones.
  template <int l>
  __device__ __forceinline__ void multiply(const Part<l>& part, int chunk,
                                           float (&c)[fragments<l>][4], float (&sums)[4]) {
    constexpr int N = fragments<l>, P = delta_pitch<l>, Q = input_pitch<l>;
    if (!part.exists(0) && !part.bias) return;
    const T* left = deltas<l>(chunk) + (lane % 8 + lane / 16 * 8) * P + part.row + lane / 8 % 2 * 8;
    const T* right = inputs<l>(chunk) + lane % 16 * Q;
    int at[(N + 1) / 2];
#pragma unroll
    for (int f = 0; f < N; f += 2) {
      at[f / 2] = part.column + (f + 1 < N ? f + lane / 16 : f) * 8;
      if (at[f / 2] >= tile_in<l>) at[f / 2] = 0;  // a fragment that does not exist
    }
#pragma unroll
    for (int k = 0; k < CHUNK; k += 16) {
      unsigned x[4], y[4];
      load_transposed(x, left + k * P);
#pragma unroll
      for (int f = 0; f < N; f += 2) {
        load_transposed(y, right + k * Q + at[f / 2]);
        mma(c[f], x[0], x[1], x[2], x[3], y[0], y[1]);
        if (f + 1 < N) mma(c[f + 1 < N ? f + 1 : f], x[0], x[1], x[2], x[3], y[2], y[3]);
      }
      if (part.bias) mma(sums, x[0], x[1], x[2], x[3], ONES, ONES);
    }
  }

  // ---- the update. v = mu v + g; w -= rate v, or Nesterov's rate (g + mu v)
  __device__ __forceinline__ void learn(float& w, float& v, float sum, float decay) const {
    const float gradient = fmaf(decay, w, sum * (1.f / BATCH));
    v = fmaf(momentum, v, gradient);
#if defined(PLAN_NESTEROV)
    w -= rate * fmaf(momentum, v, gradient);
#else
    w -= rate * v;
#endif
  }

  // PENDING: number of later fetches that can still be in progress.
  template <int l, int PENDING> __device__ __forceinline__ void update() {
    const Part<l> part(block, warp);
    if (!part.ours) return;
    float c[fragments<l>][4] = {}, sums[4] = {};
    if constexpr (CHUNKS > 1) {
      fetch_inputs<l>(0);
      fetch_deltas<l>(0);
    }
#pragma unroll 1
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
      if constexpr (CHUNKS > 1) {
        if (chunk + 1 < CHUNKS) fetch_inputs<l>(chunk + 1);
        if (chunk + 1 < CHUNKS) fetch_deltas<l>(chunk + 1); else copy_commit();
      }
      copy_wait<(CHUNKS > 1 ? 1 : PENDING)>();
      settle_operands<l>(chunk);
      sync_workers();
      MARK(16 + l)
      multiply<l>(part, chunk, c, sums);
      if (CHUNKS > 1) sync_workers();
    }
#pragma unroll
    for (int f = 0; f < part.N; f++)  // also fragments that do not exist: nothing reads them
#pragma unroll
      for (int e = 0; e < 4; e++) learn(of<l>().w[f][e], of<l>().v[f][e], c[f][e], l2);
    if (part.bias && t == 0)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        float2& bias = s.biases[biases_at<l> + part.row + g + e * 8];
        learn(bias.x, bias.y, sums[2 * e], 0.f);
      }
    share_weights<l>(part, next);
    MARK(12 + LAYERS - l)
  }

  // ---- a step
  template <int l> __device__ __forceinline__ void fetch_hidden_inputs() {
    fetch_inputs<l>(0);
    if constexpr (l + 1 < LAYERS) fetch_hidden_inputs<l + 1>();
  }
  template <int l> __device__ __forceinline__ void fetch_all_deltas() {
    fetch_deltas<l>(0);
    if constexpr (l > 0) fetch_all_deltas<l - 1>();
  }
  template <int l> __device__ __forceinline__ void forward_from() {
    if constexpr (l < HIDDEN) {
      forward<l>();
      MARK(2 + l)
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
    MARK(31)
    barrier_sync<STEP_BEGINS, THREADS>();
    MARK(0)
    rate = a.rates[a.first_step + step];
    forward<0>();
    barrier_arrive<INPUT_READ, THREADS>();
    MARK(1)
    if constexpr (CHUNKS == 1) fetch_inputs<0>(0);
    MARK(2)
    forward_from<1>();
    fetch_rows<size<HIDDEN>, hidden_at<HIDDEN>>();
    barrier_sync<OUTPUT_HERE, THREADS>();  // s.hidden and the weights are written
    MARK(8)
    if constexpr (CHUNKS == 1) fetch_hidden_inputs<1>();
    copy_commit();
    output();
    MARK(9)
    last_hidden();
    MARK(10)
    if constexpr (HIDDEN > 1) backward<HIDDEN - 1>(); else sync_workers();
    MARK(11)
    if constexpr (CHUNKS == 1) fetch_all_deltas<HIDDEN>();
    MARK(12)
    update<HIDDEN, HIDDEN>();
    update<0, 0>();  // before the others: the next step needs it first
    update_from<1>();
    MARK(30)
  }

  __device__ void run() {
    now.base = a.exchange;
    each_parameter<0>([](float& w, float& v, float* in, float* v_in) { w = *in, v = *v_in; });
    share_all<0>(now);
    for (step = 0; step < a.n_steps; step++) {
      now.base = a.exchange + step % 3 * TURN;
      next.base = a.exchange + (step + 1) % 3 * TURN;
      train_step();
    }
    each_parameter<0>([](float& w, float& v, float* out, float* v_out) { *out = w, *v_out = v; });
  }
};
