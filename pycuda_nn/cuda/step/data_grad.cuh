// The gradient of a hidden layer's activation times its slope, and its column sums, in one kernel:
// what a product and `activation_grad` of hidden.cuh compute. Needs pipeline.cuh and hidden.cuh.
// Each block takes tiles (128, TILE_N), one after the other. A warp stores 16 rows of a tile.

struct DataGradMaps { TensorMap delta, weight, h, out; };  // (rows, outputs), (inputs, outputs), (rows, inputs) twice

struct DataGrad {
  const DataGradMaps* maps;
  int* counter;  // two zeros
  Activation u;  // `partial` has a row of sums for each 64 rows
  int inputs, outputs;
};

constexpr int CHUNKS = TILE_N / 64, CHUNK_BYTES = 16 * 128;  // 16 rows of 64 columns

struct Shared {
  Stage stages[STAGES];
  unsigned char out[8][CHUNKS][CHUNK_BYTES];  // of each warp: h, then the result
  float sums[2][2][4][TILE_N];                // of each warpgroup, for even and odd tiles, of its warps
  Pipeline pipeline;
  Queue queue;
  Barrier loaded[8];
};

__device__ __forceinline__ unsigned pack_two(float low, float high) {
  unsigned both;
#if defined(T_HALF)
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
#else
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
#endif
  return both;
}

#if defined(T_HALF)
#define TWO_ONES 0x3c003c00u
#else
#define TWO_ONES 0x3f803f80u
#endif

// Two gradients of row r, columns c and c + 1, times the slopes of the two activations in h.
__device__ __forceinline__ unsigned through_two(const Activation& u, float low, float high, unsigned h, int r, int c) {
#if ACTIVATION == 0
  unsigned mask;
  asm("set.gt.u32." WGMMA_TYPE "x2 %0, %1, %2;" : "=r"(mask) : "r"(h), "r"(0));
  return pack_two(low, high) & mask;
#else
#if ACTIVATION == 3  // in rows after the last h is 0, where the slope is possibly not finite
  if (r >= u.rows) return 0;
#endif
  Keeper keeper(u);
  T first, second;
  first.bits = (unsigned short)h;
  second.bits = (unsigned short)(h >> 16);
  return pack_two(through_activation(u, keeper, low, to_float(first), r, c),
                  through_activation(u, keeper, high, to_float(second), r, c + 1));
#endif
}

// Shared address, for a lane, of a row of one of the four 8 x 8 matrices in columns [16 j, 16 j + 16) of a chunk.
__device__ __forceinline__ unsigned matrices_at(unsigned chunk, int j, int lane) {
  return chunk + (lane & 15) * 128 + ((j * 32 + (lane >> 4 << 4)) ^ ((lane & 7) << 4));
}

// 64 columns of 16 rows: the result overwrites h; r and c are those of d[0].
__device__ __forceinline__ void scale_chunk(const Activation& u, const float* d, unsigned chunk, int r, int c, int lane) {
#pragma unroll
  for (int j = 0; j < 4; j++) {
    unsigned at = matrices_at(chunk, j, lane), h[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(h[0]), "=r"(h[1]), "=r"(h[2]), "=r"(h[3]) : "r"(at) : "memory");
#pragma unroll
    for (int q = 0; q < 4; q++)
      h[q] = through_two(u, d[j * 8 + q * 2], d[j * 8 + q * 2 + 1], h[q], r + (q & 1) * 8, c + j * 16 + (q >> 1) * 8);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%4], {%0, %1, %2, %3};"
                 ::"r"(h[0]), "r"(h[1]), "r"(h[2]), "r"(h[3]), "r"(at) : "memory");
  }
}

// Sums of 64 columns of 16 rows, as a product of ones and the chunk.
__device__ __forceinline__ void sum_chunk(unsigned chunk, float* sums, int lane) {
#pragma unroll
  for (int j = 0; j < 8; j += 2) {
    unsigned b[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]) : "r"(matrices_at(chunk, j / 2, lane)) : "memory");
#pragma unroll
    for (int q = 0; q < 2; q++) {
      float s[4];
      asm("mma.sync.aligned.m16n8k16.row.col.f32." WGMMA_TYPE "." WGMMA_TYPE ".f32 {%0, %1, %2, %3},"
          " {%4, %4, %4, %4}, {%5, %6}, {%7, %7, %7, %7};"
          : "=f"(s[0]), "=f"(s[1]), "=f"(s[2]), "=f"(s[3])
          : "r"(TWO_ONES), "r"(b[q * 2]), "r"(b[q * 2 + 1]), "f"(0.f));
      if (lane < 4) *(float2*)(sums + (j + q) * 8 + lane * 2) = make_float2(s[0], s[1]);
    }
  }
}

