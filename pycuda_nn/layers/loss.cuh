// Sums over a block for the kernels of a loss, with one warp per row.
// Step: z (rows, wide) float without bias -> delta in T, times `scale`; loss[block] = sum of the
// losses of the rows of the block. Metrics, after a forward pass: out[block] = sum of losses, and
// sum of wrong classes or squared errors, in double. Needs common.cuh.
//
// The file of a loss has one function for a row, for all kernels of a training step: LANES neighbouring lanes call it
// with z without bias; it writes the gradient times `scale` and returns the loss to each of them.

template <int LANES> __device__ __forceinline__ float lanes_sum(float x) {
#pragma unroll
  for (int lane = LANES / 2; lane; lane >>= 1) x += __shfl_xor_sync(~0u, x, lane);
  return x;
}
template <int LANES> __device__ __forceinline__ float lanes_max(float x) {
#pragma unroll
  for (int lane = LANES / 2; lane; lane >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, lane));
  return x;
}

// Networks trained at once are blockIdx.z: all their arrays follow each other, but they are evaluated on the same y.
__device__ __forceinline__ void to_network(const float*& z, const T*& bias, int rows, int wide) {
  z += (size_t)blockIdx.z * rows * wide;
  bias += (size_t)blockIdx.z * wide;
}

__device__ __forceinline__ void block_loss(float mine, float* loss) {
  __shared__ float of_warp[32];
  if ((threadIdx.x & 31) == 0) of_warp[threadIdx.x >> 5] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0.f;
    for (int k = 0; k < (int)(blockDim.x >> 5); k++) total += of_warp[k];
    loss[blockIdx.x] = total;
  }
}

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
