// Places of the threads, and the products of the passes, computed by the eight worker warps.

struct Place {  // place of a thread
  int block, row, group, me, warp, lane, g, t;
  __device__ Place()
      : block(blockIdx.x), row(blockIdx.x / COLUMN_GROUPS * ROWS),
        group(blockIdx.x % COLUMN_GROUPS), me(threadIdx.x), warp(threadIdx.x / 32),
        lane(threadIdx.x % 32), g(threadIdx.x % 32 / 4), t(threadIdx.x % 4) {}
};

struct Products : Place {
  const Persistent& a;
  Shared& s;
  Turn now, next;
  int step, turn_of_sums;

  __device__ Products(const Persistent& args, Shared& shared) : a(args), s(shared), turn_of_sums(0) {}

  template <int TILES> struct Sums { float at[TALL][2 * TILES][4]; };

  // Rows (ROWS, K) times TILES tiles of 16 rows of weights (., K), transposed, over the part of K of
  // this warp. A pitch is that of shared memory; 0 means that the matrix is in the exchange.
  template <int K, int PITCH, int WEIGHTS_PITCH, int TILES>
  __device__ __forceinline__ void product(Sums<TILES>& c, const T* rows, const T* weights) {
    constexpr int ROUNDS = ceil_div(ceil_div(K, 4 * PIECE), DEEP), A = 2 * TALL, B = 2 * TILES;
    constexpr int Q = at_most(ROUNDS, PITCH ? 16 / B : 2), APART = DEEP * 4 * PIECE;
    constexpr int P = PITCH ? PITCH : K, W = WEIGHTS_PITCH ? WEIGHTS_PITCH : K;
    const int deep = (unsigned)warp / ROW_WARPS * 4 * PIECE + t * PIECE;
    rows += (warp % ROW_WARPS * 16 * TALL + g) * P + deep;
    weights += g * W + deep;
    Sums<TILES> part, rest;  // EXACT: sums of a few mma, whose results are not rounded to nearest
    Sums<TILES>& to = EXACT ? part : c;
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
      if (EXACT) part = rest = {};
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
            add_product(to.at[m][n], rest.at[m][n], {u.x, v.x, u.y, v.y}, {w.x, w.y});
            add_product(to.at[m][n], rest.at[m][n], {u.z, v.z, u.w, v.w}, {w.z, w.w});
          }
      }
#pragma unroll
      for (int i = 0; EXACT && i < TALL * B; i++)
        add_all(c.at[i / B][i % B], part.at[i / B][i % B], rest.at[i / B][i % B]);
    }
  }

  // Adds the parts of all warps; calls each(visit, r, c, even, odd) for the pairs of this thread, at
  // row r and columns c, c + 1.
  template <int TILES, class Each>
  __device__ __forceinline__ void sum(const Sums<TILES>& c, Each each) {
    constexpr int ACROSS = 8 * TILES, DOWN = WORKERS / ACROSS;
    auto& sums = s.sums[turn_of_sums];
    turn_of_sums ^= 1;  // other threads can still read the previous buffer
    float* at = &sums[(unsigned)warp / ROW_WARPS][warp % ROW_WARPS * 16 * TALL + g][2 * t];
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
};
