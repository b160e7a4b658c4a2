// Activations and their slopes, as in activation.py. -DACTIVATION=0|1|2|3: relu, tanh, sigmoid, or
// a formula, the functions own_activation(z) and own_activation_slope(z).
// Needs common.cuh and rows.cuh.

// Arguments of the two kernels of an activation; `h` is the activation for a gradient,
// but z for a formula; its z is stored in `z` unless that is 0. `first` is the number of the first
// row within the minibatch of all GPUs.
struct Activation {
  T* a; const T* h; T* z; const T* bias; float* partial; const Clock* clock;
  unsigned long long seed, purpose;
  int rows, packs, width, share, j, layer, first;
  unsigned threshold;
  float scale;
};

__device__ __forceinline__ float activate(float z) {
#if ACTIVATION == 0
  return z != z ? z : fmaxf(z, 0.f);  // NaN stays NaN
#elif ACTIVATION == 1
  return tanhf(z);
#elif ACTIVATION == 3
  return own_activation(z);
#else
  return 0.5f * tanhf(0.5f * z) + 0.5f;
#endif
}

// activation'(z), given a = activation(z); for a formula given z
__device__ __forceinline__ float slope(float a) {
#if ACTIVATION == 0
  return a > 0.f ? 1.f : 0.f;
#elif ACTIVATION == 1
  return 1.f - a * a;
#elif ACTIVATION == 3
  return own_activation_slope(a);
#else
  return a * (1.f - a);
#endif
}
