// Gradients of the weights: deltas (BATCH, out) transposed times inputs (BATCH, in).

struct Gradients : Parameters {
  using Parameters::Parameters;

  int turn;  // buffer of the operands of a chunk, 0 or 1

  template <int l> __device__ __forceinline__ T* deltas(int turn) {
    return s.hidden + (CHUNKS > 1 ? turn * widest_pair<0> : deltas_at<l>);
  }
  template <int l> __device__ __forceinline__ T* inputs(int turn) {
    if constexpr (CHUNKS > 1)
      return deltas<l>(turn) + CHUNK * delta_pitch<l>;
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

  template <int l> __device__ __forceinline__ void fetch_inputs(int chunk, int turn) {
    const Tile<l> tile(block);
    if (tile.ours)
      fetch<WORKERS, CHUNK, tile_in<l>, input_pitch<l>>(
          inputs<l>(turn), me, size<l> - tile.in, input_rows<l>(chunk, tile.in));
  }
  template <int l> __device__ __forceinline__ void fetch_deltas(int chunk, int turn) {
    const Tile<l> tile(block);
    if (tile.ours)
      fetch<WORKERS, CHUNK, tile_out<l>, delta_pitch<l>>(
          deltas<l>(turn), me, size<l + 1> - tile.out, delta_rows<l>(chunk, tile.out));
    copy_commit();
  }
  template <int l> __device__ __forceinline__ void settle_operands(int chunk) {
    const Tile<l> tile(block);
    settle_fetched<WORKERS, CHUNK, tile_out<l>, delta_pitch<l>>(
        deltas<l>(turn), me, size<l + 1> - tile.out, delta_rows<l>(chunk, tile.out));
    if constexpr (l > 0)
      settle_fetched<WORKERS, CHUNK, tile_in<l>, input_pitch<l>>(
          inputs<l>(turn), me, size<l> - tile.in, input_rows<l>(chunk, tile.in));
  }

  // Starts the copies of the first chunk of layer l, or of the next layer of which we have a tile.
  template <int l> __device__ __forceinline__ void fetch_next(int turn) {
    if constexpr (l < LAYERS) {
      if (Tile<l>(block).ours) {
        fetch_inputs<l>(0, turn);
        fetch_deltas<l>(0, turn);
      } else {
        fetch_next<updated_after<l>>(turn);
      }
    } else {
      copy_commit();
    }
  }

  // Adds the products of SPAN rows from row `first` of the chunk to c[0] to c[N - 1], N fragments from
  // `from`, and to c[N] the gradient of the bias: the sum of the deltas, as their product with ones.
  template <int l, int N, int SPAN>
  __device__ __forceinline__ void multiply_rows(const Part<l>& part, int first, int from,
                                                float (&c)[N + 1][4], float (&rest)[N + 1][4]) {
    constexpr int P = delta_pitch<l>, Q = input_pitch<l>;
    const T* left = deltas<l>(turn) + place_of_a<P>(lane) + part.row + first * P;
    const T* right = inputs<l>(turn) + place_of_b<Q>(lane) + first * Q;
    int at[(N + 1) / 2];
#pragma unroll
    for (int f = 0; f < N; f += 2) {
      at[f / 2] = part.column + (from + (f + 1 < N ? f + fragment_of_b(lane) : f)) * 8;
      if (at[f / 2] >= tile_in<l>) at[f / 2] = 0;  // a fragment that does not exist
    }
#pragma unroll
    for (int k = 0; k < SPAN; k += DEPTH) {
      unsigned x[4], y[4];
      load_a<P>(x, left + k * P);
#pragma unroll
      for (int f = 0; f < N; f += 2) {
        load_b<Q>(y, right + k * Q + at[f / 2]);
        add_product(c[f], rest[f], x, {y[0], y[1]});
        if (f + 1 < N) add_product(c[f + 1], rest[f + 1], x, {y[2], y[3]});
      }
      if (part.bias && from == 0) add_product(c[N], rest[N], x, {ONES, ONES});
    }
  }

  // Adds the products of the chunk to c. EXACT: sums of mma are not rounded to nearest, so they are of
  // few rows, and floats add these sums.
  template <int l>
  __device__ __forceinline__ void multiply(const Part<l>& part, float (&c)[fragments<l> + 1][4]) {
    constexpr int N = fragments<l>, SOME = at_most(N, 4), SPAN = span(CHUNK);
    if (!part.exists(0) && !part.bias) return;
    if constexpr (!EXACT) {
      multiply_rows<l, N, CHUNK>(part, 0, 0, c, c);
    } else {
#pragma unroll
      for (int from = 0; from < N; from += SOME)
#pragma unroll 1
        for (int first = 0; first < CHUNK; first += SPAN) {
          float sums[SOME + 1][4] = {}, rest[SOME + 1][4] = {};
          multiply_rows<l, SOME, SPAN>(part, first, from, sums, rest);
#pragma unroll
          for (int i = 0; i < at_most(SOME, N - from); i++) add_all(c[from + i], sums[i], rest[i]);
          if (from == 0) add_all(c[N], sums[SOME], rest[SOME]);
        }
    }
  }
};
