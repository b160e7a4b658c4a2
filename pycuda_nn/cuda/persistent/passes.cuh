// The passes of a step, computed by the eight worker warps.

struct Passes : Place {
  const Persistent& a;
  Shared& s;
  Turn now, next;
  int step, turn_of_sums;

  __device__ Passes(const Persistent& args, Shared& shared) : a(args), s(shared), turn_of_sums(0) {}

  // ---- products of the passes

  template <int TILES> struct Sums { float at[TALL][2 * TILES][4]; };

  // Rows (ROWS, K) times TILES tiles of 16 rows of weights (., K), transposed, over the part of K of
  // this warp. A pitch is that of shared memory; 0 means that the matrix is in the exchange.
  template <int K, int PITCH, int WEIGHTS_PITCH, int TILES>
  __device__ __forceinline__ void product(Sums<TILES>& c, const T* rows, const T* weights) {
    constexpr int ROUNDS = ceil_div(ceil_div(K, 32), DEEP), A = 2 * TALL, B = 2 * TILES;
    constexpr int Q = at_most(ROUNDS, PITCH ? 16 / B : 2), APART = DEEP * 32;
    constexpr int P = PITCH ? PITCH : K, W = WEIGHTS_PITCH ? WEIGHTS_PITCH : K;
    const int deep = (unsigned)warp / BESIDE * 32 + t * 8;
    rows += (warp % BESIDE * 16 * TALL + g) * P + deep;
    weights += g * W + deep;
    c = {};
#pragma unroll 1
    for (int k = 0; k < ROUNDS * APART; k += Q * APART, rows += Q * APART, weights += Q * APART) {
      auto exists = [&](int q) {  // a constant, except at the end of the depth
        return ROUNDS == Q && (q + 1) * APART <= K ? true : k + q * APART + deep < K;
      };
      auto weights_of = [&](int i) {
        return exists(i / B) ? weights + (i / B * APART + i % B * 8 * W) : nullptr;
      };
      auto rows_of = [&](int i) {
        return exists(i / A) ? rows + (i / A * APART + i % A * 8 * P) : nullptr;
      };
      uint4 b[Q * B], x[Q * A];
      if constexpr (!WEIGHTS_PITCH) begin(b, weights_of);
      if constexpr (!PITCH) begin(x, rows_of);
      if constexpr (!PITCH) settle(x, rows_of);
      if constexpr (!WEIGHTS_PITCH) settle(b, weights_of);
#pragma unroll
      for (int q = 0; q < Q; q++) {
        if constexpr (WEIGHTS_PITCH)
#pragma unroll
          for (int i = q * B; i < q * B + B; i++)
            b[i] = exists(q) ? *(const uint4*)weights_of(i) : uint4{};
        if constexpr (PITCH)
#pragma unroll
          for (int i = q * A; i < q * A + A; i++)
            x[i] = exists(q) ? *(const uint4*)rows_of(i) : uint4{};
#pragma unroll
        for (int m = 0; m < TALL; m++)
#pragma unroll
          for (int n = 0; n < B; n++) {
            const uint4 u = x[q * A + 2 * m], v = x[q * A + 2 * m + 1], w = b[q * B + n];
            mma(c.at[m][n], u.x, v.x, u.y, v.y, w.x, w.y);
            mma(c.at[m][n], u.z, v.z, u.w, v.w, w.z, w.w);
          }
      }
    }
  }

