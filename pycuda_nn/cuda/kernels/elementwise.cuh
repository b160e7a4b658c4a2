// out[i] = value(x0[i], x1[i], ...; s0, s1, ...) for all i, in one pass over memory.
//
// INPUTS, SCALARS and value() stand before this text: see program.py. An input may be `out`
// itself, so nothing is __restrict__; a thread loads all its elements before it stores one.
// There is no loop over the grid: with one, the compiler split stores of 16 bytes into four.

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef LOAD_HINT
#define LOAD_HINT false
#endif
#ifndef STORE_HINT
#define STORE_HINT false
#endif
#ifndef UNROLL
#define UNROLL 2
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

// Packs of WIDTH elements, TIMES of them in each thread.
template <int WIDTH, int TIMES, bool LOADS, bool STORES, class Index>
__device__ __forceinline__ void sweep(float* out, const Inputs& in, Index packs,
                                      const Scalars& s) {
  const Index first = (Index)blockIdx.x * (BLOCK * TIMES) + threadIdx.x;
  float x[TIMES][INPUTS][WIDTH];
#pragma unroll
  for (int t = 0; t < TIMES; ++t) {
    const Index i = first + t * BLOCK;
    if (i < packs) {
#pragma unroll
      for (int k = 0; k < INPUTS; ++k) load<LOADS>(x[t][k], in.at[k] + (long long)i * WIDTH);
    }
  }
#pragma unroll
  for (int t = 0; t < TIMES; ++t) {
    const Index i = first + t * BLOCK;
    if (i < packs) {
      float y[WIDTH];
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) {
        float one[INPUTS];
#pragma unroll
        for (int k = 0; k < INPUTS; ++k) one[k] = x[t][k][w];
        y[w] = value(one, s.at);
      }
      store<STORES>(out + (long long)i * WIDTH, y);
    }
  }
}

// The elements before the first pack and after the last: `before` and `edges` - `before` of them.
__device__ __forceinline__ void fringe(float* out, const Inputs& in, long long packs, int before,
                                       int edges, const Scalars& s) {
  if (edges && blockIdx.x == 0 && threadIdx.x < edges) {
    const int j = (int)threadIdx.x - before;
    const long long i = j < 0 ? j : 4 * packs + j;
    float one[INPUTS];
#pragma unroll
    for (int k = 0; k < INPUTS; ++k) one[k] = in.at[k][i];
    out[i] = value(one, s.at);
  }
}

// Addresses of the first pack, all multiples of 16. `small` has fewer than 2^31 packs.
extern "C" __global__ void __launch_bounds__(BLOCK)
    small(float* out, Inputs in, long long packs, int before, int edges, Scalars s) {
  sweep<4, 1, false, false>(out, in, (int)packs, s);
  fringe(out, in, packs, before, edges, s);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    large(float* out, Inputs in, long long packs, int before, int edges, Scalars s) {
  sweep<4, UNROLL, LOAD_HINT, STORE_HINT>(out, in, packs, s);
  fringe(out, in, packs, before, edges, s);
}

// Any addresses: `packs` single elements.
extern "C" __global__ void __launch_bounds__(BLOCK)
    single(float* out, Inputs in, long long packs, int before, int edges, Scalars s) {
  sweep<1, 4 * UNROLL, LOAD_HINT, STORE_HINT>(out, in, packs, s);
}
