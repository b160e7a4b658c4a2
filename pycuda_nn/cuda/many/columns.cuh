// Many steps of many networks with one hidden layer in one launch: each block of a cluster has 16
// columns of the hidden layer of one network. Their weights and moments stay in registers.
//
// A step: each block multiplies all rows of the minibatch by its columns, and its columns of the hidden
// layer by their weights of the outputs. Each block sums these parts for its share of the rows, and
// sends the gradients of their outputs to all, and their losses to the first block. With the gradients it
// updates its columns. The blocks exchange nothing else; a barrier of the cluster follows each exchange.
//
// Warp w of the WORKERS has the same slice of the inputs in both products: nothing else reads its part
// of the rows, and it fetches those of the next step as soon as it has multiplied them. The last warp
// updates the weights of the outputs and the biases. Needs columns_layout.cuh.

struct Columns {
  const ManyColumns& a;
  Shared& s;
  const Net net;
  Update u = {};
  const int number, rank, warp, lane, g, t, half, high, low;
  const int* order;
  const float* rates;
  const Clock* clock;
  int step, next[ROUNDS], labels[LABELS];

  __device__ Columns(const ManyColumns& args, Shared& shared, int number)
      : a(args), s(shared), net(args.nets[number]), number(number), rank(blockIdx.x), warp(threadIdx.x / 32),
        lane(threadIdx.x % 32), g(lane / 4), t(lane % 4), half(lane / 8 % 2 * 8 + lane % 8), high(lane / 16),
        low(lane / 16 * 8 + lane % 8), order(args.order + (size_t)number * args.slots),
        rates(args.rates + (size_t)number * args.steps), clock(args.clock + number) {
    u.weight = a.weight, u.master = a.master, u.first = a.first, u.second = a.second;
    u.momentum = net.momentum, u.beta2 = net.beta2, u.eps = net.eps;
  }

  // ---- places of parameters of this network in the memory of all
  __device__ __forceinline__ int weight_at(int in, int column) const {
    return (number * INS + in) * HIDDEN + rank * 16 + column;
  }
  __device__ __forceinline__ int out_weight_at(int column, int out) const {
    return a.networks * INS * HIDDEN + (number * HIDDEN + rank * 16 + column) * OUTS + out;
  }
  __device__ __forceinline__ int bias_at(int column) const {
    return a.networks * (INS + OUTS) * HIDDEN + number * HIDDEN + rank * 16 + column;
  }
  __device__ __forceinline__ int out_bias_at(int out) const {
    return a.networks * ((INS + OUTS) * HIDDEN + HIDDEN) + number * OUTS + out;
  }

