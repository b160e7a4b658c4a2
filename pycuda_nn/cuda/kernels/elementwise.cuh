// out[i] = value(x0[i], x1[i], ...; s0, s1, ...) for all i < n, in one pass over memory.
//
// INPUTS, SCALARS and value() stand before this text: see program.py. An input may be `out`
// itself, so nothing is __restrict__; loads come before the stores of the same elements.

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef UNROLL
#define UNROLL 2
#endif
#ifndef LOAD_HINT
#define LOAD_HINT 0
#endif
#ifndef STORE_HINT
#define STORE_HINT 0
#endif

struct Inputs { const float* at[INPUTS]; };
struct Scalars { float at[SCALARS]; };

template <bool STREAM> __device__ __forceinline__ void load(float (&to)[4], const float* from) {
  const float4* place = reinterpret_cast<const float4*>(from);
  const float4 v = STREAM ? __ldcs(place) : *place;
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}
template <bool STREAM> __device__ __forceinline__ void load(float (&to)[1], const float* from) {
  to[0] = STREAM ? __ldcs(from) : *from;
}
template <bool STREAM> __device__ __forceinline__ void store(float* to, const float (&from)[4]) {
  float4* place = reinterpret_cast<float4*>(to);
  const float4 v = make_float4(from[0], from[1], from[2], from[3]);
  if (STREAM) __stcs(place, v);
  else *place = v;
}
template <bool STREAM> __device__ __forceinline__ void store(float* to, const float (&from)[1]) {
  if (STREAM) __stcs(to, from[0]);
  else *to = from[0];
}

// `packs` packs of WIDTH elements, TIMES of them in flight in each thread.
template <int WIDTH, int TIMES, bool LOADS, bool STORES>
__device__ __forceinline__ void sweep(float* out, const Inputs& in, long long packs,
                                      const Scalars& s) {
  const long long stride = (long long)gridDim.x * (BLOCK * TIMES);
  long long first = (long long)blockIdx.x * (BLOCK * TIMES) + threadIdx.x;
#pragma unroll 1
  for (; first < packs; first += stride) {
    float x[TIMES][INPUTS][WIDTH];
#pragma unroll
    for (int t = 0; t < TIMES; ++t) {
      const long long i = first + t * BLOCK;
      if (i < packs) {
#pragma unroll
        for (int k = 0; k < INPUTS; ++k) load<LOADS>(x[t][k], in.at[k] + i * WIDTH);
      }
    }
#pragma unroll
    for (int t = 0; t < TIMES; ++t) {
      const long long i = first + t * BLOCK;
      float y[WIDTH];
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) {
        float one[INPUTS];
#pragma unroll
        for (int k = 0; k < INPUTS; ++k) one[k] = x[t][k][w];
        y[w] = value(one, s.at);
      }
      if (i < packs) store<STORES>(out + i * WIDTH, y);
    }
  }
}

// Addresses that all have the same remainder by 16: `head` elements up to the first whole pack of
// four, the packs, and up to three elements after them.
template <int TIMES, bool LOADS, bool STORES>
__device__ __forceinline__ void aligned(float* out, Inputs in, long long n, int head,
                                        const Scalars& s) {
  const long long packs = (n - head) / 4;
  const int edges = (int)(n - 4 * packs);
  if (blockIdx.x == 0 && threadIdx.x < edges) {
    const long long i = threadIdx.x < head ? threadIdx.x : 4 * packs + threadIdx.x;
    float one[INPUTS];
#pragma unroll
    for (int k = 0; k < INPUTS; ++k) one[k] = in.at[k][i];
    out[i] = value(one, s.at);
  }
#pragma unroll
  for (int k = 0; k < INPUTS; ++k) in.at[k] += head;
  sweep<4, TIMES, LOADS, STORES>(out + head, in, packs, s);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    small(float* out, Inputs in, long long n, int head, Scalars s) {
  aligned<1, false, false>(out, in, n, head, s);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    large(float* out, Inputs in, long long n, int head, Scalars s) {
  aligned<UNROLL, LOAD_HINT, STORE_HINT>(out, in, n, head, s);
}

// Any addresses: element by element.
extern "C" __global__ void __launch_bounds__(BLOCK)
    single(float* out, Inputs in, long long n, int head, Scalars s) {
  sweep<1, 4 * UNROLL, LOAD_HINT, STORE_HINT>(out, in, n, s);
}
