// Instructions of Hopper GPUs (sm_90a): asynchronous copies of tiles by the copy engine (TMA), the
// barriers on which they complete, and products of a warpgroup. Needs common.cuh.

struct alignas(64) TensorMap { unsigned long long words[16]; };  // CUtensorMap of the driver

#if defined(T_HALF)
#define WGMMA_TYPE "f16"
#else
#define WGMMA_TYPE "bf16"
#endif

__device__ __forceinline__ unsigned shared_address(const void* at) {
  return (unsigned)__cvta_generic_to_shared(at);
}

// ---- barriers in shared memory

typedef unsigned long long Barrier;

__device__ __forceinline__ void init_barrier(Barrier* at, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(at)), "r"(arrivals));
}

// Arrives, and lets the barrier wait for `bytes` more of asynchronous copies.
__device__ __forceinline__ void expect_bytes(Barrier* at, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               ::"r"(shared_address(at)), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(Barrier* at) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(at)) : "memory");
}

// Arrives at the same barrier of block `rank` of the cluster.
__device__ __forceinline__ void arrive_at(Barrier* at, int rank) {
  asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [there];\n}"
               ::"r"(shared_address(at)), "r"(rank) : "memory");
}

// Writes `value` to `at`, then arrives at `barrier`, both of block `rank` of the cluster.
__device__ __forceinline__ void send(int* at, int value, Barrier* barrier, int rank) {
  asm volatile("{\n.reg .b32 there, signal;\n"
               "mapa.shared::cluster.u32 there, %0, %3;\nmapa.shared::cluster.u32 signal, %2, %3;\n"
               "st.shared::cluster.u32 [there], %1;\n"
               "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [signal];\n}"
               ::"r"(shared_address(at)), "r"(value), "r"(shared_address(barrier)), "r"(rank) : "memory");
}

// Waits until the phase with this parity has completed.
__device__ __forceinline__ void wait_barrier(Barrier* at, int parity) {
  asm volatile("{\n.reg .pred done;\nagain:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@done bra ready;\nbra again;\nready:\n}"
               ::"r"(shared_address(at)), "r"(parity) : "memory");
}

// The same, and shows this thread what other blocks have sent.
__device__ __forceinline__ void receive(Barrier* at, int parity) {
  asm volatile("{\n.reg .pred done;\nagain:\n"
               "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
               "@done bra ready;\nbra again;\nready:\n}"
               ::"r"(shared_address(at)), "r"(parity) : "memory");
}

__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// ---- copies of tiles; x counts elements along a row, y rows. Elements outside are zeros, or not written.

__device__ __forceinline__ void load_tile(void* to, const TensorMap& from, Barrier* done, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               ::"r"(shared_address(to)), "l"(&from), "r"(shared_address(done)), "r"(x), "r"(y) : "memory");
}

// Loads a tile to the same address of the blocks of the cluster in `mask`.
__device__ __forceinline__ void load_tile_for(unsigned short mask, void* to, const TensorMap& from,
                                              Barrier* done, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
               " [%0], [%1, {%4, %5}], [%2], %3;"
               ::"r"(shared_address(to)), "l"(&from), "r"(shared_address(done)), "h"(mask), "r"(x), "r"(y)
               : "memory");
}

__device__ __forceinline__ void store_tile(const TensorMap& to, const void* from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
               ::"l"(&to), "r"(shared_address(from)), "r"(x), "r"(y) : "memory");
}

__device__ __forceinline__ void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until the stores of this thread have read shared memory.
__device__ __forceinline__ void wait_stores() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// Orders earlier writes to shared memory before later asynchronous reads.
__device__ __forceinline__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- products

// Descriptor of a tile in rows of 128 bytes along k, with the 128-byte swizzle: 8 rows are 1024 bytes;
// the distance in bits 16 to 29 has no effect on tiles stored along k.
__device__ __forceinline__ unsigned long long tile_descriptor(const void* at) {
  return (unsigned long long)((shared_address(at) & 0x3ffff) >> 4) | 512ull << 16 |
         (unsigned long long)(1024 >> 4) << 32 | 1ull << 62;
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

#define SUMS_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS_16(d, i) SUMS_4(d, i), SUMS_4(d, i + 4), SUMS_4(d, i + 8), SUMS_4(d, i + 12)
#define SUMS_32(d, i) SUMS_16(d, i), SUMS_16(d, i + 16)

// d (64, N) = A (64, 16) B (16, N), plus the old d if `add`; a and b are descriptors of tiles stored along k.
template <int N> struct Wgmma;

template <> struct Wgmma<128> {
  static __device__ __forceinline__ void multiply(float (&d)[64], unsigned long long a, unsigned long long b, int add) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
    "wgmma.mma_async.sync.aligned.m64n128k16.f32." WGMMA_TYPE "." WGMMA_TYPE " {"
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
    "}, %64, %65, p, 1, 1, 0, 0;\n}"
    : SUMS_32(d, 0), SUMS_32(d, 32)
    : "l"(a), "l"(b), "r"(add));
  }
};

template <> struct Wgmma<256> {
  static __device__ __forceinline__ void multiply(float (&d)[128], unsigned long long a, unsigned long long b, int add) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
    "wgmma.mma_async.sync.aligned.m64n256k16.f32." WGMMA_TYPE "." WGMMA_TYPE " {"
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
    "}, %128, %129, p, 1, 1, 0, 0;\n}"
    : SUMS_32(d, 0), SUMS_32(d, 32), SUMS_32(d, 64), SUMS_32(d, 96)
    : "l"(a), "l"(b), "r"(add));
  }
};
