// Activations, their slopes, and dropout of their values.

// Relu, tanh and sigmoid: the slope follows from the value. A formula: the functions
// own_activation(z) and own_activation_slope(z); the slopes are stored and exchanged.
__device__ __forceinline__ float activated(float z) {
#if defined(PLAN_RELU)
  return z < 0.f ? 0.f : z;  // keeps NaN
#elif defined(PLAN_TANH)
  return tanhf(z);
#elif defined(PLAN_SIGMOID)
  return 0.5f * tanhf(0.5f * z) + 0.5f;
#else
  return own_activation(z);
#endif
}

__device__ __forceinline__ float slope(float a) {  // given a = activated(z); for a formula given z
#if defined(PLAN_RELU)
  return a > 0.f ? 1.f : 0.f;
#elif defined(PLAN_TANH)
  return 1.f - a * a;
#elif defined(PLAN_SIGMOID)
  return a * (1.f - a);
#else
  return own_activation_slope(a);
#endif
}

#if defined(PLAN_RELU) || defined(PLAN_TANH)
constexpr bool ZERO_AT_ZERO = true;
#else
constexpr bool ZERO_AT_ZERO = false;  // padding must be 0, but activated(0) is not
#endif

// ---- dropout. Without stored slopes, a dropped element is -0, and no kept element is.

struct Dropping {
  float scale, inverse;
  __device__ explicit Dropping(float scale) : scale(scale), inverse(1.f / scale) {}

  __device__ __forceinline__ float value(float x, bool kept) const {
    if (!DROPOUT) return x;
    x *= scale;
    return !kept ? -0.f : fabsf(x) < LEAST ? 0.f : x;  // no T rounds the rest to -0
  }
  __device__ __forceinline__ float own_slope(float z, bool kept) const {  // to be stored
    if (!DROPOUT) return slope(z);
    return kept ? slope(z) * scale : 0.f;
  }
  __device__ __forceinline__ float slope_of(float x) const {  // x: the value, or the stored slope
    if (SLOPES) return x;
    if (!DROPOUT) return slope(x);
    if (__float_as_uint(x) == 0x80000000u) return 0.f;
    return slope(x * inverse) * scale;
  }
  __device__ __forceinline__ Pair sloped(float even_delta, float odd_delta, Pair x) const {
    return pair(even_delta * slope_of(even(x)), odd_delta * slope_of(odd(x)));
  }
};

// Bit k: whether element 16 block + k (row-major, without padding) of hidden layer h is kept.
__device__ __forceinline__ unsigned kept_in_block(const Persistent& a, unsigned long long block,
                                                  unsigned long long step, int h) {
  const Words words = philox(1 + block, step, h - 1, opaque(a.seed), opaque(a.purpose));
  unsigned kept = 0;
#pragma unroll
  for (int k = 0; k < 16; k++)
    kept |= (unsigned)((words.w[k / 4] >> k % 4 * 16 & 0xffff) >= a.threshold) << k;
  return kept;
}

// Bit k: whether element e + k is kept, k from 0 to 15.
__device__ __forceinline__ unsigned kept_from(const Persistent& a, unsigned long long e,
                                              unsigned long long step, int h) {
  const unsigned skipped = e % 16;
  unsigned kept = 0;
#pragma unroll 1
  for (int part = 0; part <= (skipped ? 1 : 0); part++)
    kept |= kept_in_block(a, e / 16 + part, step, h) << 16 * part;
  return kept >> skipped;
}
