// One training step around the matrix products: rows in, activations, loss, gradients, update.
// The twin of each kernel has its name in pycuda_nn/backends/numpy/ops.py.
//
// -DACTIVATION=0|1|2 relu, tanh, sigmoid; -DDROPOUT=0|1; -DOPTIMIZER=0|1|2 momentum, Nesterov, Adam;
// -DMASTER=0|1|2 a weight is kept in T itself (float), as T and 16 low bits, as float beside T.
// m rows of a minibatch; widths are padded and padding is zero; sums run in a fixed order.

struct Clock { int step; int pad; long long total; };  // steps of this epoch, and of all epochs

// ---- rows: x[r] = X[order[(step + j) * batch + r]], and its target

template <class S>
__device__ __forceinline__ void copy_row_piece(const S* from, T* to) {
  Pack<T> out;
  if constexpr (sizeof(S) == sizeof(T)) {
    out = *(const Pack<T>*)from;
  } else {
#pragma unroll
    for (int e = 0; e < Pack<T>::N; e++) out.at[e] = from_float<T>(to_float(from[e]));
  }
  *(Pack<T>*)to = out;
}

extern "C" __global__ void gather(const T* __restrict__ X, const unsigned* __restrict__ Y,
                                  const int* __restrict__ order, const Clock* clock, int j,
                                  int batch, int rows, int packs, int words, T* x, unsigned* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, r = i / packs, c = i - r * packs;
  if (r >= rows) return;
  long long s = order[(long long)(clock->step + j) * batch + r];
  copy_row_piece(X + (s * packs + c) * Pack<T>::N, x + (size_t)i * Pack<T>::N);
  if (c == 0)
    for (int k = 0; k < words; k++) y[(size_t)r * words + k] = Y[s * words + k];
}

// float rows (n, columns) to T rows of `packs` packs, padded with zeros
extern "C" __global__ void convert(const float* __restrict__ from, long long n, int columns,
                                   int packs, T* to) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x, r = i / packs;
  int c = (int)(i - r * packs) * Pack<T>::N;
  if (r >= n) return;
  Pack<T> out;
#pragma unroll
  for (int e = 0; e < Pack<T>::N; e++)
    out.at[e] = from_float<T>(c + e < columns ? from[r * columns + c + e] : 0.f);
  *(Pack<T>*)(to + i * Pack<T>::N) = out;
}

// float weights to the T that products read
extern "C" __global__ void round_weights(const float* __restrict__ from, int n, T* to) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from_float<T>(from[i]);
}

extern "C" __global__ void tick(Clock* clock, int steps) {
  clock->step += steps;
  clock->total += steps;
}

// numbers to time matrix products with: on zeros they are too fast
extern "C" __global__ void noise(T* out, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  unsigned h = (unsigned)i * 2654435761u;
  h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
  if (i < n) out[i] = from_float<T>((float)(h >> 8) * (1.f / 8388608.f) - 1.f);
}

// ---- dropout: 16 bits an element, as pycuda_nn/rng.py draws them

struct Words { unsigned long long w[4]; };

// Philox4x64-10, Salmon et al. 2011 (SC '11), section 3.3
__device__ __forceinline__ Words philox(unsigned long long block, unsigned long long a,
                                        unsigned long long b, unsigned long long key0,
                                        unsigned long long key1) {
  unsigned long long c0 = block, c1 = a, c2 = b, c3 = 0;
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const unsigned long long m0 = 0xD2E7470EE14C6C93ull, m1 = 0xCA5A826395121157ull;
    unsigned long long high0 = __umul64hi(m0, c0), low0 = m0 * c0;
    unsigned long long high1 = __umul64hi(m1, c2), low1 = m1 * c2;
    c0 = high1 ^ c1 ^ key0; c2 = high0 ^ c3 ^ key1; c1 = low1; c3 = low0;
    key0 += 0x9E3779B97F4A7C15ull; key1 += 0xBB67AE8584CAA73Bull;
  }
  return {{c0, c1, c2, c3}};
}

