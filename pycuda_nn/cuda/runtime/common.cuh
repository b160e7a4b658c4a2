// Common to all kernels: the type T of activations, 16-byte packs of it, sums over a warp.
// It needs no header of the toolkit, so that NVRTC alone can compile it.
//
// -DT_FLOAT, -DT_HALF or -DT_BFLOAT16 selects T; arithmetic is always in float.

struct half16 { unsigned short bits; };
struct bfloat16 { unsigned short bits; };

#if defined(T_HALF)
typedef half16 T;
#elif defined(T_BFLOAT16)
typedef bfloat16 T;
#else
typedef float T;
#endif

template <class U> struct alignas(16) Pack {
  static constexpr int N = 16 / sizeof(U);
  U at[N];
};

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(half16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ __forceinline__ float to_float(bfloat16 x) {
  return __uint_as_float((unsigned)x.bits << 16);
}

template <class U> __device__ __forceinline__ U from_float(float x);
template <> __device__ __forceinline__ float from_float<float>(float x) { return x; }
template <> __device__ __forceinline__ half16 from_float<half16>(float x) {
  half16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
template <> __device__ __forceinline__ bfloat16 from_float<bfloat16>(float x) {
  bfloat16 y;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
  unsigned u = __float_as_uint(x);
  y.bits = x != x ? 0x7fff : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
#endif
  return y;
}

__device__ __forceinline__ float infinity() { return __int_as_float(0x7f800000); }

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int lane = 16; lane; lane >>= 1) x += __shfl_xor_sync(~0u, x, lane);
  return x;
}
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int lane = 16; lane; lane >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, lane));
  return x;
}
