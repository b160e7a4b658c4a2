// Forward pass, loss and the gradients of hidden layers, of the rows of a block. Needs rows.cuh and a loss.
// Each thread computes 4 neighbouring results of TALL rows; in small layers, DEEP lanes share the sums of a result.

// Stores 4 results from column c of a row of WIDTH; DEEP lanes have them, and this is lane `part`.
template <bool WHOLE_FOURS, int DEEP, int WIDTH>
__device__ __forceinline__ void keep_four(float* to, const Four& from, int c, int part, bool inside) {
  if constexpr (WHOLE_FOURS) {
    if (inside && part == 0) *(Four*)to = from;
  } else {
#pragma unroll
    for (int e = 0; e < 4; e++)
      if (inside && c + e < WIDTH && part == e % DEEP) to[e] = from.at[e];
  }
}

// z or activation of one layer: values<l + 1> = f(values<l> W_l + b_l). The loss adds the last bias.
template <int l> __device__ __forceinline__ void forward(const Tiny& a, float* s, const float* x, int step) {
  constexpr int h = l + 1, COLUMNS = fours(width<h>) / 4;
  constexpr bool LAST = h == LAYERS;
  constexpr int DEPTH = LAST ? ones<l> : ones<l> + 4;
  constexpr int TALL = ROWS / 4 * COLUMNS >= THREADS ? 4 : ROWS / 2 * COLUMNS >= THREADS ? 2 : 1;
  constexpr int TILES = ROWS / TALL * COLUMNS;
  constexpr int DEEP = at_most(power_down(at_most(32, DEPTH / 4)), power_down(at_least(1, THREADS / TILES)));
  constexpr bool WHOLE_WARPS = TILES * DEEP % 32 == 0, WHOLE_FOURS = width<h> % 4 == 0;
  const float* in = l == 0 ? x : s + hidden_at<at_least(1, l)>;
  const float* w = s + weights_at<l>;
  for (int base = threadIdx.x & ~31; base < TILES * DEEP; base += THREADS) {
    int item = base + (threadIdx.x & 31), part = item % DEEP;
    bool inside = WHOLE_WARPS || item < TILES * DEEP;
    int tile = inside ? item / DEEP : 0, c = tile % COLUMNS * 4, row = tile / COLUMNS;
    Four sum[TALL] = {};
    if constexpr (DEEP == 1) {
#pragma unroll 2
      for (int k = 0; k < DEPTH; k += 4) {
        Four v[TALL];
#pragma unroll
        for (int i = 0; i < TALL; i++) v[i] = *(const Four*)(in + (row + i * (ROWS / TALL)) * pitch<l> + k);
#pragma unroll
        for (int j = 0; j < 4; j++) {
          Four weight = *(const Four*)(w + (k + j) * weight_pitch<l> + c);
#pragma unroll
          for (int i = 0; i < TALL; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) sum[i].at[e] += v[i].at[j] * weight.at[e];
        }
      }
    } else {
#pragma unroll 4
      for (int k = part; k < DEPTH; k += DEEP) {
        Four weight = *(const Four*)(w + k * weight_pitch<l> + c);
#pragma unroll
        for (int i = 0; i < TALL; i++) {
          float v = in[(row + i * (ROWS / TALL)) * pitch<l> + k];
#pragma unroll
          for (int e = 0; e < 4; e++) sum[i].at[e] += v * weight.at[e];
        }
      }
#pragma unroll
      for (int i = 0; i < TALL; i++)
#pragma unroll
        for (int e = 0; e < 4; e++)
          if (COLUMNS > 1 || e < width<h>) sum[i].at[e] = lanes_sum<DEEP>(sum[i].at[e]);
    }
#pragma unroll
    for (int i = 0; i < TALL; i++) {
      int r = row + i * (ROWS / TALL), at = r * pitch<h> + c;
      float* to = s + (LAST ? LOGITS_AT : hidden_at<at_least(1, at_most(h, LAYERS - 1))>) + at;
      if constexpr (!LAST) {
        if constexpr (KEEPS_Z) keep_four<WHOLE_FOURS, DEEP, width<h>>(s + z_at<h> + at, sum[i], c, part, inside);
#pragma unroll
        for (int e = 0; e < 4; e++) {
          sum[i].at[e] = activate(sum[i].at[e]);
#if DROPOUT
          sum[i].at[e] *= keep_factor<h>(a, s, step, r, WHOLE_FOURS ? c + e : min(c + e, width<h> - 1));
#endif
        }
      }
      keep_four<WHOLE_FOURS, DEEP, width<h>>(to, sum[i], c, part, inside);
    }
  }
}

