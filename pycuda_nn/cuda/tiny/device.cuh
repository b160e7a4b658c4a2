// Instructions of the tiny kernel that the emulator of the tests replaces: copies to shared memory in the
// background, and what blocks exchange. Needs layout.cuh.

__device__ __forceinline__ unsigned shared_address(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }

__device__ __forceinline__ void copy_16_bytes(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void copy_4_bytes(void* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void copies_end() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Words that other blocks write or read: past the L1 cache, which is not coherent.
__device__ __forceinline__ Four fetch(const float* at) {
  Four f;
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(f.at[0]), "=f"(f.at[1]), "=f"(f.at[2]), "=f"(f.at[3]) : "l"(at) : "memory");
  return f;
}
__device__ __forceinline__ float fetch_one(const float* at) {
  float f;
  asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(f) : "l"(at) : "memory");
  return f;
}
__device__ __forceinline__ void publish(float* at, const Four& f) {
  asm volatile("st.global.cg.v4.f32 [%0], {%1, %2, %3, %4};"
               ::"l"(at), "f"(f.at[0]), "f"(f.at[1]), "f"(f.at[2]), "f"(f.at[3]) : "memory");
}
__device__ __forceinline__ void publish_one(float* at, float f) {
  asm volatile("st.global.cg.f32 [%0], %1;" ::"l"(at), "f"(f) : "memory");
}

// The same place in the shared memory of another block of the cluster.
__device__ __forceinline__ float* peer(float* at, int block) {
  float* there;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(at), "r"(block));
  return there;
}

// Waits for all threads of all blocks; what they wrote before can be read. `turn` counts the calls.
__device__ __forceinline__ void all_blocks(int* counter, int& turn) {
  turn++;
#if PLAN_CLUSTER
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
#else
  __syncthreads();
  if (threadIdx.x == 0) {
    int seen;
    __threadfence();
    atomicAdd(counter, 1);
    do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
    while (seen < turn * BLOCKS);
  }
  __syncthreads();
#endif
}