// What the two kernels of an activation take; `h` is the activation behind a gradient.
struct Activation {
  T* a; const T* h; const T* bias; float* partial; const Clock* clock;
  unsigned long long seed, purpose;
  int rows, packs, width, share, j, layer;
  unsigned threshold;
  float scale;
};

// Factors of elements (row-major, without padding) that are asked for in rising order.
struct Keeper {
  const Activation& u;
  long long block = -1;
  Words words;
  __device__ __forceinline__ Keeper(const Activation& u) : u(u) {}
  __device__ __forceinline__ float factor(long long e) {
    if ((e >> 4) != block) {
      block = e >> 4;
      words = philox(1 + block, u.clock->total + u.j, u.layer, u.seed, u.purpose);
    }
    unsigned long long low = e & 4 ? words.w[1] : words.w[0], high = e & 4 ? words.w[3] : words.w[2];
    unsigned bits = (unsigned)((e & 8 ? high : low) >> (16 * (e & 3))) & 0xffffu;
    return bits >= u.threshold ? u.scale : 0.f;
  }
};

// ---- activations

__device__ __forceinline__ float activate(float z) {
#if ACTIVATION == 0
  return z != z ? z : fmaxf(z, 0.f);  // NaN stays NaN
#elif ACTIVATION == 1
  return tanhf(z);
#else
  return 0.5f * tanhf(0.5f * z) + 0.5f;
#endif
}

// activation'(z), given a = activation(z)
__device__ __forceinline__ float slope(float a) {
#if ACTIVATION == 0
  return a > 0.f ? 1.f : 0.f;
#elif ACTIVATION == 1
  return 1.f - a * a;
#else
  return a * (1.f - a);
#endif
}

// a = activation(z + bias), dropped; in place, one pack a thread; columns from `width` on are zero.
// With clock = 0 nothing is dropped.
extern "C" __global__ void bias_activation(const __grid_constant__ Activation u) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, r = i / u.packs, c = (i - r * u.packs) * Pack<T>::N;
  if (r >= u.rows) return;
  Pack<T> p = ((Pack<T>*)u.a)[i];
#if DROPOUT
  Keeper keeper(u);
#endif
#pragma unroll
  for (int e = 0; e < Pack<T>::N; e++) {
    float v = activate(to_float(p.at[e]) + to_float(u.bias[c + e]));
#if DROPOUT
    if (u.clock) v *= keeper.factor((long long)r * u.width + c + e);
#endif
    p.at[e] = from_float<T>(c + e < u.width ? v : 0.f);
  }
  ((Pack<T>*)u.a)[i] = p;
}