  // Adds the parts of all warps; calls each(visit, r, c, even, odd) for the pairs of this thread, at
  // row r and columns c, c + 1.
  template <int TILES, class Each>
  __device__ __forceinline__ void sum(const Sums<TILES>& c, Each each) {
    constexpr int ACROSS = 8 * TILES, DOWN = WORKERS / ACROSS;
    auto& sums = s.sums[turn_of_sums];
    turn_of_sums ^= 1;  // other threads can still read the previous buffer
    float* at = &sums[(unsigned)warp / BESIDE][warp % BESIDE * 16 * TALL + g][2 * t];
#pragma unroll
    for (int i = 0; i < TALL * TILES * 4; i++) {
      const int m = i / (4 * TILES), n = i / 2 % (2 * TILES), e = i % 2;
      *(float2*)(at + (m * 16 + e * 8) * SUM_PITCH + n * 8) =
          float2{c.at[m][n][2 * e], c.at[m][n][2 * e + 1]};
    }
    sync_workers();
    const int first = me / ACROSS, column = me % ACROSS * 2;
#pragma unroll
    for (int visit = 0; visit < ceil_div(ROWS, DOWN); visit++) {
      const int r = first + visit * DOWN;
      if ((visit + 1) * DOWN > ROWS && r >= ROWS) break;
      float2 total = *(const float2*)&sums[0][r][column];
#pragma unroll
      for (int k = 1; k < DEEP; k++) {
        const float2 part = *(const float2*)&sums[k][r][column];
        total.x += part.x;
        total.y += part.y;
      }
      each(visit, r, column, total.x, total.y);
    }
  }

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
      MARK(24 + l)
      settle(bias, place);
      T* to = now.data(hidden_at<l + 1>) + row * N + column;
      sum(c, [&](int, int r, int in_strip, float x, float y) {
        x = activated(x + __uint_as_float(bias[0].x));
        y = activated(y + __uint_as_float(bias[0].y));
#if defined(PLAN_SIGMOID)  // sigmoid(0) is not 0, but padding must be 0
        if (column >= width<l + 1>) x = 0.f;
        if (column + 1 >= width<l + 1>) y = 0.f;
#endif
        const unsigned both = pair(x, y);
        s.own[own<l + 1>(i, r, in_strip)] = both;
        publish(to + r * N, both);
      });
    }
  }

  // ---- copy the rows of this row group, N columns, from AT in the exchange to s.hidden
  template <int N, int AT> __device__ __forceinline__ void fetch_rows() {
    const T* rows = now.data(AT) + row * N;
    auto from = [&](int r) { return rows + r * N; };
    fetch<WORKERS, ROWS, N, HIDDEN_PITCH>(s.hidden, me, N, from);
    copy_commit();
    copy_wait<0>();
    settle_fetched<WORKERS, ROWS, N, HIDDEN_PITCH>(s.hidden, me, N, from);
  }

  // ---- logits of all rows of the group, their loss, and its gradient, times the batch size
  static constexpr int CLASS_TILES = OUTPUTS / 16, VISITS = ceil_div(ROWS * 8, WORKERS);
  typedef float Logits[CLASS_TILES][2];  // logits of one row in a thread

  __device__ __forceinline__ bool publishes_output() const { return group == COLUMN_GROUPS - 1; }

  __device__ __forceinline__ void output() {
    constexpr int K = size<HIDDEN>;
    Logits z[VISITS];
#pragma unroll
    for (int i = 0; i < CLASS_TILES; i++) {
      uint2 bias[1];
      auto place = [&](int) {
        return (const T*)now.biases(bias_at<HIDDEN> + i * 16 + me % 8 * 2);
      };
      begin(bias, place);
      Sums<1> c;
      product<K, HIDDEN_PITCH, OUTPUT_WEIGHTS_PITCH>(
          c, s.hidden, s.output_weights + i * 16 * OUTPUT_WEIGHTS_PITCH);
      settle(bias, place);
      sum(c, [&](int visit, int, int, float x, float y) {
        z[visit][i][0] = x + __uint_as_float(bias[0].x);
        z[visit][i][1] = y + __uint_as_float(bias[0].y);
      });
    }
#pragma unroll
    for (int visit = 0; visit < VISITS; visit++)
      if (me + visit * WORKERS < ROWS * 8) softmax(me / 8 + visit * WORKERS / 8, z[visit]);
    sync_workers();
    if (publishes_output() && warp == 0) {
      float loss = 0.f;
      for (int r = lane; r < ROWS; r += 32) loss += s.losses[r];
      loss = warp_sum(loss);
      if (lane == 0) publish(now.loss((unsigned)row / ROWS), __float_as_uint(loss));
    }
  }

  // Cross-entropy of row r; each of 8 lanes has 2 logits of each tile.
  __device__ __forceinline__ void softmax(int r, Logits& z) {
    const int label = s.label[step & 1][r];
    float most = -3.4e38f, total = 0.f, right = 0.f;
    auto column_of = [&](int i) { return i / 2 * 16 + me % 8 * 2 + i % 2; };
#pragma unroll
    for (int i = 0; i < CLASS_TILES * 2; i++)
      if (column_of(i) < CLASSES) most = fmaxf(most, z[i / 2][i % 2]);
#pragma unroll
    for (int lanes = 4; lanes; lanes >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, lanes));
