// For NCCL: the sums of a bias's gradient, and the update of a layer from gradients that are summed.
// Every rank updates the whole layer. Needs exchange.cuh.

extern "C" __global__ void __launch_bounds__(THREADS) bias_sums(const __grid_constant__ Exchange x) {
  const int c = blockIdx.x * 32 + (threadIdx.x & 31);
  const float g = sum_of_column(x.u, c);
  if (threadIdx.x < 32 && c < x.u.outputs) x.sums[0][c] = g;
  keep_loss(x.u, x.u.clock->step + x.u.j);
}

extern "C" __global__ void __launch_bounds__(THREADS) apply(const __grid_constant__ Exchange x) {
  const float rate = x.u.rates[x.u.clock->step + x.u.j];
  const int stride = gridDim.x * THREADS * 8;
  for (int i = (blockIdx.x * THREADS + threadIdx.x) * 8; i < x.u.n; i += stride) {
    Line<G> g;
    State state;
    load_line(g, x.gradients[0] + i);
    load_state(state, x.u, i);
    float sum[8];
#pragma unroll
    for (int e = 0; e < 8; e++) sum[e] = to_float(g.at[e]);
    store_line(x.weights[0] + i, step_line(x.u, i, state, sum, rate));
  }
  for (int c = blockIdx.x * THREADS + threadIdx.x; c < x.u.outputs; c += gridDim.x * THREADS)
    step_bias(x.u, x.bias_next, c, x.sums[0][c], rate);
}