// a (a gradient) *= activation'(z), and the dropout of the forward pass, in place; the sums of the
// columns of `share` rows go to partial[blockIdx.y]. 32 packs wide, 8 rows at a time.
// With h = 0 the sums only.
extern "C" __global__ void __launch_bounds__(256) activation_grad(const __grid_constant__ Activation u) {
  constexpr int N = Pack<T>::N;
  __shared__ float sums[8][32 * N];
  int lane = threadIdx.x & 31, group = threadIdx.x >> 5, pack = blockIdx.x * 32 + lane;
  int end = min(u.rows, (int)(blockIdx.y + 1) * u.share);
  float sum[N];
#pragma unroll
  for (int e = 0; e < N; e++) sum[e] = 0.f;
#pragma unroll 4
  for (int r = blockIdx.y * u.share + group; r < end && pack < u.packs; r += 8) {
    Pack<T>* at = (Pack<T>*)u.a + (size_t)r * u.packs + pack;
    Pack<T> g = *at;
    if (u.h) {
      Pack<T> h = ((const Pack<T>*)u.h)[(size_t)r * u.packs + pack];
#if DROPOUT
      Keeper keeper(u);
#endif
#pragma unroll
      for (int e = 0; e < N; e++) {
        float v = to_float(g.at[e]), a = to_float(h.at[e]);
#if DROPOUT
        float keep = keeper.factor((long long)r * u.width + pack * N + e);
        v = keep > 0.f ? v * keep * slope(a / keep) : 0.f;
#elif ACTIVATION == 0
        v = a > 0.f ? v : 0.f;
#else
        v *= slope(a);
#endif
        g.at[e] = from_float<T>(v);
      }
      *at = g;
    }
#pragma unroll
    for (int e = 0; e < N; e++) sum[e] += to_float(g.at[e]);
  }
#pragma unroll
  for (int e = 0; e < N; e++) sums[group][lane * N + e] = sum[e];
  __syncthreads();
  for (int c = threadIdx.x; c < 32 * N; c += 256) {
    int column = blockIdx.x * 32 * N + c;
    if (column >= u.packs * N) return;
    float total = 0.f;
#pragma unroll
    for (int k = 0; k < 8; k++) total += sums[k][c];
    u.partial[(size_t)blockIdx.y * u.packs * N + column] = total;
  }
}

// ---- losses: z (rows, wide) float without bias -> delta in T, times `scale`; a warp a row.
// loss[block] = sum of the losses of the block's rows.

__device__ __forceinline__ void block_loss(float mine, float* loss) {
  __shared__ float of_warp[32];
  if ((threadIdx.x & 31) == 0) of_warp[threadIdx.x >> 5] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0.f;
    for (int k = 0; k < (int)(blockDim.x >> 5); k++) total += of_warp[k];
    loss[blockIdx.x] = total;
  }
}

struct Softmax { float top, sum; };

__device__ __forceinline__ Softmax softmax_of(const float* z, const T* bias, int classes, int lane) {
  float top = -infinity(), sum = 0.f;
  for (int k = lane; k < classes; k += 32) top = fmaxf(top, z[k] + to_float(bias[k]));
  top = warp_max(top);
  for (int k = lane; k < classes; k += 32) sum += expf(z[k] + to_float(bias[k]) - top);
  return {top, warp_sum(sum)};
}

extern "C" __global__ void softmax_xent(const float* __restrict__ z, const T* __restrict__ bias,
                                        const int* __restrict__ y, int rows, int wide, int classes,
                                        float scale, T* delta, float* loss) {
  int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  float mine = 0.f;
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < rows; r += warps) {
    const float* row = z + (size_t)r * wide;
    Softmax s = softmax_of(row, bias, classes, lane);
    int label = y[r];
    for (int k = lane; k < wide; k += 32) {
      float p = k < classes ? expf(row[k] + to_float(bias[k]) - s.top) / s.sum : 0.f;
      delta[(size_t)r * wide + k] = from_float<T>((p - (k == label)) * scale);
    }
    mine += logf(s.sum) + s.top - (row[label] + to_float(bias[label]));
  }
  block_loss(mine, loss);
}

extern "C" __global__ void logistic_xent(const float* __restrict__ z, const T* __restrict__ bias,
                                         const int* __restrict__ y, int rows, int wide, int classes,
                                         float scale, T* delta, float* loss) {
  int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  float mine = 0.f;
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < rows; r += warps) {
    float v = z[(size_t)r * wide] + to_float(bias[0]), label = (float)y[r];
    float p = 0.5f * tanhf(0.5f * v) + 0.5f;
    for (int k = lane; k < wide; k += 32)
      delta[(size_t)r * wide + k] = from_float<T>(k == 0 ? (p - label) * scale : 0.f);
    mine += fmaxf(v, 0.f) - v * label + log1pf(expf(-fabsf(v)));
  }
  block_loss(mine, loss);
}

