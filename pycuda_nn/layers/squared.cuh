// Half the squared error, as in squared.py. Needs loss.cuh.

template <int LANES>
__device__ __forceinline__ float squared_row(const float* z, const T* bias, const float* y, int wide, int outputs,
                                             float scale, T* delta, int lane) {
  float sum = 0.f;
  for (int k = lane; k < wide; k += LANES) {
    float d = k < outputs ? z[k] + to_float(bias[k]) - y[k] : 0.f;
    sum += d * d;
    delta[k] = from_float<T>(d * scale);
  }
  return 0.5f * lanes_sum<LANES>(sum);
}

extern "C" __global__ void squared_error(const float* z, const T* bias,
                                         const float* __restrict__ y, int rows, int wide,
                                         int outputs, float scale, T* delta, float* loss) {
  to_network(z, bias, rows, wide);
  y += (size_t)blockIdx.z * rows * outputs;
  delta += (size_t)blockIdx.z * rows * wide;
  loss += (size_t)blockIdx.z * gridDim.x;
  int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  float mine = 0.f;
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < rows; r += warps)
    mine += squared_row<32>(z + (size_t)r * wide, bias, y + (size_t)r * outputs, wide, outputs, scale,
                            delta + (size_t)r * wide, lane);
  block_loss(mine, loss);
}

extern "C" __global__ void squared_metrics(const float* z, const T* bias,
                                           const float* __restrict__ y, int rows, int wide,
                                           int outputs, double2* out) {
  to_network(z, bias, rows, wide);
  out += (size_t)blockIdx.z * gridDim.x;
  int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  double squares = 0.;
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < rows; r += warps) {
    float sum = 0.f;
    for (int k = lane; k < outputs; k += 32) {
      float d = z[(size_t)r * wide + k] + to_float(bias[k]) - y[(size_t)r * outputs + k];
      sum += d * d;
    }
    squares += (double)warp_sum(sum);
  }
  block_metrics(0.5 * squares, squares, out);
}
