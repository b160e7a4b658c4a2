// The products of a step of many networks in tensor cores, each with what follows it: bias, activation and dropout of the
// forward pass; slope, dropout and column sums of a gradient; the update of the weights. T is half16 or bfloat16.
//
// A block of 8 warps has TILE_M x TILE_N results of network blockIdx.z; the sums over k are in ascending order. An operand
// is stored along k, as (m, k) or (n, k), or across, as (k, m) or (k, n). In shared memory a row of 16-byte units is
// permuted by its number, so that 8 rows of a unit are in different banks. Needs tensor.cuh and many.cuh.
//
// -DMANY_ROWS=64|128: TILE_M of the products of rows. -DMANY_STAGES: chunks of k of these that are copied at the same time.

constexpr int CHUNK = 64, TILE_N = 64;

struct Operands { const T* a; const T* b; int m, n, k; };

template <int TILE, bool ALONG> struct Panel {
  static constexpr int WIDTH = ALONG ? CHUNK : TILE, ELEMENTS = TILE * CHUNK, UNITS = WIDTH / 8;
  static __device__ __forceinline__ int at(int row, int unit) { return row * WIDTH + ((unit ^ (row & 7)) * 8); }
};

__device__ __forceinline__ void copy_or_zero(T* to, const T* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(there ? 16 : 0) : "memory");
}

// Copies rows (or columns) from `first` of an operand with `length` of them, and CHUNK of k from `k0`.
template <int TILE, bool ALONG>
__device__ __forceinline__ void copy_panel(T* to, const T* from, int first, int length, int k0, int k) {
  typedef Panel<TILE, ALONG> P;
#pragma unroll
  for (int i = threadIdx.x; i < P::ELEMENTS / 8; i += 256) {
    int row = i / P::UNITS, unit = i % P::UNITS;
    int at = first + (ALONG ? row : unit * 8), in_k = k0 + (ALONG ? unit * 8 : row);
    bool there = at < length && in_k < k;
    size_t offset = ALONG ? (size_t)at * k + in_k : (size_t)in_k * length + at;
    copy_or_zero(to + P::at(row, unit), from + (there ? offset : 0), there);
  }
}

template <bool TRANSPOSED> __device__ __forceinline__ void load_matrices(unsigned (&to)[4], const T* row) {
  if constexpr (TRANSPOSED) {
    load_transposed(to, row);
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(shared_address(row)));
  }
}

// 16 x 16 elements of an operand from (x, k), as four matrices of 8 x 8; the second is 8 further in x if X_FIRST, else in k.
template <int TILE, bool ALONG, bool X_FIRST>
__device__ __forceinline__ void load_square(unsigned (&to)[4], const T* panel, int x, int k) {
  int lane = threadIdx.x & 31, one = (lane >> 3 & 1) * 8, two = (lane >> 4) * 8;
  int in_x = x + (X_FIRST ? one : two), in_k = k + (X_FIRST ? two : one);
  int row = ALONG ? in_x : in_k, unit = (ALONG ? in_k : in_x) / 8;
  load_matrices<!ALONG>(to, panel + Panel<TILE, ALONG>::at(row + (lane & 7), unit));
}