struct Tiles {
  int across, count;
  __device__ __forceinline__ Tiles(const DataGrad& g) {
    across = (g.inputs + TILE_N - 1) / TILE_N;
    count = across * ((g.u.rows + TILE_M * CLUSTER - 1) / (TILE_M * CLUSTER));
  }
  __device__ __forceinline__ int m(int tile, int rank) const { return (tile / across * CLUSTER + rank) * TILE_M; }
  __device__ __forceinline__ int n(int tile) const { return tile % across * TILE_N; }
};

// Writes the column sums of the 64 rows from m, columns from n, by a warpgroup.
__device__ __forceinline__ void write_sums(const DataGrad& g, const float (&sums)[4][TILE_N], int m, int n, int group) {
  asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
  for (int c = threadIdx.x % GROUP; c < TILE_N && m < g.u.rows; c += GROUP)
    if (n + c < g.inputs)
      g.u.partial[(size_t)(m / 64) * g.inputs + n + c] = sums[0][c] + sums[1][c] + sums[2][c] + sums[3][c];
}

__device__ __forceinline__ void consume(const DataGrad& g, Shared& shared, const Tiles& tiles, int rank) {
  int group = threadIdx.x / GROUP - 1, warp = threadIdx.x % GROUP / 32, lane = threadIdx.x % 32;
  int k_tiles = (g.outputs + TILE_K - 1) / TILE_K, parity = 0, before_m = g.u.rows, before_n = 0;
  auto& out = shared.out[group * 4 + warp];
  auto& sums = shared.sums[group];
  Barrier* loaded = &shared.loaded[group * 4 + warp];
  Place at;
  Turn turn;
  for (;; parity ^= 1) {
    int tile = lane == 0 ? read_tile(shared.queue, turn, rank) : 0;
    tile = __shfl_sync(0xffffffff, tile, 0);
    if (tile >= tiles.count) break;
    int m = tiles.m(tile, rank) + group * 64, n = tiles.n(tile);
    float d[TILE_N / 2];
    multiply(d, shared.stages, shared.pipeline, at, k_tiles, group, [&] {
      if (lane == 0) {
        wait_stores();
        expect_bytes(loaded, CHUNKS * CHUNK_BYTES);
        for (int c = 0; c < CHUNKS; c++) load_tile(out[c], g.maps->h, loaded, n + c * 64, m + warp * 16);
      }
      __syncwarp();
      write_sums(g, sums[parity ^ 1], before_m, before_n, group);
    });
    wait_barrier(loaded, parity);
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      scale_chunk(g.u, d + c * 32, shared_address(out[c]), m + warp * 16 + lane / 4, n + c * 64 + lane % 4 * 2, lane);
      fence_async();
      __syncwarp();
      if (lane == 0) {
        store_tile(g.maps->out, out[c], n + c * 64, m + warp * 16);
        commit_stores();
      }
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) sum_chunk(shared_address(out[c]), sums[parity][warp] + c * 64, lane);
    __syncwarp();
    before_m = m;
    before_n = n;
  }
  write_sums(g, sums[parity ^ 1], before_m, before_n, group);
  if (lane == 0) wait_stores();
}

__device__ __forceinline__ void produce(const DataGrad& g, Shared& shared, const Tiles& tiles, int rank) {
  int k_tiles = (g.outputs + TILE_K - 1) / TILE_K;
  Place at;
  Turn turn;
  for (;;) {
    int tile = rank ? read_tile(shared.queue, turn, rank) : draw_tile(shared.queue, turn, g.counter);
    if (tile >= tiles.count) break;
    load_operands(g.maps->delta, g.maps->weight, shared.stages, shared.pipeline, at, tiles.m(tile, rank),
                  tiles.n(tile), k_tiles, rank);
  }
  if (rank == 0) close_queue(g.counter);
}

extern "C" __global__ void
#if CLUSTER > 1
__cluster_dims__(CLUSTER, 1, 1)
#endif
__launch_bounds__(3 * GROUP, 1) data_grad(const __grid_constant__ DataGrad g) {
  extern __shared__ __align__(1024) unsigned char raw[];
  Shared& shared = *(Shared*)raw;
  int rank = CLUSTER > 1 ? cluster_rank() : 0;
  if (threadIdx.x == 0) {
    init_pipeline(shared.pipeline);
    init_queue(shared.queue);
    for (int w = 0; w < 8; w++) init_barrier(&shared.loaded[w], 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (CLUSTER > 1) cluster_barrier();
  else __syncthreads();
  Tiles tiles(g);
  if (threadIdx.x < GROUP) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) produce(g, shared, tiles, rank);
    __syncwarp();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    consume(g, shared, tiles, rank);
  }
  if (CLUSTER > 1) cluster_barrier();  // the other block no longer writes to this one's shared memory
}
