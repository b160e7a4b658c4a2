// D (m, n) = alpha A B + beta D in float32, row-major, for products whose tiles are too few to fill
// a GPU: the 8 warps of a block divide its tile, 32 x 32 per warp, and then the sums over k; from
// compute capability 9.0 the blocks of a cluster divide the sums further. The order of the sums is
// fixed. Needs device.cuh and results.cuh.
//
// -DA_ALONG_K=1|0: A is stored as (m, k) or as (k, m); -DB_ALONG_K=1|0: B is stored as (n, k) or as
// (k, n). -DTILE_M, -DTILE_N: tile of a block, 32 or 64. -DSPLIT: blocks of a cluster. n and the row
// lengths of A and B are multiples of 4. Needs compute capability 8.0.

// A warp has 32 x 32 results, a thread 8 rows and 4 columns of them.
constexpr int LANES_M = 4, LANES_N = 8, THREAD_M = 8, THREAD_N = 4;
constexpr int WARPS_M = TILE_M / 32, WARPS_N = TILE_N / 32, WARPS_K = 8 / (WARPS_M * WARPS_N);
constexpr int CHUNK = 32, SHARE = CHUNK / WARPS_K;  // length along k of a stage, and of a warp

// The part of a stage of one operand: along k with rows 4 words apart in banks, else as stored.
template <int TILE, bool ALONG_K> struct Panel {
  static constexpr int WIDTH = ALONG_K ? CHUNK + 4 : TILE, WORDS = WIDTH * (ALONG_K ? TILE : CHUNK);
};
typedef Panel<TILE_M, A_ALONG_K> PanelA;
typedef Panel<TILE_N, B_ALONG_K> PanelB;

constexpr int STAGE = PanelA::WORDS + PanelB::WORDS, ROOM = 12288;  // words; 48 KiB
constexpr int STAGES = ROOM / STAGE < 4 ? ROOM / STAGE : 4;
constexpr int SUM_WIDTH = TILE_N + 8, SUMS = TILE_M * SUM_WIDTH;
constexpr int WORDS = STAGES * STAGE > WARPS_K * SUMS ? STAGES * STAGE : WARPS_K * SUMS;
static_assert(STAGES >= 2 && WORDS <= ROOM, "more shared memory than there is");

// Copies rows (or columns) from `first` of an operand with `length` of them, and CHUNK of k from `k0`.
template <int TILE, bool ALONG_K>
__device__ __forceinline__ void copy_panel(float* to, const float* from, int first, int length, int k0, int k) {
  constexpr int ACROSS = (ALONG_K ? CHUNK : TILE) / 4;
#pragma unroll
  for (int i = threadIdx.x; i < TILE * CHUNK / 4; i += 256) {
    int r = i / ACROSS, c = i % ACROSS * 4;
    int at = first + (ALONG_K ? r : c), in_k = k0 + (ALONG_K ? c : r);
    bool there = at < length && in_k < k;
    size_t offset = ALONG_K ? (size_t)at * k + in_k : (size_t)in_k * length + at;
    copy_pack(to + r * Panel<TILE, ALONG_K>::WIDTH + c, from + (there ? offset : 0), there);
  }
}

// The row (or column), of the 32 of the warp, of element `i` of a thread; `lane` is one of LANES.
template <bool ALONG_K, int LANES> __device__ __forceinline__ int place(int lane, int i) {
  return ALONG_K ? lane + LANES * i : (i / 4 * LANES + lane) * 4 + i % 4;
}

// Reads COUNT elements of a thread at each of 4 places of k.
template <int TILE, bool ALONG_K, int LANES, int COUNT>
__device__ __forceinline__ void read_panel(const float* panel, int first, int lane, int k, float (&out)[4][COUNT]) {
  constexpr int WIDTH = Panel<TILE, ALONG_K>::WIDTH;
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    if constexpr (ALONG_K) {
      Pack<float> p = *(const Pack<float>*)(panel + (first + place<true, LANES>(lane, i)) * WIDTH + k);
#pragma unroll
      for (int t = 0; t < 4; t++) out[t][i] = p.at[t];
    } else {
      int t = i % 4, h = i / 4;  // 4 neighbours of one place of k
      Pack<float> p = *(const Pack<float>*)(panel + (k + t) * WIDTH + first + place<false, LANES>(lane, 4 * h));
#pragma unroll
      for (int e = 0; e < 4; e++) out[t][4 * h + e] = p.at[e];
    }
  }
}

// Returns the sum of the results of all warps, of which the first has its at `at`.
__device__ __forceinline__ Pack<float> sum_of_warps(const Pack<float>* at) {
  Pack<float> total = *at;
#pragma unroll
  for (int p = 1; p < WARPS_K; p++) add(total, at[p * SUMS / 4]);
  return total;
}

// Returns the sum of the results at `at` of all blocks of the cluster.
__device__ __forceinline__ Pack<float> sum_of_all(const float* at) {
#if SPLIT > 1
  Pack<float> parts[SPLIT], total = {};
#pragma unroll
  for (int p = 0; p < SPLIT; p++) parts[p] = read_of(at, p);
#pragma unroll
  for (int p = 0; p < SPLIT; p++) add(total, parts[p]);
  return total;
#else
  return sum_of_warps((const Pack<float>*)at);
#endif
}