// The product of a block: its results, float, with rows PITCH apart in shared memory.
template <int TILE_M, int STAGES, bool A_ALONG, bool B_ALONG> struct Multiplied {
  static constexpr int WARPS_M = TILE_M / 32, WARPS_N = 8 / WARPS_M, WIDE = TILE_N / WARPS_N, PITCH = TILE_N + 8;
  static constexpr int STAGE = (TILE_M + TILE_N) * CHUNK;

  static __device__ __forceinline__ void copy_stage(const Operands& p, T* stage, int k0) {
    copy_panel<TILE_M, A_ALONG>(stage, p.a, blockIdx.y * TILE_M, p.m, k0, p.k);
    copy_panel<TILE_N, B_ALONG>(stage + TILE_M * CHUNK, p.b, blockIdx.x * TILE_N, p.n, k0, p.k);
  }

  static __device__ __forceinline__ void add_chunk(const T* stage, float (&sum)[2][WIDE / 8][4]) {
    int warp = threadIdx.x >> 5, m0 = warp % WARPS_M * 32, n0 = warp / WARPS_M * WIDE;
#pragma unroll
    for (int k = 0; k < CHUNK; k += 16) {
      unsigned a[2][4], b[WIDE / 16][4];
#pragma unroll
      for (int i = 0; i < 2; i++) load_square<TILE_M, A_ALONG, true>(a[i], stage, m0 + 16 * i, k);
#pragma unroll
      for (int j = 0; j < WIDE / 16; j++)
        load_square<TILE_N, B_ALONG, false>(b[j], stage + TILE_M * CHUNK, n0 + 16 * j, k);
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < WIDE / 8; j++)
          mma(sum[i][j], a[i][0], a[i][1], a[i][2], a[i][3], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }

  static __device__ __forceinline__ void keep(float* results, const float (&sum)[2][WIDE / 8][4]) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float* mine = results + (warp % WARPS_M * 32 + lane / 4) * PITCH + warp / WARPS_M * WIDE + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < WIDE / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e += 2)
          *(float2*)(mine + (16 * i + e * 4) * PITCH + 8 * j) = float2{sum[i][j][e], sum[i][j][e + 1]};
  }

  static __device__ __forceinline__ float* product(const Operands& p, T* shared) {
    int chunks = (p.k + CHUNK - 1) / CHUNK;
    float sum[2][WIDE / 8][4] = {};
#pragma unroll
    for (int c = 0; c < STAGES - 1; c++) {
      if (c < chunks) copy_stage(p, shared + c * STAGE, c * CHUNK);
      copy_commit();
    }
    for (int c = 0; c < chunks; c++) {
      int next = c + STAGES - 1;
      copy_wait<STAGES - 2>();
      __syncthreads();
      if (next < chunks) copy_stage(p, shared + next % STAGES * STAGE, next * CHUNK);
      copy_commit();
      add_chunk(shared + c % STAGES * STAGE, sum);
    }
    copy_wait<0>();
    __syncthreads();
    float* results = (float*)shared;
    keep(results, sum);
    __syncthreads();
    return results;
  }
};

extern __shared__ __align__(128) unsigned char fused_shared[];

struct ManyForward { Operands p; Activation u; const Net* nets; };
struct ManyGradient { Operands p; Activation u; const Net* nets; };
struct ManyWeights { Operands p; Update u; const Net* nets; int steps; };

__device__ __forceinline__ Operands of_network(Operands p) {
  p.a += blockIdx.z * (size_t)p.m * p.k;
  p.b += blockIdx.z * (size_t)p.n * p.k;
  return p;
}

// a (rows, outputs) = activation(x W + bias) with dropout, of one hidden layer; z too if u.z.
extern "C" __global__ void __launch_bounds__(256, 2) forward_many(const __grid_constant__ ManyForward of) {
  typedef Multiplied<MANY_ROWS, MANY_STAGES, true, false> M;
  const Activation u = of_network(ManyActivation{of.u, of.nets});
  const float* results = M::product(of_network(of.p), (T*)fused_shared);
#pragma unroll 2
  for (int i = threadIdx.x; i < MANY_ROWS * TILE_N / 8; i += 256) {
    int row = i / 8, in_tile = i % 8 * 8, r = blockIdx.y * MANY_ROWS + row, c = blockIdx.x * TILE_N + in_tile;
    if (r >= u.rows || c >= of.p.n) continue;
    Eight z = *(const Eight*)(results + row * M::PITCH + in_tile);
    Pack<T> bias = *(const Pack<T>*)(u.bias + c), out, kept;
    Keeper keeper(u);
#pragma unroll
    for (int e = 0; e < 8; e++) {
      float v = z.at[e] + to_float(bias.at[e]);
      kept.at[e] = from_float<T>(v);
      out.at[e] = from_float<T>(activated(u, keeper, v, r, c + e));
    }
    size_t at = (size_t)r * of.p.n + c;
    *(Pack<T>*)(u.a + at) = out;
#if ACTIVATION == 3
    *(Pack<T>*)(u.z + at) = kept;
#endif
  }
}

