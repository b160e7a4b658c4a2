// Tiles of the weights, and the parameters of a thread, which stay in its registers.

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

// Parameters of a thread in layer l and all layers above; e: row g + 8 (e / 2), column 2 t + e % 2.
template <int l> struct Mine : Mine<l + 1> {
  static constexpr int N = fragments<l>, SECOND = MOMENTS > 1 ? N : 1;
  float w[N][4], first[N][4], seconds[SECOND][4];
  __device__ __forceinline__ float (&second(int f))[4] { return seconds[MOMENTS > 1 ? f : 0]; }
};
template <> struct Mine<LAYERS> {};

struct Parameters : Passes {
  Mine<0> mine{};

  using Passes::Passes;

  template <int l> __device__ __forceinline__ Mine<l>& of() { return mine; }

  // ---- parameters: from and to memory, to the exchange

  // Calls each(value, first moment, second moment, place in a.params and the moments).
  template <int l, class Each> __device__ __forceinline__ void each_parameter(Each each) {
    const Part<l> part(block, warp);
    const int row = part.out + part.row + g;
    const int first = weights_at<l> + (part.in + part.column + 2 * t) * size<l + 1> + row;
#pragma unroll
    for (int f = 0; f < part.N; f++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int at = (f * 8 + e % 2) * size<l + 1> + e / 2 * 8;
        if (part.exists(f))
          each(of<l>().w[f][e], of<l>().first[f][e], of<l>().second(f)[e], first + at);
      }
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const int at = weights_at<LAYERS> + bias_at<l> + row + e * 8;
      if (part.bias && t == 0) {
        Parameter& bias = s.biases[biases_at<l> + part.row + g + e * 8];
        each(bias.value, bias.moments[0], bias.moments[MOMENTS - 1], at);
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
      const Pair top = pair(w[0], w[1]), low = pair(w[2], w[3]);
      const int column = part.in + part.column + f * 8;
      T* at = to.data(forward_at<l>) + (row + g) * IN + column + 2 * t;
      publish(at, top);
      publish(at + 8 * IN, low);
      if constexpr (0 < l && l < HIDDEN) {
        at = to.data(backward_at<l>) + column * OUT + row;
        publish_transposed<OUT>(at, g, t, top, low);
      }
    }
    if (part.bias && t == 0)
#pragma unroll
      for (int e = 0; e < 2; e++)
        publish(to.biases(bias_at<l> + row + g + e * 8),
                word_of(s.biases[biases_at<l> + part.row + g + e * 8].value));
  }

  template <int l> __device__ __forceinline__ void share_all(Turn to) {
    share_weights<l>(Part<l>(block, warp), to);
    if constexpr (l + 1 < LAYERS) share_all<l + 1>(to);
  }

  __device__ __forceinline__ void load_all() {
    each_parameter<0>([&](float& w, float& first, float& second, int at) {
      w = a.params[at];
      first = a.first[at];
      if (MOMENTS > 1) second = a.second[at];
    });
  }
  __device__ __forceinline__ void store_all() {
    each_parameter<0>([&](float& w, float& first, float& second, int at) {
      a.params[at] = w;
      a.first[at] = first;
      if (MOMENTS > 1) a.second[at] = second;
    });
  }
};
