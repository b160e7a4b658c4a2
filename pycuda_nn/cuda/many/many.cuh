// Kernels of a step of many networks, which are blockIdx.z: those of one network, on shifted addresses.
// All arrays of a layer follow each other, network by network. Needs net.cuh, and the step's sources with -DGRADIENT.

struct ManyActivation { Activation u; const Net* nets; };
struct ManyUpdate { Update u; const Net* nets; int steps; };

template <class P> __device__ __forceinline__ void shift(P*& pointer, size_t elements) {
  if (pointer) pointer += blockIdx.z * elements;
}

extern "C" __global__ void gather_many(const T* X, const unsigned* Y, const int* order, const Clock* clock, int j,
                                       int batch, int rows, int packs, int words, int slots, T* x, unsigned* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, r = i / packs, c = i - r * packs, net = blockIdx.z;
  if (r >= rows) return;
  long long s = order[(size_t)net * slots + (long long)(clock[net].step + j) * batch + r];
  copy_row_piece(X + (s * packs + c) * Pack<T>::N, x + ((size_t)net * rows * packs + i) * Pack<T>::N);
  if (c == 0)
    for (int k = 0; k < words; k++) y[((size_t)net * rows + r) * words + k] = Y[s * words + k];
}

__device__ __forceinline__ Activation of_network(const ManyActivation& m) {
  Activation u = m.u;
  const Net& net = m.nets[blockIdx.z];
  size_t elements = (size_t)u.rows * u.packs * Pack<T>::N;
  shift(u.a, elements);
  shift(u.h, elements);
  shift(u.z, elements);
  shift(u.bias, (size_t)u.packs * Pack<T>::N);
  shift(u.partial, (size_t)gridDim.y * u.packs * Pack<T>::N);
  if (u.clock) u.clock += blockIdx.z;
  u.seed = net.seed;
  u.threshold = net.threshold;
  u.scale = net.scale;
  return u;
}

extern "C" __global__ void bias_activation_many(const __grid_constant__ ManyActivation m) {
  bias_activation_of(of_network(m));
}

extern "C" __global__ void __launch_bounds__(256) activation_grad_many(const __grid_constant__ ManyActivation m) {
  activation_grad_of(of_network(m));
}

__device__ __forceinline__ Update of_network(const ManyUpdate& m) {
  Update u = m.u;
  const Net& net = m.nets[blockIdx.z];
  constexpr int MASTER_BYTES = MASTER == 1 ? 2 : 4;
  char* master = (char*)u.master;
  char* bias_master = (char*)u.bias_master;
  shift(u.weight, u.n);
  shift(master, (size_t)u.n * MASTER_BYTES);
  shift(u.first, u.n);
  shift(u.second, u.n);
  shift(u.grad, u.n);
  shift(u.bias, u.outputs);
  shift(bias_master, (size_t)u.outputs * MASTER_BYTES);
  shift(u.bias_first, u.outputs);
  shift(u.bias_second, u.outputs);
  shift(u.partial, (size_t)u.parts * u.outputs);
  shift(u.loss, u.loss_parts);
  shift(u.losses, m.steps);
  shift(u.rates, m.steps);
  u.master = master;
  u.bias_master = bias_master;
  u.clock += blockIdx.z;
  u.momentum = net.momentum;
  u.beta2 = net.beta2;
  u.eps = net.eps;
  u.l2 = net.l2;
  return u;
}

extern "C" __global__ void __launch_bounds__(256) update_many(const __grid_constant__ ManyUpdate m) {
  update_of(of_network(m));
}

// Copies a matrix of float32 parameters (rows, columns), whose rows are `pitch` apart, to rows without padding.
extern "C" __global__ void copy_params(const T* weight, const void* master, int rows, int columns, int pitch, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * columns) read_master<1>(weight, master, i / columns * pitch + i % columns, out + i);
}

extern "C" __global__ void tick_many(Clock* clock, int steps, int networks) {
  int net = blockIdx.x * blockDim.x + threadIdx.x;
  if (net >= networks) return;
  clock[net].step += steps;
  clock[net].total += steps;
}
