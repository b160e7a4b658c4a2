// Softmax of a row by LANES lanes, for the losses of classes. Needs loss.cuh.

struct Softmax { float top, sum; };

template <int LANES = 32>
__device__ __forceinline__ Softmax softmax_of(const float* z, const T* bias, int classes, int lane) {
  float top = -infinity(), sum = 0.f;
  for (int k = lane; k < classes; k += LANES) top = fmaxf(top, z[k] + to_float(bias[k]));
  top = lanes_max<LANES>(top);
  for (int k = lane; k < classes; k += LANES) sum += expf(z[k] + to_float(bias[k]) - top);
  return {top, lanes_sum<LANES>(sum)};
}

// The first class with the highest logit.
__device__ __forceinline__ int first_best(const float* z, const T* bias, int classes, int lane, Softmax s) {
  int best = classes;
  for (int k = lane; k < classes; k += 32)
    if (z[k] + to_float(bias[k]) == s.top && k < best) best = k;
#pragma unroll
  for (int other = 16; other; other >>= 1) best = min(best, __shfl_xor_sync(~0u, best, other));
  return best;
}
