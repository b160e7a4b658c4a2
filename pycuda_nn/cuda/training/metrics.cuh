// Loss and errors of rows that were only run forward: z (rows, wide) float without bias; a warp a
// row. out[block] = sum of losses, and of wrong classes or squared errors, in double. Needs step.cuh.

__device__ __forceinline__ void block_metrics(double loss, double wrong, double2* out) {
  __shared__ double2 of_warp[32];
  int warps = blockDim.x >> 5;
  if ((threadIdx.x & 31) == 0) of_warp[threadIdx.x >> 5] = make_double2(loss, wrong);
  __syncthreads();
  if (threadIdx.x) return;
  double2 total = make_double2(0., 0.);
  for (int k = 0; k < warps; k++) { total.x += of_warp[k].x; total.y += of_warp[k].y; }
  out[blockIdx.x] = total;
}

extern "C" __global__ void softmax_metrics(const float* __restrict__ z, const T* __restrict__ bias,
                                           const int* __restrict__ y, int rows, int wide,
                                           int classes, double2* out) {
  int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  double loss = 0., wrong = 0.;
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < rows; r += warps) {
    const float* row = z + (size_t)r * wide;
    Softmax s = softmax_of(row, bias, classes, lane);
    int label = y[r], best = classes;  // the first class with the highest logit
    for (int k = lane; k < classes; k += 32)
      if (row[k] + to_float(bias[k]) == s.top && k < best) best = k;
#pragma unroll
    for (int other = 16; other; other >>= 1) best = min(best, __shfl_xor_sync(~0u, best, other));
    loss += (double)(logf(s.sum) + s.top - (row[label] + to_float(bias[label])));
    wrong += best != label;
  }
  block_metrics(loss, wrong, out);
}

extern "C" __global__ void logistic_metrics(const float* __restrict__ z, const T* __restrict__ bias,
                                            const int* __restrict__ y, int rows, int wide,
                                            int classes, double2* out) {
  int warps = gridDim.x * (blockDim.x >> 5);
  double loss = 0., wrong = 0.;
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < rows; r += warps) {
    float v = z[(size_t)r * wide] + to_float(bias[0]), label = (float)y[r];
    loss += (double)(fmaxf(v, 0.f) - v * label + log1pf(expf(-fabsf(v))));
    wrong += (v > 0.f) != (y[r] != 0);
  }
  block_metrics(loss, wrong, out);
}

extern "C" __global__ void squared_metrics(const float* __restrict__ z, const T* __restrict__ bias,
                                           const float* __restrict__ y, int rows, int wide,
                                           int outputs, double2* out) {
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