extern "C" __global__ void squared_error(const float* __restrict__ z, const T* __restrict__ bias,
                                         const float* __restrict__ y, int rows, int wide,
                                         int outputs, float scale, T* delta, float* loss) {
  int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  float mine = 0.f;
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < rows; r += warps) {
    float sum = 0.f;
    for (int k = lane; k < wide; k += 32) {
      float d = k < outputs ? z[(size_t)r * wide + k] + to_float(bias[k]) - y[(size_t)r * outputs + k] : 0.f;
      sum += d * d;
      delta[(size_t)r * wide + k] = from_float<T>(d * scale);
    }
    mine += 0.5f * warp_sum(sum);
  }
  block_loss(mine, loss);
}

// ---- update. Weights of one layer by the first blocks, 8 a thread; its bias, from the partial sums
// of its gradient, by the next, 32 outputs a block; the step's loss by one block more.

struct Update {
  T* weight; void* master; float* first; float* second; const float* grad;  // n of each
  T* bias; void* bias_master; float* bias_first; float* bias_second;        // outputs of each
  const float* partial; const float* loss; float* losses;
  const float* rates; const Clock* clock;
  int n, outputs, parts, loss_parts, rows, j;
  float momentum, beta2, eps, l2, bias_scale;
};

// new value of a parameter whose gradient is g; its moments are changed in place
__device__ __forceinline__ float stepped(const Update& u, float w, float g, float& first,
                                         float& second, float rate) {
#if OPTIMIZER == 2  // Kingma and Ba 2015, end of section 2; rate has the bias corrections
  first = u.momentum * first + (1.f - u.momentum) * g;
  second = u.beta2 * second + (1.f - u.beta2) * g * g;
  return w - rate * first / (sqrtf(second) + u.eps);
#elif OPTIMIZER == 1  // Sutskever et al. 2013, eqs. 3-4
  first = u.momentum * first + g;
  return w - rate * (g + u.momentum * first);
#else  // Goyal et al. 2017, eq. 9
  first = u.momentum * first + g;
  return w - rate * first;
#endif
}

template <int COUNT> __device__ __forceinline__ void read_master(const T* w, const void* low, int i, float* out) {
#pragma unroll
  for (int e = 0; e < COUNT; e++) {
#if MASTER == 1
    out[e] = __uint_as_float(((unsigned)w[i + e].bits << 16) + (int)((const short*)low)[i + e]);
#elif MASTER == 2
    out[e] = ((const float*)low)[i + e];
#else
    out[e] = to_float(w[i + e]);
#endif
  }
}

template <int COUNT> __device__ __forceinline__ void write_master(T* w, void* low, int i, const float* in) {
#pragma unroll
  for (int e = 0; e < COUNT; e++) {
#if MASTER == 1
    unsigned bits = __float_as_uint(in[e]), high = (bits + 0x8000u) >> 16;
    w[i + e].bits = (unsigned short)high;
    ((short*)low)[i + e] = (short)(bits - (high << 16));
#elif MASTER == 2
    ((float*)low)[i + e] = in[e];
    w[i + e] = from_float<T>(in[e]);
#else
    w[i + e] = from_float<T>(in[e]);
#endif
  }
}

struct alignas(16) Eight { float at[8]; };
struct alignas(16) EightHalves { unsigned short at[8]; };

