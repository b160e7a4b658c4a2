// One function for each instruction that CUDA C++ does not offer: tensor cores, asynchronous copies,
// named barriers, and words of memory that other blocks read during the kernel. sm_80 and later.

#if defined(T_FLOAT)
#define MMA "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#elif defined(T_HALF)
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#define PAIR "cvt.rn.f16x2.f32"
constexpr unsigned ONES = 0x3c003c00u;
#else
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#define PAIR "cvt.rn.bf16x2.f32"
constexpr unsigned ONES = 0x3f803f80u;
#endif

#if defined(PAIR)  // two numbers of T in a word, the even number in the low half
__device__ __forceinline__ unsigned pair(float even, float odd) {
  unsigned both;
  asm(PAIR " %0, %1, %2;" : "=r"(both) : "f"(odd), "f"(even));
  return both;
}
__device__ __forceinline__ float even(unsigned both) { return to_float(T{(unsigned short)both}); }
__device__ __forceinline__ float odd(unsigned both) {
  return to_float(T{(unsigned short)(both >> 16)});
}
#endif

__device__ __forceinline__ float square_root(float x) {
  float root;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}

// The same number; the compiler then computes nothing from it before a loop, to save registers.
__device__ __forceinline__ unsigned long long opaque(unsigned long long x) {
  asm volatile("" : "+l"(x));
  return x;
}

// ---- tensor cores; lane 4 g + t of a warp holds rows g and g + 8, columns 2 t and 2 t + 1

// c (16, 8) += a (16, 16) b (16, 8). a0: row g, k 2t; a1: row g + 8; a2, a3: the same, k 2t + 8;
// b0: column g, k 2t; b1: k 2t + 8. Floats: a (16, 8) b (8, 8), k t instead of 2t and t + 4 instead of
// 2t + 8; their 13 low bits are ignored.
__device__ __forceinline__ void mma(float (&c)[4], unsigned a0, unsigned a1, unsigned a2,
                                    unsigned a3, unsigned b0, unsigned b1) {
  asm volatile(MMA " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned shared_address(const void* at) {
  return (unsigned)__cvta_generic_to_shared(at);
}

// Four 8x8 matrices, transposed; lane 8 j + i gives the address of row i of matrix j.
__device__ __forceinline__ void load_transposed(unsigned (&to)[4], const T* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row)));
}

// The transpose of the 8x8 matrix of which each lane holds columns 2 t and 2 t + 1 of row g.
__device__ __forceinline__ unsigned transposed(unsigned both) {
  unsigned out;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(both));
  return out;
}

// ---- asynchronous copies of 16 bytes to shared memory
__device__ __forceinline__ void copy_async(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> __device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// ---- barriers of a part of the block
template <int ID, int N> __device__ __forceinline__ void barrier_sync() {
  asm volatile("bar.sync %0, %1;" ::"n"(ID), "n"(N) : "memory");
}
template <int ID, int N> __device__ __forceinline__ void barrier_arrive() {
  asm volatile("bar.arrive %0, %1;" ::"n"(ID), "n"(N) : "memory");
}

// ---- words that blocks exchange. A word is EMPTY until it is written. Conversion to T gives only
// one bit pattern of NaN, which differs from EMPTY: no pair of results and no sum equals it. Floats
// that are not sums become words by word_of.
constexpr unsigned EMPTY = 0xffffffffu;

__device__ __forceinline__ void peek(uint4& to, const void* at) {
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w)
               : "l"(at));
}
__device__ __forceinline__ void peek(uint2& to, const void* at) {
  asm volatile("ld.relaxed.gpu.global.v2.u32 {%0,%1}, [%2];" : "=r"(to.x), "=r"(to.y) : "l"(at));
}
__device__ __forceinline__ void peek(unsigned& to, const void* at) {
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(to) : "l"(at));
}
__device__ __forceinline__ void publish(void* at, unsigned word) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(word) : "memory");
}
__device__ __forceinline__ void publish(void* at, uint2 words) {
  asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1,%2};" ::"l"(at), "r"(words.x), "r"(words.y)
               : "memory");
}
__device__ __forceinline__ void publish(void* at, uint4 words) {
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(at), "r"(words.x),
               "r"(words.y), "r"(words.z), "r"(words.w)
               : "memory");
}
__device__ __forceinline__ void arrive(int* counter) {
  asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(counter) : "memory");
}
__device__ __forceinline__ void await(const int* counter, int target) {
  int seen;
  do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
  while (seen < target);
}

// ---- move registers from four warps to four others; a thread starts with 168 in a block of 12 warps
template <int N> __device__ __forceinline__ void take_registers() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
#endif
}
template <int N> __device__ __forceinline__ void give_registers() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
#endif
}
