// Products of tiles (128, TILE_N) by three warpgroups: one loads the operands with asynchronous
// copies, two multiply 64 rows each. Needs wgmma.cuh.
//
// -DTILE_N: 128 or 256. -DSTAGES: loads in flight. -DCLUSTER: blocks that share each tile of B, 1 or
// 2; they are neighbours along m.

constexpr int TILE_M = 128, TILE_K = 64, GROUP = 128;  // threads of a warpgroup
constexpr int A_BYTES = TILE_M * TILE_K * 2, B_BYTES = TILE_N * TILE_K * 2;

struct alignas(1024) Stage { unsigned char a[A_BYTES], b[B_BYTES]; };

struct Pipeline {
  Barrier full[STAGES], free[STAGES];
};

__device__ __forceinline__ void init_pipeline(Pipeline& p) {
  for (int s = 0; s < STAGES; s++) {
    init_barrier(&p.full[s], 1);
    init_barrier(&p.free[s], 2 * CLUSTER);
  }
}

// Position in the ring of stages.
struct Place {
  int stage = 0, parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == STAGES) { stage = 0; parity ^= 1; }
  }
};

// Loads rows [m, m + 128) of A and columns [n, n + TILE_N) of B, stored as rows, for all k; by one thread.
__device__ __forceinline__ void load_operands(const TensorMap& a, const TensorMap& b, Stage* stages, Pipeline& p,
                                              Place& at, int m, int n, int k_tiles, int rank) {
  constexpr int SHARE = TILE_N / CLUSTER;  // of B, loaded by this block for all blocks of the cluster
  for (int k = 0; k < k_tiles; k++, at.advance()) {
    wait_barrier(&p.free[at.stage], at.parity ^ 1);
    Barrier* full = &p.full[at.stage];
    Stage& s = stages[at.stage];
    expect_bytes(full, A_BYTES + B_BYTES);
    load_tile(s.a, a, full, k * TILE_K, m);
    unsigned char* to = s.b + rank * SHARE * TILE_K * 2;
    if (CLUSTER > 1) load_tile_for((1 << CLUSTER) - 1, to, b, full, k * TILE_K, n + rank * SHARE);
    else load_tile(to, b, full, k * TILE_K, n);
  }
}

__device__ __forceinline__ void release(Pipeline& p, int stage, int thread) {
  if (CLUSTER > 1 && thread < CLUSTER) arrive_at(&p.free[stage], thread);
  else if (thread == 0) arrive(&p.free[stage]);
}

// Queues d += the product of 64 rows of A and the tile of B of a stage; `group` is 0 or 1.
__device__ __forceinline__ void multiply_stage(float (&d)[TILE_N / 2], Stage& s, int group, int add) {
  unsigned long long a = tile_descriptor(s.a + group * (A_BYTES / 2)), b = tile_descriptor(s.b);
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < TILE_K / 16; i++)  // 16 of k are 32 bytes
    Wgmma<TILE_N>::multiply(d, a + i * 2, b + i * 2, add || i);
  wgmma_commit();
}

// d = the product of 64 rows of A and the tile of B. Calls `between` next to the first products.
template <class Call>
__device__ __forceinline__ void multiply(float (&d)[TILE_N / 2], Stage* stages, Pipeline& p, Place& at,
                                         int k_tiles, int group, Call between) {
  int thread = threadIdx.x % GROUP, last = at.stage;
  wait_barrier(&p.full[at.stage], at.parity);
  multiply_stage(d, stages[at.stage], group, 0);
  at.advance();
  between();
  for (int k = 1; k < k_tiles; k++) {
    wait_barrier(&p.full[at.stage], at.parity);
    multiply_stage(d, stages[at.stage], group, 1);
    wgmma_wait<1>();
    release(p, last, thread);
    last = at.stage;
    at.advance();
  }
  wgmma_wait<0>();
  release(p, last, thread);
}
