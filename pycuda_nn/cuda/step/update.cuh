// Update, as in pycuda_nn/backends/numpy/ops.py. -DOPTIMIZER=0|1|2: momentum, Nesterov, Adam.
// -DGRADIENT: the product of momentum wrote only the gradient.
// -DMASTER=0|1|2: a weight is stored as T (float), as T and 16 low bits, or as T and float.
// The first blocks update the weights of a layer, 8 per thread. The next blocks update its bias from
// the partial sums of its gradient, 32 outputs per block. One more block sums the loss of the step.

struct Update {
  T* weight; void* master; float* first; float* second; const float* grad;  // n elements each
  T* bias; void* bias_master; float* bias_first; float* bias_second;        // `outputs` elements each
  const float* partial; const float* loss; float* losses;
  const float* rates; const Clock* clock;
  int n, outputs, parts, loss_parts, rows, j;
  float momentum, beta2, eps, l2, bias_scale;
};

// Returns the new value of a parameter with gradient g; changes its moments in place.
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

template <int N> struct alignas(16) Floats { float at[N]; };
template <int N> struct alignas(2 * N) Halves { unsigned short at[N]; };
typedef Floats<8> Eight;
typedef Halves<8> EightHalves;

// N neighbouring weights, 4 or 8, with their moments.
template <int N> struct Neighbours {
  Floats<N> w, first, second;

  __device__ __forceinline__ void read(const Update& u, int i) {
    first = *(const Floats<N>*)(u.first + i);
#if MASTER == 1
    Halves<N> high = *(const Halves<N>*)(u.weight + i), low = *(const Halves<N>*)((const short*)u.master + i);
#pragma unroll
    for (int e = 0; e < N; e++) w.at[e] = __uint_as_float(((unsigned)high.at[e] << 16) + (int)(short)low.at[e]);
#elif MASTER == 2
    w = *(const Floats<N>*)((const float*)u.master + i);
#else
    w = *(const Floats<N>*)(u.weight + i);
#endif
#if OPTIMIZER == 2
    second = *(const Floats<N>*)(u.second + i);
#endif
  }

  // Updates the weights with their gradient, unless the product wrote momentum * velocity + gradient, and writes all.
  __device__ __forceinline__ void learn(const Update& u, int i, const float* grad, float rate) {
#if OPTIMIZER == 0 && !defined(GRADIENT)
#pragma unroll
    for (int e = 0; e < N; e++) {
      first.at[e] += u.l2 * w.at[e];
      w.at[e] -= rate * first.at[e];
    }
    if (u.l2 != 0.f) *(Floats<N>*)(u.first + i) = first;
#else
    Floats<N> g = *(const Floats<N>*)grad;
#pragma unroll
    for (int e = 0; e < N; e++)
      w.at[e] = stepped(u, w.at[e], g.at[e] + u.l2 * w.at[e], first.at[e], second.at[e], rate);
    *(Floats<N>*)(u.first + i) = first;
#if OPTIMIZER == 2
    *(Floats<N>*)(u.second + i) = second;
#endif
#endif
    write(u, i);
  }

  __device__ __forceinline__ void write(const Update& u, int i) const {
#if MASTER == 1
    Halves<N> high, low;
#pragma unroll
    for (int e = 0; e < N; e++) {
      unsigned bits = __float_as_uint(w.at[e]), h = (bits + 0x8000u) >> 16;
      high.at[e] = (unsigned short)h;
      low.at[e] = (unsigned short)(bits - (h << 16));
    }
    *(Halves<N>*)(u.weight + i) = high;
    *(Halves<N>*)((short*)u.master + i) = low;
#elif MASTER == 2
    *(Floats<N>*)((float*)u.master + i) = w;
    Halves<N> t;
#pragma unroll
    for (int e = 0; e < N; e++) t.at[e] = from_float<T>(w.at[e]).bits;
    *(Halves<N>*)(u.weight + i) = t;
#else
    *(Floats<N>*)(u.weight + i) = w;
#endif
  }
};

// Updates 8 weights from i.
__device__ __forceinline__ void update_eight(const Update& u, int i, const float* grad, float rate) {
  Neighbours<8> state;
  state.read(u, i);
  state.learn(u, i, grad, rate);
}

__device__ __forceinline__ void update_weights(const Update& u, float rate) {
  int i = (blockIdx.x * 256 + threadIdx.x) * 8;
  if (i < u.n) update_eight(u, i, u.grad + i, rate);
}

// Returns the sum of column c over all parts, in a fixed order.
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

// Updates 32 biases or, in the block after those, sums the loss of the step.
__device__ __forceinline__ void update_bias_or_loss(const Update& u, int block, int step, float rate) {
  if (block < (u.outputs + 31) / 32) {
    update_bias(u, block, rate);
  } else {
    float total = 0.f;  // sum of the losses of all blocks, by one warp
    for (int p = threadIdx.x; threadIdx.x < 32 && p < u.loss_parts; p += 32) total += u.loss[p];
    total = warp_sum(total);
    if (threadIdx.x == 0) u.losses[step] = total / u.rows;
  }
}

__device__ __forceinline__ void update_of(const Update& u) {
  int blocks = (u.n + 2047) / 2048, step = u.clock->step + u.j;
  float rate = u.rates[step];
  if ((int)blockIdx.x < blocks) {
    update_weights(u, rate);
  } else {
    update_bias_or_loss(u, blockIdx.x - blocks, step, rate);
  }
}

extern "C" __global__ void __launch_bounds__(256) update(const __grid_constant__ Update u) { update_of(u); }

// The biases of some layers and, after those of the last layer, the loss of the step.
constexpr int MOST_BIASES = 8;
struct Biases { Update u[MOST_BIASES]; int end[MOST_BIASES]; };

extern "C" __global__ void __launch_bounds__(256) biases(const __grid_constant__ Biases of) {
  int k = 0;
  while ((int)blockIdx.x >= of.end[k]) k++;
  const Update& u = of.u[k];
  int step = u.clock->step + u.j;
  update_bias_or_loss(u, blockIdx.x - (k ? of.end[k - 1] : 0), step, u.rates[step]);
}