// a (rows, inputs) = delta W' times activation' and dropout of the hidden layer below; partial[blockIdx.y] = column sums.
extern "C" __global__ void __launch_bounds__(256, 2) gradient_many(const __grid_constant__ ManyGradient of) {
  typedef Multiplied<MANY_ROWS, MANY_STAGES, true, true> M;
  __shared__ __align__(16) Eight sums[32][8];
  const Activation u = of_network(ManyActivation{of.u, of.nets});
  const float* results = M::product(of_network(of.p), (T*)fused_shared);
  int group = threadIdx.x / 8, in_tile = threadIdx.x % 8 * 8, c = blockIdx.x * TILE_N + in_tile;
  Eight sum = {};
#pragma unroll 2
  for (int row = group; row < MANY_ROWS; row += 32) {
    int r = blockIdx.y * MANY_ROWS + row;
    if (r >= u.rows || c >= of.p.n) continue;
    Eight g = *(const Eight*)(results + row * M::PITCH + in_tile);
    size_t at = (size_t)r * of.p.n + c;
    Pack<T> h = *(const Pack<T>*)(u.h + at), out;
    Keeper keeper(u);
#pragma unroll
    for (int e = 0; e < 8; e++) {
      out.at[e] = from_float<T>(through_activation(u, keeper, g.at[e], to_float(h.at[e]), r, c + e));
      sum.at[e] += to_float(out.at[e]);
    }
    *(Pack<T>*)(u.a + at) = out;
  }
  sums[group][threadIdx.x % 8] = sum;
  __syncthreads();
  int column = blockIdx.x * TILE_N + threadIdx.x;
  if (threadIdx.x >= TILE_N || column >= of.p.n) return;
  float total = 0.f;
#pragma unroll
  for (int k = 0; k < 32; k++) total += sums[k][threadIdx.x / 8].at[threadIdx.x % 8];
  u.partial[(size_t)blockIdx.y * of.p.n + column] = total;
}

// Updates W (inputs, outputs) with the gradient x' delta. The neighbours of a row are those of a warp; a thread
// reads several places before it writes one.
constexpr int PLACES = OPTIMIZER == 2 ? 4 : 8;  // as many as fit in registers
extern "C" __global__ void __launch_bounds__(256, 2) weights_many(const __grid_constant__ ManyWeights of) {
  typedef Multiplied<128, 3, false, false> M;
  constexpr int N = 4, ACROSS = TILE_N / N, DOWN = 256 / ACROSS;
  const Update u = of_network(ManyUpdate{of.u, of.nets, of.steps});
  float rate = u.rates[u.clock->step + u.j];
  float* results = M::product(of_network(of.p), (T*)fused_shared);
  int in_tile = threadIdx.x % ACROSS * N, c = blockIdx.x * TILE_N + in_tile;
  if (c >= of.p.n) return;
#pragma unroll
  for (int first = threadIdx.x / ACROSS; first < 128; first += DOWN * PLACES) {
    Neighbours<N> states[PLACES];
#pragma unroll
    for (int k = 0; k < PLACES; k++) {
      int r = blockIdx.y * 128 + first + k * DOWN;
      if (r < of.p.m) states[k].read(u, r * of.p.n + c);
    }
#pragma unroll
    for (int k = 0; k < PLACES; k++) {
      int row = first + k * DOWN, r = blockIdx.y * 128 + row;
      if (r >= of.p.m) continue;
      Floats<N> g = *(const Floats<N>*)(results + row * M::PITCH + in_tile);
#pragma unroll
      for (int e = 0; e < N; e++) g.at[e] *= u.bias_scale;
      states[k].learn(u, r * of.p.n + c, g.at, rate);
    }
  }
}

// The biases of some layers and, after those of the last layer, the loss of the step.
struct ManyBiases { Update u[MOST_BIASES]; int end[MOST_BIASES]; const Net* nets; int steps; };

extern "C" __global__ void __launch_bounds__(256) biases_many(const __grid_constant__ ManyBiases of) {
  int k = 0;
  while ((int)blockIdx.x >= of.end[k]) k++;
  const Update u = of_network(ManyUpdate{of.u[k], of.nets, of.steps});
  int step = u.clock->step + u.j;
  update_bias_or_loss(u, blockIdx.x - (k ? of.end[k - 1] : 0), step, u.rates[step]);
}