  // ---- rows of the minibatch
  __device__ __forceinline__ int row_of(int of_step, int row) const {
    return order[(a.first_step + of_step) * EXAMPLES + min(row, EXAMPLES - 1)];
  }
  __device__ __forceinline__ void find_rows(int of_step) {
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) next[r] = row_of(of_step, 32 * r + lane);
  }
  template <int R> __device__ __forceinline__ void fetch() {  // rows 32 R to 32 R + 31 of our slice
    const int piece = lane % 16, column = warp * SLICE + piece * 8;
    const bool exists = piece < PIECES && column < INS;
#pragma unroll
    for (int i = 0; i < 16; i++) {
      const int in_round = 2 * i + lane / 16, index = __shfl_sync(~0u, next[R], in_round);
      T* to = s.x[warp][32 * R + in_round] + (piece ^ (i / 2 % 2)) * 8;
      if (exists) copy_async(to, a.x + (size_t)index * INS + column);
    }
    copy_commit();
  }
  template <int R> __device__ __forceinline__ void fetch_from() {
    fetch<R>();
    if constexpr (R + 1 < ROUNDS) fetch_from<R + 1>();
  }
  // The matrices of 8 rows and 8 inputs of a tile: rows 0 to 7, 8 to 15; then the other inputs.
  __device__ __forceinline__ const T* tile_of(int first_row, int tile) const {
    return s.x[warp][first_row + half] + (2 * tile + (high ^ lane % 8 / 4)) * 8;
  }

  // ---- forward
  template <int R, class Weights> __device__ __forceinline__ void forward(const Weights& w) {
    float c[2][2][4] = {};
    if (warp < WORKERS) {
      copy_wait<ROUNDS - 1 - R>();
      __syncwarp();
#pragma unroll
      for (int tile = 0; tile < TILES; tile++)
#pragma unroll
        for (int m = 0; m < 2; m++) {
          unsigned x[4];
          load_matrices(x, tile_of(32 * R + 16 * m, tile));
          mma(c[m][0], x[0], x[1], x[2], x[3], w[tile][0], w[tile][1]);
          mma(c[m][1], x[0], x[1], x[2], x[3], w[tile][2], w[tile][3]);
        }
    }
    __syncthreads();  // the sums before are read
    if (warp < WORKERS) {
#pragma unroll
      for (int m = 0; m < 2; m++)
#pragma unroll
        for (int n = 0; n < 2; n++) {
          *(float2*)&s.sums[warp][16 * m + g][8 * n + 2 * t] = float2{c[m][n][0], c[m][n][1]};
          *(float2*)&s.sums[warp][16 * m + g + 8][8 * n + 2 * t] = float2{c[m][n][2], c[m][n][3]};
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 32 * 8; i += THREADS) activate_pair(32 * R, i / 8, i % 8 * 2);
    if constexpr (R + 1 < ROUNDS) forward<R + 1>(w);
  }
  __device__ __forceinline__ void activate_pair(int first, int r, int column) {
    float x = s.bias[column], y = s.bias[column + 1];
#pragma unroll
    for (int w = 0; w < WORKERS; w++) {
      const float2 sum = *(const float2*)&s.sums[w][r][column];
      x += sum.x;
      y += sum.y;
    }
    x = rank * 16 + column < WIDTH ? activate(x) : 0.f;
    y = rank * 16 + column + 1 < WIDTH ? activate(y) : 0.f;
#if DROPOUT
    const unsigned kept = s.kept[first + r] >> column;
    x = kept & 1 ? x * net.scale : 0.f;
    y = kept & 2 ? y * net.scale : 0.f;
#endif
    *(unsigned*)&s.hidden[first + r][column] = pair(x, y);
  }
  __device__ __forceinline__ void draw() {  // which elements of a row of our columns are kept
    for (int row = threadIdx.x; row < ROWS; row += THREADS) {
      const long long first = (long long)row * WIDTH + rank * 16;
      Words words;
      unsigned kept = 0;
#pragma unroll
      for (int k = 0; k < 16; k++) {
        const long long e = first + k;
        if (k == 0 || e % 16 == 0)
          words = philox(1 + e / 16, clock->total + a.first_step + step, 0, net.seed, a.purpose);
        kept |= (unsigned)(drop_bits(words, (int)(e % 16)) >= net.threshold) << k;
      }
      s.kept[row] = (unsigned short)kept;
    }
  }

  // ---- outputs
  __device__ __forceinline__ void send_parts() {
    for (int m = warp; m < ROWS / 16; m += WARPS) {
      unsigned h[4], w[4];
      load_matrices(h, &s.hidden[16 * m + half][8 * high]);
      load_transposed(w, &s.out_weights[half][8 * high]);
#pragma unroll
      for (int n = 0; n < 2; n++) {
        float c[4] = {};
        mma(c, h[0], h[1], h[2], h[3], w[2 * n], w[2 * n + 1]);
#pragma unroll
        for (int i = 0; i < 2; i++) {
          const int row = 16 * m + g + 8 * i;
          float* to = &s.parts[rank][row % SHARE][8 * n + 2 * t];
          *(float2*)peer(to, row / SHARE) = float2{c[2 * i], c[2 * i + 1]};
        }
      }
    }
  }
  static __device__ __forceinline__ float sum_of_16(float x) {
#pragma unroll
    for (int lanes = 8; lanes; lanes >>= 1) x += __shfl_xor_sync(~0u, x, lanes);
    return x;
  }
  __device__ __forceinline__ void find_labels() {
#pragma unroll
    for (int i = 0; i < LABELS; i++) labels[i] = a.y[row_of(step, rank * SHARE + warp + i * WARPS)];
  }
  __device__ __forceinline__ void losses() {  // of our share of the rows, and their gradients to all
#pragma unroll
    for (int i = 0; i < LABELS; i++) {
      const int r = warp + i * WARPS, row = rank * SHARE + r, out = lane % 16;
      if (r >= SHARE || row >= ROWS) break;
      float z = s.out_bias[out];
#pragma unroll
      for (int block = 0; block < BLOCKS; block++) z += s.parts[block][r][out];
      const bool exists = out < CLASSES, right = out == labels[i];
      float most = exists ? z : -3.4e38f;
#pragma unroll
      for (int lanes = 8; lanes; lanes >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, lanes));
      const float x = exists ? __expf(z - most) : 0.f, total = sum_of_16(x);
      const float loss = __logf(total) + most - sum_of_16(right ? z : 0.f);
      const float delta = exists && row < EXAMPLES ? x * __fdividef(1.f, total) - (right ? 1.f : 0.f) : 0.f;
      const unsigned both = pair(delta, __shfl_down_sync(~0u, delta, 1));
      const unsigned word = __shfl_sync(~0u, both, lane % 8 * 2);
      for (int block = lane / 8; block < BLOCKS; block += 4)
        *(unsigned*)peer(&s.after.out_deltas[row][lane % 8 * 2], block) = word;
      if (lane == 0) *peer(&s.losses[row], 0) = row < EXAMPLES ? loss : 0.f;
    }
  }
  __device__ __forceinline__ void store_loss() {
    float loss = 0.f;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) loss += s.losses[32 * r + lane];
    loss = warp_sum(loss);
    if (lane == 0) a.losses[(size_t)number * a.steps + a.first_step + step] = loss / EXAMPLES;
  }

  // ---- backward
  __device__ __forceinline__ float sloped(float delta, float value, unsigned kept) const {
#if DROPOUT
    return kept & 1 ? delta * slope(value / net.scale) * net.scale : 0.f;
#else
    return delta * slope(value);
#endif
  }
  __device__ __forceinline__ void backward() {
    for (int m = warp; m < ROWS / 16; m += WARPS) {
      unsigned d[4], w[4];
      load_matrices(d, &s.after.out_deltas[16 * m + half][8 * high]);
      load_matrices(w, &s.out_weights[low][lane / 8 % 2 * 8]);
#pragma unroll
      for (int n = 0; n < 2; n++) {
        float c[4] = {};
        mma(c, d[0], d[1], d[2], d[3], w[2 * n], w[2 * n + 1]);
#pragma unroll
        for (int i = 0; i < 2; i++) {
          const int row = 16 * m + g + 8 * i, column = 8 * n + 2 * t;
          const unsigned value = *(const unsigned*)&s.hidden[row][column];
          const unsigned kept = DROPOUT ? s.kept[row] >> column : 0;
          *(unsigned*)&s.after.deltas[row][column] = pair(sloped(c[2 * i], even(value), kept),
                                                          sloped(c[2 * i + 1], odd(value), kept >> 1));
        }
      }
    }
  }

  // ---- the last warp: weights of the outputs, and biases
  __device__ __forceinline__ float column_sum(const T (&of)[ROWS][16]) const {
    float sum = 0.f;
#pragma unroll 16
    for (int r = 0; r < ROWS / 2; r++) sum += to_float(of[lane / 16 * (ROWS / 2) + r][lane % 16]);
    return sum + __shfl_xor_sync(~0u, sum, 16);
  }
  __device__ __forceinline__ void update_outputs(Learned (&w)[2][4], Learned& bias, Learned& out_bias, float rate) {
    float c[2][4] = {};
#pragma unroll
    for (int k = 0; k < ROWS; k += 16) {
      unsigned h[4], d[4];
      load_transposed(h, &s.hidden[k + low][lane / 8 % 2 * 8]);
      load_transposed(d, &s.after.out_deltas[k + half][8 * high]);
      mma(c[0], h[0], h[1], h[2], h[3], d[0], d[1]);
      mma(c[1], h[0], h[1], h[2], h[3], d[2], d[3]);
    }
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
      for (int e = 0; e < 4; e++) w[n][e].learn(u, c[n][e], net.l2, rate);
    bias.learn(u, column_sum(s.after.deltas), 0.f, rate);
    out_bias.learn(u, column_sum(s.after.out_deltas), 0.f, rate);
    share_outputs(w, bias, out_bias);
  }
  __device__ __forceinline__ void share_outputs(const Learned (&w)[2][4], const Learned& bias, const Learned& out_bias) {
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
      for (int i = 0; i < 2; i++)
        *(unsigned*)&s.out_weights[g + 8 * i][8 * n + 2 * t] = pair(w[n][2 * i].value, w[n][2 * i + 1].value);
    if (lane < 16) s.bias[lane] = bias.value, s.out_bias[lane] = out_bias.value;
  }
  template <class Each> __device__ __forceinline__ void each_of_outputs(Learned (&w)[2][4], Learned& bias,
                                                                        Learned& out_bias, Each each) {
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
      for (int e = 0; e < 4; e++) each(w[n][e], out_weight_at(g + e / 2 * 8, 8 * n + 2 * t + e % 2));
    if (lane < 16) each(bias, bias_at(lane));
    if (lane < 16 && rank == 0) each(out_bias, out_bias_at(lane));
  }

  // ---- a worker: weights of its slice, as results (16 columns, 8 inputs) of mma
  struct Slice { float w[TILES][2][4], first[TILES][2][4]; };

  template <int R> __device__ __forceinline__ void gradient(float (&c)[TILES][2][4], bool more) {
#pragma unroll
    for (int k = 32 * R; k < 32 * R + 32; k += 16) {
      unsigned d[4];
      load_transposed(d, &s.after.deltas[k + low][lane / 8 % 2 * 8]);
#pragma unroll
      for (int tile = 0; tile < TILES; tile++) {
        unsigned x[4];
        load_transposed(x, tile_of(k, tile));
        mma(c[tile][0], d[0], d[1], d[2], d[3], x[0], x[1]);
        mma(c[tile][1], d[0], d[1], d[2], d[3], x[2], x[3]);
      }
    }
    __syncwarp();  // the rows are read
    if (more) fetch<R>();
    if constexpr (R + 1 < ROUNDS) gradient<R + 1>(c, more);
  }
  __device__ __forceinline__ void update(Slice& of, float rate, bool more) {
    float c[TILES][2][4] = {}, none = 0.f;
    gradient<0>(c, more);
#pragma unroll
    for (int i = 0; i < TILES * 8; i++) {
      float& w = of.w[i / 8][i / 4 % 2][i % 4];
      const float gradient = fmaf(net.l2, w, c[i / 8][i / 4 % 2][i % 4] * (1.f / EXAMPLES));
      w = stepped(u, w, gradient, of.first[i / 8][i / 4 % 2][i % 4], none, rate);
    }
  }
  template <class Each> __device__ __forceinline__ void each_of_slice(Slice& of, Each each) {
#pragma unroll
    for (int i = 0; i < TILES * 8; i++) {
      const int e = i % 4, in = warp * SLICE + i / 4 * 8 + 2 * t + e % 2;
      if (in < INS) each(of.w[i / 8][i / 4 % 2][e], of.first[i / 8][i / 4 % 2][e], weight_at(in, g + e / 2 * 8));
    }
  }

  // ---- all steps
  __device__ __forceinline__ void begin_step() {
    find_labels();
    if (DROPOUT) draw();
  }
  template <class Weights> __device__ __forceinline__ void exchange(const Weights& w) {
    forward<0>(w);
    __syncthreads();
    send_parts();
    all_blocks();
    losses();
    all_blocks();
    backward();
    __syncthreads();
  }
  __device__ __forceinline__ void work() {
    Slice mine = {};
    for (int i = lane; i < ROWS * SLICE / 8; i += 32) ((uint4*)s.x[warp])[i] = uint4{};
    __syncwarp();
    each_of_slice(mine, [&](float& w, float& first, int at) {
      read_master<1>(u.weight, u.master, at, &w);
      first = u.first[at];
    });
    find_rows(0);
    fetch_from<0>();
    all_blocks();
    for (step = 0; step < a.n_steps; step++) {
      const float rate = rates[a.first_step + step];
      const bool more = step + 1 < a.n_steps;
      unsigned w[TILES][4];
#pragma unroll
      for (int i = 0; i < TILES * 4; i++) {  // columns 0 to 7, then 8 to 15; inputs 0 to 7, then 8 to 15
        const float* from = &mine.w[i / 4][i % 2][i / 2 % 2 * 2];
        w[i / 4][i % 4] = pair(from[0], from[1]);
      }
      if (more) find_rows(step + 1);
      begin_step();
      exchange(w);
      update(mine, rate, more);
    }
    each_of_slice(mine, [&](float& w, float& first, int at) {
      write_master<1>(u.weight, u.master, at, &w);
      u.first[at] = first;
    });
  }
  __device__ __forceinline__ void serve() {
    Learned w[2][4], bias = {}, out_bias = {};
    each_of_outputs(w, bias, out_bias, [&](Learned& one, int at) { one.read(u, at); });
    if (lane < 16) out_bias.read(u, out_bias_at(lane));
    share_outputs(w, bias, out_bias);
    all_blocks();
    const unsigned none[TILES][4] = {};
    for (step = 0; step < a.n_steps; step++) {
      const float rate = rates[a.first_step + step];
      begin_step();
      exchange(none);
      if (rank == 0) store_loss();
      update_outputs(w, bias, out_bias, rate);
    }
    each_of_outputs(w, bias, out_bias, [&](Learned& one, int at) { one.write(u, at); });
  }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(BLOCKS, 1, 1)
    columns_steps(const __grid_constant__ ManyColumns a) {
  extern __shared__ __align__(128) unsigned char memory[];
  Columns columns(a, *(Shared*)memory, a.members[blockIdx.z]);
  if (threadIdx.x / 32 < WORKERS) columns.work();
  else columns.serve();
}