#pragma unroll
    for (int i = 0; i < CLASS_TILES * 2; i++)
      if (column_of(i) < CLASSES) {
        float& x = z[i / 2][i % 2];
        right += column_of(i) == label ? x : 0.f;
        x = __expf(x - most);
        total += x;
      }
#pragma unroll
    for (int lanes = 4; lanes; lanes >>= 1) {
      total += __shfl_xor_sync(~0u, total, lanes);
      right += __shfl_xor_sync(~0u, right, lanes);
    }
    const float scale = __fdividef(1.f, total);
#pragma unroll
    for (int i = 0; i < CLASS_TILES; i++) {
      const int column = i * 16 + me % 8 * 2;
      const float x = column < CLASSES ? z[i][0] * scale - (column == label) : 0.f;
      const float y = column + 1 < CLASSES ? z[i][1] * scale - (column + 1 == label) : 0.f;
      const unsigned both = pair(x, y);
      *(unsigned*)&s.output[r * OUTPUT_PITCH + column] = both;
      if (publishes_output())
        publish(now.data(delta_at<LAYERS>) + (row + r) * OUTPUTS + column, both);
    }
    if (me % 8 == 0) s.losses[r] = __logf(total) + most - right;
  }

  // ---- gradient of z of the last hidden layer: all columns of the rows of the group, to s.hidden
  __device__ __forceinline__ void last_hidden() {
    constexpr int N = size<HIDDEN>, D = CLASS_TILES, P = OUTPUT_WEIGHTS_PITCH;
    const T* weights = s.output_weights + lane % 16 * P + lane / 16 * 8;
#pragma unroll 1
    for (int m = 0; m < ROWS; m += 16) {
      unsigned x[D][4];
#pragma unroll
      for (int k = 0; k < D; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
          x[k][i] = *(const unsigned*)&s.output[(m + i % 2 * 8 + g) * OUTPUT_PITCH + k * 16 +
                                                i / 2 * 8 + 2 * t];
#pragma unroll(D == 1 ? 2 : 1)
      for (int n = warp * 16; n < N; n += WARPS * 16) {  // two fragments of 8 columns
        const bool ours = (unsigned)n / (16 * strip<HIDDEN>) % COLUMN_GROUPS == group;
        if (HIDDEN == 1 && !ours) continue;
        float c[2][4] = {};
#pragma unroll
        for (int k = 0; k < D; k++) {
          unsigned b[4];
          load_transposed(b, weights + k * 16 * P + n);
          mma(c[0], x[k][0], x[k][1], x[k][2], x[k][3], b[0], b[1]);
          mma(c[1], x[k][0], x[k][1], x[k][2], x[k][3], b[2], b[3]);
        }
        unsigned* at = (unsigned*)&s.hidden[(m + g) * HIDDEN_PITCH + n + 2 * t];
        T* to = now.data(delta_at<HIDDEN>) + (row + m + g) * N + n + 2 * t;
#pragma unroll
        for (int i = 0; i < 2; i++) {
          const unsigned top = sloped(c[i][0], c[i][1], at[4 * i]);
          const unsigned low = sloped(c[i][2], c[i][3], at[4 * i + 4 * HIDDEN_PITCH]);
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
    if constexpr (h + 1 < HIDDEN) fetch_rows<K, delta_at<h + 1>>();
    sync_workers();  // s.hidden is written
#pragma unroll 1
    for (int i = 0; i < share<h>; i++) {
      const int first = (group + i * COLUMN_GROUPS) * WIDE;
      if (first >= N) break;
      Sums<strip<h>> c;
      product<K, HIDDEN_PITCH, 0>(c, s.hidden, now.data(backward_at<h>) + first * K);
      MARK(20 + h)
      T* to = now.data(delta_at<h>) + row * N + first;
      sum(c, [&](int, int r, int column, float x, float y) {
        publish(to + r * N + column, sloped(x, y, s.own[own<h>(i, r, column)]));
      });
    }
    if constexpr (h > 1) backward<h - 1>();
  }
};
