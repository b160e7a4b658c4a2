// The next tile for the blocks that become free, in the order in which they ask: next to other kernels,
// some blocks start late. Needs pipeline.cuh.

struct Queue {
  Barrier full[2], free[2];
  int tile[2];
};

__device__ __forceinline__ void init_queue(Queue& q) {
  for (int s = 0; s < 2; s++) {
    init_barrier(&q.full[s], 1);
    init_barrier(&q.free[s], 8 * CLUSTER + CLUSTER - 1);  // all consuming warps, and the other block's loader
  }
}

// Position in the queue.
struct Turn {
  int slot = 0, parity = 0;
  __device__ __forceinline__ void advance() {
    parity ^= slot;
    slot ^= 1;
  }
};

// Returns the next tile, by the first block's loader, and shows it to all blocks of the cluster.
__device__ __forceinline__ int draw_tile(Queue& q, Turn& turn, int* counter) {
  wait_barrier(&q.free[turn.slot], turn.parity ^ 1);
  int tile = atomicAdd(counter, 1);
  for (int rank = 1; rank < CLUSTER; rank++) send(&q.tile[turn.slot], tile, &q.full[turn.slot], rank);
  q.tile[turn.slot] = tile;
  arrive(&q.full[turn.slot]);
  turn.advance();
  return tile;
}

// Returns the next tile, for one thread of each other warp that needs it; `rank` is the block in the cluster.
__device__ __forceinline__ int read_tile(Queue& q, Turn& turn, int rank) {
  if (CLUSTER > 1) receive(&q.full[turn.slot], turn.parity);
  else wait_barrier(&q.full[turn.slot], turn.parity);
  int tile = *(volatile int*)&q.tile[turn.slot];
  if (rank) arrive_at(&q.free[turn.slot], 0);
  else arrive(&q.free[turn.slot]);
  turn.advance();
  return tile;
}

// The last cluster sets the two counters to 0 for the next launch; called once in each cluster.
__device__ __forceinline__ void close_queue(int* counter) {
  if (atomicAdd(counter + 1, 1) == (int)gridDim.x / CLUSTER - 1) {
    counter[0] = 0;
    counter[1] = 0;
  }
}
