// Rows of a minibatch, their targets and their dropout, fetched for the next step while this one computes; for even
// and odd steps. Needs layout.cuh, device.cuh and dropout.cuh.

__device__ __forceinline__ int first_row() { return (int)blockIdx.x * SHARE; }

// Rows of a step in all blocks, and in this one.
__device__ __forceinline__ int rows_of_step(const Tiny& a, int step) { return min(BATCH, a.rows - step * BATCH); }
__device__ __forceinline__ int rows_of_block(const Tiny& a, int step) {
  return max(0, min(SHARE, rows_of_step(a, step) - first_row()));
}

__device__ __forceinline__ int place_of(const Tiny& a, int step, int r) {
  return r < rows_of_block(a, step) ? a.order[(size_t)step * BATCH + first_row() + r] : 0;
}

__device__ __forceinline__ void gather_rows(const Tiny& a, float* s, int step) {
  const int* places = (const int*)(s + PLACES_AT) + (step & 1) * ROWS;
  float* x = s + X_AT + (step & 1) * X_SIZE;
  float* y = s + Y_AT + (step & 1) * Y_SIZE;
  int rows = rows_of_block(a, step);
  if constexpr (sizeof(X) == 4) {
    constexpr int FOURS = ones<0> / 4;
    for (int i = threadIdx.x; i < rows * FOURS; i += THREADS) {
      int r = i / FOURS, c = i % FOURS * 4;
      copy_16_bytes(x + r * pitch<0> + c, a.x + (size_t)places[r] * size<0> + c);
    }
  } else {
    constexpr int PACKS = ceil_div(width<0>, 8);
    for (int i = threadIdx.x; i < rows * PACKS; i += THREADS) {
      int r = i / PACKS, c = i % PACKS * 8;
      Pack<X> pack = *(const Pack<X>*)(a.x + (size_t)places[r] * size<0> + c);
#pragma unroll
      for (int e = 0; e < 8; e++)
        if (c + e < width<0>) x[r * pitch<0> + c + e] = to_float(pack.at[e]);
    }
  }
  for (int i = threadIdx.x; i < rows * TARGETS; i += THREADS)
    copy_4_bytes(y + i, a.y + (size_t)places[i / TARGETS] * TARGETS + i % TARGETS);
}

// ---- dropout

template <int h> __device__ __forceinline__ int first_mask() { return first_row() * width<h> / 16; }

template <int h = 1>
__device__ __forceinline__ void draw_masks(const Tiny& a, const Clock& clock, float* s, int step) {
  if constexpr (h < LAYERS) {
    unsigned short* masks = (unsigned short*)(s + MASKS_AT + (step & 1) * MASKS_SIZE) + mask_at<h>;
    Activation u{};
    u.clock = &clock;
    u.seed = a.seed;
    u.purpose = a.purpose;
    u.layer = h - 1;
    u.j = step;
    for (int i = threadIdx.x; i < mask_shorts<h>; i += THREADS) {
      const Words words = drop_words(u, first_mask<h>() + i);
      unsigned bits = 0;
#pragma unroll
      for (int e = 0; e < 16; e++) bits |= (unsigned)(drop_bits(words, e) >= a.threshold) << e;
      masks[i] = (unsigned short)bits;
    }
    draw_masks<h + 1>(a, clock, s, step);
  }
}

// Factor of an element of hidden layer h.
template <int h> __device__ __forceinline__ float keep_factor(const Tiny& a, const float* s, int step, int r, int c) {
  const unsigned short* masks = (const unsigned short*)(s + MASKS_AT + (step & 1) * MASKS_SIZE) + mask_at<h>;
  int e = (first_row() + r) * width<h> + c;
  return masks[e / 16 - first_mask<h>()] >> (e & 15) & 1 ? a.scale : 0.f;
}
