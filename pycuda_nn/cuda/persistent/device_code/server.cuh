// A server: the work of a step other than its arithmetic.

struct Masked { int layer, width, column, row; };  // place of 16 elements of a hidden layer

struct Server : Place {
  const Persistent& a;
  Shared& s;
  Turn now, old;
  const int server;

  __device__ Server(const Persistent& args, Shared& shared)
      : a(args), s(shared), server(threadIdx.x - WORKERS) {}

  __device__ __forceinline__ void fetch_indices(int step) {
    const int* order = a.order + (long long)(a.first_step + step) * EXAMPLES;
    for (int i = server; i < BATCH; i += SERVERS)
      s.index[step & 1][i] = order[min(i, EXAMPLES - 1)];
    for (int i = server; i < ROWS * TARGETS; i += SERVERS) {
      const long long index = order[min(row + i / TARGETS, EXAMPLES - 1)];
      s.targets[step & 1][i] = a.y[index * TARGETS + i % TARGETS];
    }
  }
  __device__ __forceinline__ void fetch_input(int step) {
    const int* index = s.index[step & 1] + row;
    fetch<SERVERS, ROWS, size<0>, INPUT_PITCH>(
        s.input, server, size<0>, [&](int r) { return a.x + (long long)index[r] * size<0>; });
    copy_commit();
  }

  // Draws which elements of our strips are kept: mask i belongs to 16 elements of s.own.
  template <int h> __device__ __forceinline__ void locate(unsigned i, Masked& to) const {
    if (h < HIDDEN && i >= own_at<h + 1> / 8) {
      locate<h + 1 < HIDDEN ? h + 1 : HIDDEN>(i, to);
      return;
    }
    constexpr unsigned TILES = strip<h>;
    i -= own_at<h> / 8;
    to = {h, width<h>, int((group + i / (TILES * ROWS) * COLUMN_GROUPS) * TILES + i % TILES) * 16,
          int(i / TILES % ROWS)};
  }
  __device__ __forceinline__ void draw_masks(int step) {
    const unsigned long long total = a.clock[1] + a.first_step + step;
#pragma unroll 1
    for (int i = server; i < own_at<LAYERS> / 8; i += SERVERS) {
      Masked m;
      locate<1>(i, m);
      const unsigned long long e = (unsigned long long)(row + m.row) * m.width + m.column;
      if (m.column < m.width) s.masks[step & 1][i] = kept_from(a, e, total, m.layer);
    }
  }

  __device__ __forceinline__ void fetch_output_weights() {
    constexpr int K = size<HIDDEN>, P = OUTPUT_WEIGHTS_PITCH;
    const T* from = now.data(forward_at<HIDDEN>);
    auto row = [from](int r) { return from + r * K; };
    fetch<SERVERS, OUTPUTS, K, P>(s.output_weights, server, K, row);
    copy_commit();
    copy_wait<0>();
    settle_fetched<SERVERS, OUTPUTS, K, P>(s.output_weights, server, K, row);
  }

  // Empties HIGH rows of WIDE elements, of which `high` rows and `wide` elements exist.
  template <int HIGH, int WIDE>
  __device__ __forceinline__ void empty(T* at, int pitch, int high, int wide) {
#pragma unroll 1
    for (int i = server; i < HIGH * (WIDE / PIECE); i += SERVERS) {
      const int r = (unsigned)i / (WIDE / PIECE), c = (unsigned)i % (WIDE / PIECE) * PIECE;
      if (r < high && c < wide) publish(at + r * pitch + c, uint4{EMPTY, EMPTY, EMPTY, EMPTY});
    }
  }
  template <int h> __device__ __forceinline__ void empty_hidden() {
    constexpr int WIDE = 16 * strip<h>;
#pragma unroll 1
    for (int first = group * WIDE; first < size<h>; first += COLUMN_GROUPS * WIDE) {
      const int at = row * size<h> + first;
      empty<ROWS, WIDE>(old.data(hidden_at<h>) + at, size<h>, ROWS, WIDE);
      empty<ROWS, WIDE>(old.data(delta_at<h>) + at, size<h>, ROWS, WIDE);
      if constexpr (SLOPES && h == HIDDEN)
        empty<ROWS, WIDE>(old.data(slopes_at) + at, size<h>, ROWS, WIDE);
    }
    if constexpr (h < HIDDEN) empty_hidden<h + 1>();
  }
  template <int l> __device__ __forceinline__ void empty_weights() {
    constexpr int IN = size<l>, OUT = size<l + 1>, I = tile_in<l>, O = tile_out<l>;
    const Tile<l> tile(block);
    if (tile.ours) {
      const int in = IN - tile.in, out = OUT - tile.out;
      empty<O, I>(old.data(forward_at<l>) + tile.out * IN + tile.in, IN, out, in);
      if constexpr (0 < l && l < HIDDEN)
        empty<I, O>(old.data(backward_at<l>) + tile.in * OUT + tile.out, OUT, in, out);
      if (tile.has_bias)
        for (int i = server; i < min(O, out); i += SERVERS)
          publish(old.biases(bias_at<l> + tile.out + i), EMPTY);
    }
    if constexpr (l + 1 < LAYERS) empty_weights<l + 1>();
  }
  __device__ __forceinline__ void empty_old() {
    empty_hidden<1>();
    empty_weights<0>();
    if (group == COLUMN_GROUPS - 1) {
      empty<ROWS, OUTPUTS>(old.data(delta_at<LAYERS>) + row * OUTPUTS, OUTPUTS, ROWS, OUTPUTS);
      if (server == 0) publish(old.loss((unsigned)row / ROWS), EMPTY);
    }
  }

  __device__ __forceinline__ void sum_losses(int step) {
    unsigned word[1] = {0};
    auto place = [&](int) { return lane < ROW_GROUPS ? (const T*)now.loss(lane) : nullptr; };
    begin(word, place);
    settle(word, place);
    const float loss = warp_sum(__uint_as_float(word[0]));
    if (lane == 0) a.losses[a.first_step + step] = loss / EXAMPLES;
  }

  __device__ __forceinline__ void run() {
    fetch_indices(0);
    sync_servers();
    fetch_input(0);
    if constexpr (DROPOUT) draw_masks(0);
    for (int step = 0; step < a.n_steps; step++) {
      const bool more = step + 1 < a.n_steps;
      now.base = a.exchange + step % 3 * TURN;
      old.base = a.exchange + (step + 2) % 3 * TURN;
      copy_wait<0>();
      barrier_sync<STEP_BEGINS, THREADS>();  // the rows are copied, and step - 1 has been read
      if (server == 0) arrive(a.counter);
      fetch_output_weights();
      barrier_arrive<OUTPUT_HERE, THREADS>();
      if (more) fetch_indices(step + 1);
      barrier_sync<INPUT_READ, THREADS>();
      if (more) fetch_input(step + 1);
      if (DROPOUT && more) draw_masks(step + 1);
      if (server == 0) await(a.counter, BLOCKS * (step + 1));
      sync_servers();
      empty_old();
      if (block == 0 && server < 32) sum_losses(step);
    }
  }
};
