// The tiny kernel of one network. Needs tiny.cuh.

extern "C" __global__ void __launch_bounds__(THREADS, 1) PLAN_ATTRIBUTES
    tiny_steps(const __grid_constant__ Tiny a) { train(a); }
