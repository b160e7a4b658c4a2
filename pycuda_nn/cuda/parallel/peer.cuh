// Memory of other GPUs: flags that order what is read and written there, and 16-byte accesses.
// A flag only grows. Needs common.cuh.

__device__ __forceinline__ void put_flag(unsigned* at, unsigned value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

__device__ __forceinline__ unsigned get_flag(const unsigned* at) {
  unsigned value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}

// A word that the host or another block changes, for a decision that orders nothing.
__device__ __forceinline__ unsigned glance(const unsigned* at) { return *(const volatile unsigned*)at; }
__device__ __forceinline__ void note(unsigned* at, unsigned value) { *(volatile unsigned*)at = value; }
__device__ __forceinline__ float fresh(const float* at) { return *(const volatile float*)at; }

// Eight numbers, in accesses of 16 bytes that leave the L1 cache alone.
template <class U> struct alignas(16) Line { U at[8]; };

template <class U> __device__ __forceinline__ void load_line(Line<U>& to, const U* from) {
  unsigned* w = (unsigned*)to.at;
#pragma unroll
  for (int k = 0; k < (int)sizeof(Line<U>) / 4; k += 4)
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(w[k]), "=r"(w[k + 1]), "=r"(w[k + 2]), "=r"(w[k + 3])
                 : "l"((const unsigned*)from + k) : "memory");
}

template <class U> __device__ __forceinline__ void store_line(U* to, const Line<U>& from) {
  const unsigned* w = (const unsigned*)from.at;
#pragma unroll
  for (int k = 0; k < (int)sizeof(Line<U>) / 4; k += 4)
    asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};"
                 ::"l"((unsigned*)to + k), "r"(w[k]), "r"(w[k + 1]), "r"(w[k + 2]), "r"(w[k + 3]) : "memory");
}
