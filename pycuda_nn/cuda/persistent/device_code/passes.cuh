// The passes of a step: values of the hidden layers, and gradients of their z.

struct Passes : Outputs {
  const Dropping dropping;

  __device__ Passes(const Persistent& args, Shared& shared)
      : Outputs(args, shared), dropping(args.scale) {}

  template <int h> __device__ __forceinline__ int own(int i, int r, int column) const {
    return own_at<h> + ((i * ROWS + r) * strip<h> * 16 + column) / 2;
  }

  // ---- forward: strips of this block of hidden layer l + 1 = activation(hidden layer l times W + b)
  template <int l> __device__ __forceinline__ void forward() {
    constexpr int K = size<l>, N = size<l + 1>, WIDE = 16 * strip<l + 1>;
#pragma unroll 1
    for (int i = 0; i < share<l + 1>; i++) {
      const int first = (group + i * COLUMN_GROUPS) * WIDE, column = first + me % (WIDE / 2) * 2;
      if (first >= N) return;
      uint2 bias[1];
      auto place = [&](int) { return (const T*)now.biases(bias_at<l> + column); };
      begin(bias, place);
      Sums<strip<l + 1>> c;
      const T* weights = now.data(forward_at<l>) + first * K;
      if constexpr (l == 0)
        product<K, INPUT_PITCH, 0>(c, s.input, weights);
      else
        product<K, 0, 0>(c, now.data(hidden_at<l>) + row * K, weights);
      MARK(FORWARD_PRODUCT + l)
      settle(bias, place);
      T* to = now.data(hidden_at<l + 1>) + row * N + column;
      sum(c, [&](int, int r, int in_strip, float x, float y) {
        const int at = own<l + 1>(i, r, in_strip);
        const unsigned kept = DROPOUT ? s.masks[step & 1][at / 8] >> in_strip % 16 : 0;
        x += __uint_as_float(bias[0].x);
        y += __uint_as_float(bias[0].y);
        const bool in = ZERO_AT_ZERO || column < width<l + 1>;
        const bool next_in = ZERO_AT_ZERO || column + 1 < width<l + 1>;
        const Pair both = pair(in ? dropping.value(activated(x), kept & 1) : 0.f,
                               next_in ? dropping.value(activated(y), kept & 2) : 0.f);
        s.own[at] = both;
        if constexpr (SLOPES) {
          s.own[at] = pair(in ? dropping.own_slope(x, kept & 1) : 0.f,
                           next_in ? dropping.own_slope(y, kept & 2) : 0.f);
          if (l + 1 == HIDDEN) publish(now.data(slopes_at) + (row + r) * N + column, s.own[at]);
        }
        publish(to + r * N, both);
      });
    }
  }

  // ---- copy the rows of this row group, N columns, from AT in the exchange to shared memory
  template <int N, int AT> __device__ __forceinline__ auto rows_at() const {
    const T* rows = now.data(AT) + row * N;
    return [rows](int r) { return rows + r * N; };
  }
  template <int N, int AT> __device__ __forceinline__ void begin_rows(T* to) {
    fetch<WORKERS, ROWS, N, HIDDEN_PITCH>(to, me, N, rows_at<N, AT>());
    copy_commit();
  }
  template <int N, int AT> __device__ __forceinline__ void settle_rows(T* to) {
    copy_wait<0>();
    settle_fetched<WORKERS, ROWS, N, HIDDEN_PITCH>(to, me, N, rows_at<N, AT>());
  }
  __device__ __forceinline__ void fetch_last_hidden() {
    constexpr int N = size<HIDDEN>;
    begin_rows<N, hidden_at<HIDDEN>>(s.hidden);
    if constexpr (SLOPES) begin_rows<N, slopes_at>(s.slopes);
    settle_rows<N, hidden_at<HIDDEN>>(s.hidden);
    if constexpr (SLOPES) settle_rows<N, slopes_at>(s.slopes);
  }

  // ---- gradient of z of the last hidden layer: all columns of the rows of the group, to s.hidden
  __device__ __forceinline__ void last_hidden() {
    constexpr int N = size<HIDDEN>, D = OUTPUTS / DEPTH, P = OUTPUT_WEIGHTS_PITCH;
    const T* weights = s.output_weights + place_of_b<P>(lane) + fragment_of_b(lane) * 8;
#pragma unroll 1
    for (int m = 0; m < ROWS; m += 16) {
      unsigned x[D][4];
#pragma unroll
      for (int k = 0; k < D; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
          x[k][i] = *(const unsigned*)&s.output[(m + i % 2 * 8 + g) * OUTPUT_PITCH + k * DEPTH +
                                                (i / 2 * 4 + t) * WORD];
#pragma unroll(OUTPUT_TILES == 1 ? 2 : 1)
      for (int n = warp * 16; n < N; n += WARPS * 16) {  // two fragments of 8 columns
        const bool ours = (unsigned)n / (16 * strip<HIDDEN>) % COLUMN_GROUPS == group;
        if (HIDDEN == 1 && !ours) continue;
        float c[2][4] = {}, rest[2][4] = {};
#pragma unroll
        for (int k = 0; k < D; k++) {
          unsigned b[4];
          load_b<P>(b, weights + k * DEPTH * P + n);
          add_product(c[0], rest[0], x[k], {b[0], b[1]});
          add_product(c[1], rest[1], x[k], {b[2], b[3]});
        }
#pragma unroll
        for (int i = 0; EXACT && i < 8; i++) c[i / 4][i % 4] += rest[i / 4][i % 4];
        const int place = (m + g) * HIDDEN_PITCH + n + 2 * t;
        Pair* at = (Pair*)&s.hidden[place];
        const Pair* old = SLOPES ? (const Pair*)&s.slopes[place] : at;
        T* to = now.data(delta_at<HIDDEN>) + (row + m + g) * N + n + 2 * t;
#pragma unroll
        for (int i = 0; i < 2; i++) {
          const Pair top = dropping.sloped(c[i][0], c[i][1], old[4 * i]);
          const Pair low = dropping.sloped(c[i][2], c[i][3], old[4 * i + 4 * HIDDEN_PITCH]);
          at[4 * i] = top;
          at[4 * i + 4 * HIDDEN_PITCH] = low;
          if (ours) {
            publish(to + 8 * i, top);
            publish(to + 8 * i + 8 * N, low);
          }
        }
      }
    }
  }

  // ---- backward: gradient of z of hidden layer h from that of h + 1 in s.hidden, for our strips
  template <int h> __device__ __forceinline__ void backward() {
    constexpr int K = size<h + 1>, N = size<h>, WIDE = 16 * strip<h>;
    if constexpr (h + 1 < HIDDEN) {
      begin_rows<K, delta_at<h + 1>>(s.hidden);
      settle_rows<K, delta_at<h + 1>>(s.hidden);
    }
    sync_workers();  // s.hidden is written
#pragma unroll 1
    for (int i = 0; i < share<h>; i++) {
      const int first = (group + i * COLUMN_GROUPS) * WIDE;
      if (first >= N) break;
      Sums<strip<h>> c;
      product<K, HIDDEN_PITCH, 0>(c, s.hidden, now.data(backward_at<h>) + first * K);
      MARK(BACKWARD_PRODUCT + h)
      T* to = now.data(delta_at<h>) + row * N + first;
      sum(c, [&](int, int r, int column, float x, float y) {
        publish(to + r * N + column, dropping.sloped(x, y, s.own[own<h>(i, r, column)]));
      });
    }
    if constexpr (h > 1) backward<h - 1>();
  }
};