__device__ __forceinline__ void update_weights(const Update& u, float rate) {
  int i = (blockIdx.x * 256 + threadIdx.x) * 8;
  if (i >= u.n) return;
  Eight w, first = *(const Eight*)(u.first + i);
#if MASTER == 1
  EightHalves high = *(const EightHalves*)(u.weight + i), low = *(const EightHalves*)((const short*)u.master + i);
#pragma unroll
  for (int e = 0; e < 8; e++) w.at[e] = __uint_as_float(((unsigned)high.at[e] << 16) + (int)(short)low.at[e]);
#elif MASTER == 2
  w = *(const Eight*)((const float*)u.master + i);
#else
  w = *(const Eight*)(u.weight + i);
#endif
#if OPTIMIZER == 0  // the product wrote momentum * velocity + gradient
#pragma unroll
  for (int e = 0; e < 8; e++) {
    first.at[e] += u.l2 * w.at[e];
    w.at[e] -= rate * first.at[e];
  }
  if (u.l2 != 0.f) *(Eight*)(u.first + i) = first;
#else
  Eight g = *(const Eight*)(u.grad + i), second = {};
#if OPTIMIZER == 2
  second = *(const Eight*)(u.second + i);
#endif
#pragma unroll
  for (int e = 0; e < 8; e++)
    w.at[e] = stepped(u, w.at[e], g.at[e] + u.l2 * w.at[e], first.at[e], second.at[e], rate);
  *(Eight*)(u.first + i) = first;
#if OPTIMIZER == 2
  *(Eight*)(u.second + i) = second;
#endif
#endif
#if MASTER == 1
#pragma unroll
  for (int e = 0; e < 8; e++) {
    unsigned bits = __float_as_uint(w.at[e]), h = (bits + 0x8000u) >> 16;
    high.at[e] = (unsigned short)h;
    low.at[e] = (unsigned short)(bits - (h << 16));
  }
  *(EightHalves*)(u.weight + i) = high;
  *(EightHalves*)((short*)u.master + i) = low;
#elif MASTER == 2
  *(Eight*)((float*)u.master + i) = w;
  EightHalves t;
#pragma unroll
  for (int e = 0; e < 8; e++) t.at[e] = from_float<T>(w.at[e]).bits;
  *(EightHalves*)(u.weight + i) = t;
#else
  *(Eight*)(u.weight + i) = w;
#endif
}

// sums[k] of threads that share tid % columns, in the order of tid / columns
__device__ __forceinline__ float column_sum(const float* partial, int parts, int width, int c) {
  __shared__ float sums[8][33];
  int lane = threadIdx.x & 31, group = threadIdx.x >> 5;
  float mine = 0.f;
  if (c < width)
#pragma unroll 8
    for (int p = group; p < parts; p += 8) mine += partial[(size_t)p * width + c];
  sums[group][lane] = mine;
  __syncthreads();
  float total = 0.f;
#pragma unroll
  for (int k = 0; k < 8; k++) total += sums[k][lane];
  return total;
}

__device__ __forceinline__ void update_bias(const Update& u, int block, float rate) {
  int c = block * 32 + (threadIdx.x & 31);
  float g = column_sum(u.partial, u.parts, u.outputs, c) * u.bias_scale;
  if (threadIdx.x >= 32 || c >= u.outputs) return;
  float b, first = u.bias_first[c], second = 0.f;
  read_master<1>(u.bias, u.bias_master, c, &b);
#if OPTIMIZER == 2
  second = u.bias_second[c];
#endif
  b = stepped(u, b, g, first, second, rate);
  u.bias_first[c] = first;
#if OPTIMIZER == 2
  u.bias_second[c] = second;
#endif
  write_master<1>(u.bias, u.bias_master, c, &b);
}

extern "C" __global__ void __launch_bounds__(256) update(const __grid_constant__ Update u) {
  int blocks = (u.n + 2047) / 2048, bias_blocks = (u.outputs + 31) / 32;
  int step = u.clock->step + u.j;
  float rate = u.rates[step];
  if ((int)blockIdx.x < blocks) {
    update_weights(u, rate);
  } else if ((int)blockIdx.x < blocks + bias_blocks) {
    update_bias(u, blockIdx.x - blocks, rate);
  } else {
    float total = 0.f;  // of the block's losses, by one warp
    for (int p = threadIdx.x; threadIdx.x < 32 && p < u.loss_parts; p += 32) total += u.loss[p];
    total = warp_sum(total);
    if (threadIdx.x == 0) u.losses[step] = total / u.rows;
  }
}
