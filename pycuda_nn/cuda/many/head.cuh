// The last layer of many classifiers in one kernel, with the gradient of the layer below. Needs step/head.cuh and many.cuh.

// Returns the arguments of a network. In CUDA 13.0, a copy of a __grid_constant__ argument whose first field then changes
// is read from the argument, without the change. Nothing is copied here.
__device__ __forceinline__ Head of_network(const Head& all) {
  size_t net = blockIdx.z, rows = net * all.rows, blocks = net * gridDim.x;
  return Head{
      all.h + rows * HEAD_WIDTH, all.weight + net * HEAD_WIDTH * 16, all.bias + net * 16, all.y + rows,
      all.below + rows * HEAD_WIDTH, all.delta + rows * 16,
      all.loss + blocks, all.partial + blocks * 16, all.partial_below + blocks * HEAD_WIDTH,
      all.rows, all.scale, 1.f,
  };
}

extern "C" __global__ void __launch_bounds__(256) head_many(const __grid_constant__ Head all) {
  const Head u = of_network(all);
  head_of(u);
}
