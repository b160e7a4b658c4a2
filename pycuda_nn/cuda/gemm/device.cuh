// Instructions of sgemm.cuh that the emulator of the tests replaces: copies to shared memory in the background, and what
// the blocks of a cluster exchange. Needs common.cuh.

__device__ __forceinline__ unsigned shared_address(const void* at) {
  unsigned long long out;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(out) : "l"(at));
  return (unsigned)out;
}

// 16 bytes, or zeros
__device__ __forceinline__ void copy_pack(float* to, const float* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(there ? 16 : 0) : "memory");
}

// Ends a group of copies, which can be empty.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most the last N groups are not copied.
template <int N> __device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

#if SPLIT > 1
__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Reads `at` in the shared memory of block `rank` of the cluster.
__device__ __forceinline__ Pack<float> read_of(const float* at, int rank) {
  Pack<float> p;
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(at)), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(p.at[0]), "=f"(p.at[1]), "=f"(p.at[2]), "=f"(p.at[3]) : "r"(there) : "memory");
  return p;
}
#endif