extern "C" __global__ void __launch_bounds__(256, 2)
#if SPLIT > 1
__cluster_dims__(1, 1, SPLIT)
#endif
sgemm(const __grid_constant__ Task task) {
  __shared__ __align__(16) float shared[WORDS];
  const Sgemm& u = task.p;
  constexpr int PACKS = TILE_M * TILE_N / 4, ACROSS = TILE_N / 4;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, x = lane % LANES_N, y = lane / LANES_N;
  int part = warp / (WARPS_M * WARPS_N), in_m = warp % WARPS_M * 32, in_n = warp / WARPS_M % WARPS_N * 32;
  int m0 = blockIdx.y * TILE_M, n0 = blockIdx.x * TILE_N;
  int chunks = (u.k + CHUNK - 1) / CHUNK;
  int begin = blockIdx.z * chunks / SPLIT, end = (blockIdx.z + 1) * chunks / SPLIT;
  int first_pack = threadIdx.x + blockIdx.z * PACKS / SPLIT, end_pack = (blockIdx.z + 1) * PACKS / SPLIT;
  auto copy_stage = [&](int c) {
    if (c < end) {
      float* stage = shared + (c - begin) % STAGES * STAGE;
      copy_panel<TILE_M, A_ALONG_K>(stage, u.a, m0, u.m, c * CHUNK, u.k);
      copy_panel<TILE_N, B_ALONG_K>(stage + PanelA::WORDS, u.b, n0, u.n, c * CHUNK, u.k);
    }
    commit_copies();
  };
  float sum[THREAD_M][THREAD_N] = {};
#pragma unroll
  for (int c = 0; c < STAGES - 1; c++) copy_stage(begin + c);
#if EPILOGUE == 1 || EPILOGUE == 2
  Drawn drawn{task.u.scale};
  if (DRAWS) {
    int place = 0;
    for (int q = first_pack; q < end_pack; q += 256) {
      Keeper keeper(task.u);
      int row = m0 + q / ACROSS, column = n0 + q % ACROSS * 4;
      for (int e = 0; e < 4; e++, place++)
        if (keeper.factor((long long)(task.u.first + row) * task.u.width + column + e) > 0.f) drawn.kept |= 1u << place;
    }
  }
#elif EPILOGUE == 3
  float rate = task.u.rates[task.u.clock->step + task.u.j];
#endif
  for (int c = begin; c < end; c++) {
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    copy_stage(c + STAGES - 1);
    const float* stage = shared + (c - begin) % STAGES * STAGE;
#pragma unroll
    for (int k = 0; k < SHARE; k += 4) {
      float a[4][THREAD_M], b[4][THREAD_N];
      read_panel<TILE_M, A_ALONG_K, LANES_M>(stage, in_m, y, part * SHARE + k, a);
      read_panel<TILE_N, B_ALONG_K, LANES_N>(stage + PanelA::WORDS, in_n, x, part * SHARE + k, b);
#pragma unroll
      for (int t = 0; t < 4; t++)
#pragma unroll
        for (int i = 0; i < THREAD_M; i++)
#pragma unroll
          for (int j = 0; j < THREAD_N; j++) sum[i][j] += a[t][i] * b[t][j];
    }
  }
  wait_for_copies<0>();
  __syncthreads();
#pragma unroll
  for (int i = 0; i < THREAD_M; i++)
#pragma unroll
    for (int j = 0; j < THREAD_N; j++)
      shared[part * SUMS + (in_m + place<A_ALONG_K, LANES_M>(y, i)) * SUM_WIDTH + in_n + place<B_ALONG_K, LANES_N>(x, j)] = sum[i][j];
  __syncthreads();
#if SPLIT > 1
  for (int q = threadIdx.x; q < PACKS; q += 256) {
    Pack<float>* at = (Pack<float>*)(shared + q / ACROSS * SUM_WIDTH + q % ACROSS * 4);
    *at = sum_of_warps(at);
  }
  cluster_barrier();
#endif
#if EPILOGUE == 2
  Pack<float> columns = {};
#endif
#pragma unroll 2
  for (int q = first_pack; q < end_pack; q += 256) {
    int row = m0 + q / ACROSS, column = n0 + q % ACROSS * 4;
    Pack<float> total = sum_of_all(shared + q / ACROSS * SUM_WIDTH + q % ACROSS * 4);
    if (row >= u.m || column >= u.n) break;  // and so are the next of this thread
#if EPILOGUE == 0
    write_pack(u, row, column, total);
#elif EPILOGUE == 1
    write_pack(task, drawn, row, column, total);
#elif EPILOGUE == 2
    add(columns, write_pack(task, drawn, row, column, total));
#else
    write_pack(task, rate, row, column, total);
#endif
  }
#if SPLIT > 1
  cluster_barrier();  // the others have read this block's sums
#elif EPILOGUE == 2
  __syncthreads();
#endif
#if EPILOGUE == 2
  sum_columns(task, shared, n0, first_pack % ACROSS * 4, columns);
#endif
}
