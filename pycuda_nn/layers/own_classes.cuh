// A loss that is a formula of the log-softmax, as in own_loss.py. Needs loss.cuh and softmax_row.cuh, and the functions
// own_loss(logp, y, k, classes) and own_loss_slope(logp, y, k, classes).

// Log-softmax of class `k` of a row.
__device__ __forceinline__ float log_softmax(const float* z, const T* bias, int k, Softmax s) {
  return z[k] + to_float(bias[k]) - s.top - logf(s.sum);
}

template <int LANES>
__device__ __forceinline__ float own_row(const float* z, const T* bias, const int* y, int wide, int classes,
                                         float scale, T* delta, int lane) {
  Softmax s = softmax_of<LANES>(z, bias, classes, lane);
  int label = *y;
  float value = 0.f, slopes = 0.f, count = (float)classes;
  for (int k = lane; k < classes; k += LANES) {
    float logp = log_softmax(z, bias, k, s), is = k == label ? 1.f : 0.f;
    value += own_loss(logp, is, (float)k, count);
    slopes += own_loss_slope(logp, is, (float)k, count);
  }
  slopes = lanes_sum<LANES>(slopes);
  for (int k = lane; k < wide; k += LANES) {
    float gradient = 0.f;
    if (k < classes) {
      float logp = log_softmax(z, bias, k, s), is = k == label ? 1.f : 0.f;
      gradient = own_loss_slope(logp, is, (float)k, count) - expf(logp) * slopes;
    }
    delta[k] = from_float<T>(gradient * scale);
  }
  return lanes_sum<LANES>(value);
}

extern "C" __global__ void own_xent(const float* z, const T* bias,
                                    const int* __restrict__ y, int rows, int wide, int classes,
                                    float scale, T* delta, float* loss) {
  to_network(z, bias, rows, wide);
  y += (size_t)blockIdx.z * rows;
  delta += (size_t)blockIdx.z * rows * wide;
  loss += (size_t)blockIdx.z * gridDim.x;
  int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  float mine = 0.f;
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < rows; r += warps)
    mine += own_row<32>(z + (size_t)r * wide, bias, y + r, wide, classes, scale, delta + (size_t)r * wide, lane);
  block_loss(mine, loss);
}

extern "C" __global__ void own_metrics(const float* z, const T* bias,
                                       const int* __restrict__ y, int rows, int wide, int classes,
                                       double2* out) {
  to_network(z, bias, rows, wide);
  out += (size_t)blockIdx.z * gridDim.x;
  int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  double loss = 0., wrong = 0.;
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < rows; r += warps) {
    const float* row = z + (size_t)r * wide;
    Softmax s = softmax_of(row, bias, classes, lane);
    int label = y[r];
    float value = 0.f;
    for (int k = lane; k < classes; k += 32)
      value += own_loss(log_softmax(row, bias, k, s), k == label ? 1.f : 0.f, (float)k, (float)classes);
    loss += (double)warp_sum(value);
    wrong += first_best(row, bias, classes, lane, s) != label;
  }
  block_metrics(loss, wrong, out);
}
