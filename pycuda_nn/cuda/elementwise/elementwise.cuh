// out[i] = value(x0[i], x1[i], ...; s0, s1, ...) for all i, in one pass over memory.
//
// program.py defines INPUTS, SCALARS and value() before this text. An input can be `out` itself, so
// no pointer is __restrict__, and a thread loads all its packs before it stores any of them.

#define BLOCK 128
#define WIDE_PACKS 2
#define SINGLES 4

struct Inputs { const float* at[INPUTS]; };
struct Scalars { float at[SCALARS]; };

__device__ __forceinline__ void load(float (&to)[4], const float* from) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}
__device__ __forceinline__ void load(float (&to)[1], const float* from) { to[0] = *from; }

// An intrinsic: the compiler has split an assignment in a loop into four stores of 4 bytes.
__device__ __forceinline__ void store(float* to, const float (&from)[4]) {
  __stwb(reinterpret_cast<float4*>(to), make_float4(from[0], from[1], from[2], from[3]));
}
__device__ __forceinline__ void store(float* to, const float (&from)[1]) { *to = from[0]; }

// TIMES packs of WIDTH elements, BLOCK packs apart.
template <int WIDTH, int TIMES>
__device__ __forceinline__ void sweep(float* out, const Inputs& in, long long first,
                                      long long packs, const Scalars& s) {
  float x[TIMES][INPUTS][WIDTH];
#pragma unroll
  for (int t = 0; t < TIMES; ++t) {
    const long long i = first + t * BLOCK;
    if (i < packs) {
#pragma unroll
      for (int k = 0; k < INPUTS; ++k) load(x[t][k], in.at[k] + i * WIDTH);
    }
  }
#pragma unroll
  for (int t = 0; t < TIMES; ++t) {
    const long long i = first + t * BLOCK;
    if (i < packs) {
      float y[WIDTH];
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) {
        float one[INPUTS];
#pragma unroll
        for (int k = 0; k < INPUTS; ++k) one[k] = x[t][k][w];
        y[w] = value(one, s.at);
      }
      store(out + i * WIDTH, y);
    }
  }
}

// The `before` elements before the first pack, and the `edges` - `before` elements after the last.
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

// One pack per thread: the fastest for data in device memory.
extern "C" __global__ void __launch_bounds__(BLOCK)
    narrow(float* out, Inputs in, long long packs, int before, int edges, Scalars s) {
  sweep<4, 1>(out, in, (long long)blockIdx.x * BLOCK + threadIdx.x, packs, s);
  fringe(out, in, packs, before, edges, s);
}

// As many blocks as run concurrently: for data in the L2 cache.
extern "C" __global__ void __launch_bounds__(BLOCK)
    wide(float* out, Inputs in, long long packs, int before, int edges, Scalars s) {
  const int chunk = BLOCK * WIDE_PACKS;
#pragma unroll 1
  for (long long first = (long long)blockIdx.x * chunk; first < packs;
       first += (long long)gridDim.x * chunk)
    sweep<4, WIDE_PACKS>(out, in, first + threadIdx.x, packs, s);
  fringe(out, in, packs, before, edges, s);
}

// For addresses with different remainders modulo 16: `packs` counts single elements.
extern "C" __global__ void __launch_bounds__(BLOCK)
    single(float* out, Inputs in, long long packs, int before, int edges, Scalars s) {
  sweep<1, SINGLES>(out, in, (long long)blockIdx.x * BLOCK * SINGLES + threadIdx.x, packs, s);
}
