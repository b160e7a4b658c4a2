// A loss that is a formula of output and target, as in own_loss.py. Needs loss.cuh, and the functions
// own_loss(z, y) and own_loss_slope(z, y).

template <int LANES>
__device__ __forceinline__ float own_row(const float* z, const T* bias, const float* y, int wide, int outputs,
                                         float scale, T* delta, int lane) {
  float sum = 0.f;
  for (int k = lane; k < wide; k += LANES) {
    float slope = 0.f;
    if (k < outputs) {
      float out = z[k] + to_float(bias[k]);
      sum += own_loss(out, y[k]);
      slope = own_loss_slope(out, y[k]);
    }
    delta[k] = from_float<T>(slope * scale);
  }
  return lanes_sum<LANES>(sum);
}

extern "C" __global__ void own_error(const float* z, const T* bias,
                                     const float* __restrict__ y, int rows, int wide, int outputs,
                                     float scale, T* delta, float* loss) {
  to_network(z, bias, rows, wide);
  y += (size_t)blockIdx.z * rows * outputs;
  delta += (size_t)blockIdx.z * rows * wide;
  loss += (size_t)blockIdx.z * gridDim.x;
  int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  float mine = 0.f;
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < rows; r += warps)
    mine += own_row<32>(z + (size_t)r * wide, bias, y + (size_t)r * outputs, wide, outputs, scale,
                        delta + (size_t)r * wide, lane);
  block_loss(mine, loss);
}

extern "C" __global__ void own_metrics(const float* z, const T* bias,
                                       const float* __restrict__ y, int rows, int wide, int outputs,
                                       double2* out) {
  to_network(z, bias, rows, wide);
  out += (size_t)blockIdx.z * gridDim.x;
  int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  double loss = 0., squares = 0.;
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < rows; r += warps) {
    float sum = 0.f, square = 0.f;
    for (int k = lane; k < outputs; k += 32) {
      float value = z[(size_t)r * wide + k] + to_float(bias[k]), target = y[(size_t)r * outputs + k];
      sum += own_loss(value, target);
      square += (value - target) * (value - target);
    }
    loss += (double)warp_sum(sum);
    squares += (double)warp_sum(square);
  }
  block_metrics(loss, squares, out);
}
