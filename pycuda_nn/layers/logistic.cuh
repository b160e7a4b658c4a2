// Logistic loss, as in logistic.py. Needs loss.cuh.

template <int LANES>
__device__ __forceinline__ float logistic_row(const float* z, const T* bias, const int* y, int wide, int classes,
                                              float scale, T* delta, int lane) {
  float v = z[0] + to_float(bias[0]), label = (float)*y;
  float p = 0.5f * tanhf(0.5f * v) + 0.5f;
  for (int k = lane; k < wide; k += LANES) delta[k] = from_float<T>(k == 0 ? (p - label) * scale : 0.f);
  return fmaxf(v, 0.f) - v * label + log1pf(expf(-fabsf(v)));
}

extern "C" __global__ void logistic_xent(const float* z, const T* bias,
                                         const int* __restrict__ y, int rows, int wide, int classes,
                                         float scale, T* delta, float* loss) {
  to_network(z, bias, rows, wide);
  y += (size_t)blockIdx.z * rows;
  delta += (size_t)blockIdx.z * rows * wide;
  loss += (size_t)blockIdx.z * gridDim.x;
  int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  float mine = 0.f;
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < rows; r += warps)
    mine += logistic_row<32>(z + (size_t)r * wide, bias, y + r, wide, classes, scale, delta + (size_t)r * wide, lane);
  block_loss(mine, loss);
}

extern "C" __global__ void logistic_metrics(const float* z, const T* bias,
                                            const int* __restrict__ y, int rows, int wide,
                                            int classes, double2* out) {
  to_network(z, bias, rows, wide);
  out += (size_t)blockIdx.z * gridDim.x;
  int warps = gridDim.x * (blockDim.x >> 5);
  double loss = 0., wrong = 0.;
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < rows; r += warps) {
    float v = z[(size_t)r * wide] + to_float(bias[0]), label = (float)y[r];
    loss += (double)(fmaxf(v, 0.f) - v * label + log1pf(expf(-fabsf(v))));
    wrong += (v > 0.f) != (y[r] != 0);
  }
  block_metrics(loss, wrong, out);
}
