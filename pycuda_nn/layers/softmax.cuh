// Softmax cross-entropy, as in softmax.py. Needs loss.cuh and softmax_row.cuh.

template <int LANES>
__device__ __forceinline__ float softmax_row(const float* z, const T* bias, const int* y, int wide, int classes,
                                             float scale, T* delta, int lane) {
  Softmax s = softmax_of<LANES>(z, bias, classes, lane);
  int label = *y;
  for (int k = lane; k < wide; k += LANES) {
    float p = k < classes ? expf(z[k] + to_float(bias[k]) - s.top) / s.sum : 0.f;
    delta[k] = from_float<T>((p - (k == label)) * scale);
  }
  return logf(s.sum) + s.top - (z[label] + to_float(bias[label]));
}

extern "C" __global__ void softmax_xent(const float* z, const T* bias,
                                        const int* __restrict__ y, int rows, int wide, int classes,
                                        float scale, T* delta, float* loss) {
  to_network(z, bias, rows, wide);
  y += (size_t)blockIdx.z * rows;
  delta += (size_t)blockIdx.z * rows * wide;
  loss += (size_t)blockIdx.z * gridDim.x;
  int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  float mine = 0.f;
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < rows; r += warps)
    mine += softmax_row<32>(z + (size_t)r * wide, bias, y + r, wide, classes, scale, delta + (size_t)r * wide, lane);
  block_loss(mine, loss);
}

extern "C" __global__ void softmax_metrics(const float* z, const T* bias,
                                           const int* __restrict__ y, int rows, int wide,
                                           int classes, double2* out) {
  to_network(z, bias, rows, wide);
  out += (size_t)blockIdx.z * gridDim.x;
  int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  double loss = 0., wrong = 0.;
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < rows; r += warps) {
    const float* row = z + (size_t)r * wide;
    Softmax s = softmax_of(row, bias, classes, lane);
    int label = y[r];
    loss += (double)(logf(s.sum) + s.top - (row[label] + to_float(bias[label])));
    wrong += first_best(row, bias, classes, lane, s) != label;
  }
  block_metrics(loss, wrong, out);
}
