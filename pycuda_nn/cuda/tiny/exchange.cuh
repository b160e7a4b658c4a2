// What several blocks exchange: gradients, weights and losses. The blocks of a cluster read the shared memory of each
// other; other blocks write to global memory. Needs layout.cuh and device.cuh.

__device__ __forceinline__ void put_gradient(const Tiny& a, float* s, int p, const Four& gradient) {
#if PLAN_CLUSTER
  *(Four*)(s + GRADIENT_AT + p) = gradient;
#else
  publish(a.partial + (size_t)blockIdx.x * PARAMS + p, gradient);
#endif
}
__device__ __forceinline__ Four gradient_of(const Tiny& a, float* s, int block, int p) {
#if PLAN_CLUSTER
  return *(const Four*)peer(s + GRADIENT_AT + p, block);
#else
  return fetch(a.partial + (size_t)block * PARAMS + p);
#endif
}

__device__ __forceinline__ void put_weights(const Tiny& a, const float* s, int p) {
#if !PLAN_CLUSTER
  publish(a.weights + p, *(const Four*)(s + p));
#endif
}
__device__ __forceinline__ Four weights_of(const Tiny& a, float* s, int block, int p) {
#if PLAN_CLUSTER
  return *(const Four*)peer(s + p, block);
#else
  return fetch(a.weights + p);
#endif
}

__device__ __forceinline__ void put_loss(const Tiny& a, float* s, float loss) {
#if PLAN_CLUSTER
  s[LOSS_AT] = loss;
#else
  publish_one(a.block_losses + blockIdx.x, loss);
#endif
}
__device__ __forceinline__ float loss_of(const Tiny& a, float* s, int block) {
#if PLAN_CLUSTER
  return *peer(s + LOSS_AT, block);
#else
  return fetch_one(a.block_losses + block);
#endif
}
