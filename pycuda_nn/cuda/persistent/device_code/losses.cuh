// The outputs, their loss and its gradient, times the batch size.

struct Outputs : Products {
  using Products::Products;

  static constexpr int OUTPUT_TILES = OUTPUTS / 16, VISITS = ceil_div(ROWS * 8, WORKERS);
  typedef float Logits[OUTPUT_TILES][2];  // of one row in a thread; 8 lanes have all of a row

  __device__ __forceinline__ int column_of(int i) const { return i / 2 * 16 + me % 8 * 2 + i % 2; }
  __device__ __forceinline__ bool publishes_output() const { return group == COLUMN_GROUPS - 1; }
  __device__ __forceinline__ static float sum_of_8(float x) {
#pragma unroll
    for (int lanes = 4; lanes; lanes >>= 1) x += __shfl_xor_sync(~0u, x, lanes);
    return x;
  }

  // ---- losses: return the loss of row r and replace the logits z by the gradient
#if defined(PLAN_SOFTMAX)
  __device__ __forceinline__ float loss_of(int r, Logits& z) const {
    const int label = s.targets[step & 1][r];
    float most = -3.4e38f, total = 0.f, right = 0.f;
#pragma unroll
    for (int i = 0; i < OUTPUT_TILES * 2; i++)
      if (column_of(i) < CLASSES) most = fmaxf(most, z[i / 2][i % 2]);
#pragma unroll
    for (int lanes = 4; lanes; lanes >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, lanes));
#pragma unroll
    for (int i = 0; i < OUTPUT_TILES * 2; i++)
      if (column_of(i) < CLASSES) {
        float& x = z[i / 2][i % 2];
        right += column_of(i) == label ? x : 0.f;
        x = __expf(x - most);
        total += x;
      }
    total = sum_of_8(total);
    right = sum_of_8(right);
    const float scale = __fdividef(1.f, total);
#pragma unroll
    for (int i = 0; i < OUTPUT_TILES * 2; i++)
      z[i / 2][i % 2] = z[i / 2][i % 2] * scale - (column_of(i) == label);
    return __logf(total) + most - right;
  }
#elif defined(PLAN_LOGISTIC)
  __device__ __forceinline__ float loss_of(int r, Logits& z) const {  // lane 0 has the only logit
    const float label = (int)s.targets[step & 1][r], v = z[0][0];
    z[0][0] = 0.5f * tanhf(0.5f * v) + 0.5f - label;
    return fmaxf(v, 0.f) - v * label + log1pf(expf(-fabsf(v)));
  }
#elif defined(PLAN_OWN_CLASSES)  // as in layers/own_classes.cuh
  __device__ __forceinline__ float loss_of(int r, Logits& z) const {
    const int label = s.targets[step & 1][r];
    float most = -3.4e38f, total = 0.f, loss = 0.f, slopes = 0.f, slope[OUTPUT_TILES * 2];
#pragma unroll
    for (int i = 0; i < OUTPUT_TILES * 2; i++)
      if (column_of(i) < CLASSES) most = fmaxf(most, z[i / 2][i % 2]);
#pragma unroll
    for (int lanes = 4; lanes; lanes >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, lanes));
#pragma unroll
    for (int i = 0; i < OUTPUT_TILES * 2; i++)
      if (column_of(i) < CLASSES) total += expf(z[i / 2][i % 2] - most);
    most += logf(sum_of_8(total));
#pragma unroll
    for (int i = 0; i < OUTPUT_TILES * 2; i++) {
      const int k = column_of(i);
      slope[i] = 0.f;
      if (k < CLASSES) {
        const float logp = z[i / 2][i % 2] -= most, is = k == label ? 1.f : 0.f;
        loss += own_loss(logp, is, (float)k, (float)CLASSES);
        slopes += slope[i] = own_loss_slope(logp, is, (float)k, (float)CLASSES);
      }
    }
    slopes = sum_of_8(slopes);
#pragma unroll
    for (int i = 0; i < OUTPUT_TILES * 2; i++) {
      float& x = z[i / 2][i % 2];
      x = slope[i] - expf(x) * slopes;
    }
    return sum_of_8(loss);
  }
#else  // half the squared error, or a formula of output and target
  __device__ __forceinline__ float loss_of(int r, Logits& z) const {
    const unsigned* targets = s.targets[step & 1] + r * TARGETS;
    float total = 0.f;
#pragma unroll
    for (int i = 0; i < OUTPUT_TILES * 2; i++)
      if (column_of(i) < CLASSES) {
        float& x = z[i / 2][i % 2];
        const float target = __uint_as_float(targets[column_of(i)]);
#if defined(PLAN_OWN_NUMBERS)
        total += own_loss(x, target);
        x = own_loss_slope(x, target);
#else
        x -= target;
        total += 0.5f * x * x;
#endif
      }
    return sum_of_8(total);
  }
#endif

  // ---- outputs of all rows of the group from s.hidden
  __device__ __forceinline__ void output() {
    constexpr int K = size<HIDDEN>;
    Logits z[VISITS];
#pragma unroll
    for (int i = 0; i < OUTPUT_TILES; i++) {
      uint2 bias[1];
      auto place = [&](int) {
        return (const T*)now.biases(bias_at<HIDDEN> + i * 16 + me % 8 * 2);
      };
      begin(bias, place);
      Sums<1> c;
      product<K, HIDDEN_PITCH, OUTPUT_WEIGHTS_PITCH>(
          c, s.hidden, s.output_weights + i * 16 * OUTPUT_WEIGHTS_PITCH);
      settle(bias, place);
      sum(c, [&](int visit, int, int, float x, float y) {
        z[visit][i][0] = x + __uint_as_float(bias[0].x);
        z[visit][i][1] = y + __uint_as_float(bias[0].y);
      });
    }
#pragma unroll
    for (int visit = 0; visit < VISITS; visit++)
      if (me + visit * WORKERS < ROWS * 8) row_output(me / 8 + visit * WORKERS / 8, z[visit]);
    sync_workers();
    if (publishes_output() && warp == 0) {
      float loss = 0.f;
      for (int r = lane; r < ROWS; r += 32) loss += s.losses[r];
      loss = warp_sum(loss);
      if (lane == 0) publish(now.loss((unsigned)row / ROWS), __float_as_uint(loss));
    }
  }

  __device__ __forceinline__ void row_output(int r, Logits& z) {
    const bool real = EXAMPLES == BATCH || row + r < EXAMPLES;  // not padding
    const float loss = loss_of(r, z);
#pragma unroll
    for (int i = 0; i < OUTPUT_TILES; i++) {
      const int column = i * 16 + me % 8 * 2;
      const Pair both = pair(real && column < CLASSES ? z[i][0] : 0.f,
                             real && column + 1 < CLASSES ? z[i][1] : 0.f);
      *(Pair*)&s.output[r * OUTPUT_PITCH + column] = both;
      if (publishes_output())
        publish(now.data(delta_at<LAYERS>) + (row + r) * OUTPUTS + column, both);
    }
    if (me % 8 == 0) s.losses[r] = real ? loss : 0.f;
  }
};