// Gradient of the last z; returns the sum of the losses of some rows.
__device__ __forceinline__ float losses(const Tiny& a, float* s, int step) {
  int lane = threadIdx.x & 31, part = lane % LANES, rows = rows_of_block(a, step);
  const Target* y = (const Target*)(s + Y_AT + (step & 1) * Y_SIZE);
  const float* bias = s + weights_at<LAYERS - 1> + ones<LAYERS - 1> * weight_pitch<LAYERS - 1>;
  float scale = 1.f / rows_of_step(a, step), mine = 0.f;
  for (int base = threadIdx.x / 32 * WARP_ROWS; base < LOSS_ROWS; base += WARPS * WARP_ROWS) {
    int r = base + lane / LANES;
    float* delta = s + delta_at<LAYERS> + r * pitch<LAYERS>;
    float loss = PLAN_ROW_LOSS<LANES>(s + LOGITS_AT + r * pitch<LAYERS>, bias, y + r * TARGETS, OUTPUTS, OUTPUTS,
                                      scale, delta, part);
    if (r >= rows) {
      loss = 0.f;
      for (int k = part; k < OUTPUTS; k += LANES) delta[k] = 0.f;
    }
    mine += part == 0 ? loss : 0.f;
  }
  return mine;
}

// The loss of the block: first its sums by warp, then, after a barrier, their sum.
__device__ __forceinline__ void sum_by_warp(float* s, float mine) {
  if (threadIdx.x / 32 >= LOSS_WARPS) return;
  mine = warp_sum(mine);
  if ((threadIdx.x & 31) == 0) s[LOSSES_AT + threadIdx.x / 32] = mine;
}
__device__ __forceinline__ float loss_of_block(const float* s) {
  float total = 0.f;
#pragma unroll
  for (int k = 0; k < LOSS_WARPS; k++) total += s[LOSSES_AT + k];
  return total;
}

// Gradient of z of hidden layer h = l from that of layer l + 1: (delta<l + 1> W_l') times the slope.
template <int l> __device__ __forceinline__ void below(const Tiny& a, float* s, int step) {
  constexpr int DEEP = fours(width<l + 1>);
  constexpr int TALL = ROWS / 4 * width<l> >= THREADS ? 4 : ROWS / 2 * width<l> >= THREADS ? 2 : 1;
  constexpr int TILES = ROWS / TALL * width<l>;
  const float* delta = s + delta_at<l + 1>;
  const float* w = s + weights_at<l>;
  for (int tile = threadIdx.x; tile < TILES; tile += THREADS) {
    int k = tile % width<l>, row = tile / width<l>;
    float sum[TALL] = {};
#pragma unroll 4
    for (int o = 0; o < DEEP; o += 4) {
      Four weight = *(const Four*)(w + k * weight_pitch<l> + o);
#pragma unroll
      for (int i = 0; i < TALL; i++) {
        Four d = *(const Four*)(delta + (row + i * (ROWS / TALL)) * pitch<l + 1> + o);
#pragma unroll
        for (int e = 0; e < 4; e++) sum[i] += d.at[e] * weight.at[e];
      }
    }
#pragma unroll
    for (int i = 0; i < TALL; i++) {
      int r = row + i * (ROWS / TALL), at = r * pitch<l> + k;
      float v = s[(KEEPS_Z ? z_at<l> : hidden_at<l>) + at];
#if DROPOUT
      float keep = keep_factor<l>(a, s, step, r, k);
#if ACTIVATION != 3
      v /= keep > 0.f ? keep : 1.f;
#endif
      s[delta_at<l> + at] = keep > 0.f ? sum[i] * keep * slope(v) : 0.f;
#elif ACTIVATION == 0
      s[delta_at<l> + at] = v > 0.f ? sum[i] : 0.f;
#else
      s[delta_at<l> + at] = sum[i] * slope(v);
#endif
    }
  }
}
