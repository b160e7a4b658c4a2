// The tiny kernel of many networks: each trains in blocks of its own. Needs net.cuh and tiny/tiny.cuh.

struct ManyTiny {
  Tiny u;
  const Net* nets; const int* members;  // settings of all networks, and the numbers of those that train
  int slots, steps;                     // distance of the orders of two networks, and of their rates and losses
};

__device__ __forceinline__ Tiny of_network(const ManyTiny& m) {
  Tiny a = m.u;
  const int number = m.members[blockIdx.z];
  const Net& net = m.nets[number];
  a.network = number;
  a.order += (size_t)number * m.slots;
  a.rates += (size_t)number * m.steps;
  a.losses += (size_t)number * m.steps;
  a.clock += number;
  a.seed = net.seed;
  a.threshold = net.threshold;
  a.scale = net.scale;
  a.momentum = net.momentum;
  a.beta2 = net.beta2;
  a.eps = net.eps;
  a.l2 = net.l2;
  return a;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) PLAN_ATTRIBUTES
    tiny_steps(const __grid_constant__ ManyTiny m) {
  const Tiny a = of_network(m);
  train(a);
}
