// Gradients of the weights: deltas (BATCH, out) transposed times inputs (BATCH, in).

struct Gradients : Parameters {
  using Parameters::Parameters;

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
};
