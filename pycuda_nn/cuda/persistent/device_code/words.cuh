// Words that blocks exchange, copies of matrices to shared memory, barriers, places of the clocks.

// Clocks of a block, if compiled with -DPROFILE. The names tell what has just ended. Layers and hidden
// layers follow the first name of their kind.
enum {
  STEP_BEGAN = 0, FIRST_HIDDEN = 1, INPUTS_REQUESTED = 2, NEXT_HIDDEN = 2,
  LAST_HIDDEN_FETCHED = 8, OUTPUT_DONE, LAST_DELTA, ALL_DELTAS, DELTAS_REQUESTED,
  LAYER_UPDATED = 12, GRADIENT_FETCHED = 16, BACKWARD_PRODUCT = 20, FORWARD_PRODUCT = 24,
  STEP_ENDED = 30, STEP_WAITS = 31, CLOCKS = 32
};
#if defined(PROFILE)
#define MARK(k) \
  if (threadIdx.x == 0 && step == a.n_steps / 2) a.profile[blockIdx.x * CLOCKS + (k)] = clock64();
#else
#define MARK(k)
#endif

// Barriers of the block: all threads start a step; workers; workers have read the input rows;
// servers have fetched the weights of the last layer; servers.
enum { STEP_BEGINS, OF_WORKERS, INPUT_READ, OUTPUT_HERE, OF_SERVERS };

__device__ __forceinline__ void sync_workers() { barrier_sync<OF_WORKERS, WORKERS>(); }
__device__ __forceinline__ void sync_servers() { barrier_sync<OF_SERVERS, SERVERS>(); }

// ---- words that can still be empty
__device__ __forceinline__ bool is_empty(unsigned u) { return u == EMPTY; }
__device__ __forceinline__ bool is_empty(uint2 u) { return max(u.x, u.y) == EMPTY; }
__device__ __forceinline__ bool is_empty(uint4 u) {
  return max(max(u.x, u.y), max(u.z, u.w)) == EMPTY;
}

// Starts reading the words at place(0) to place(N - 1); gives zeros where place(i) is nullptr.
template <int N, class Words, class At>
__device__ __forceinline__ void begin(Words (&to)[N], At place) {
#pragma unroll
  for (int i = 0; i < N; i++) {
    to[i] = Words{};
    if (const T* at = place(i)) peek(to[i], at);
  }
}

// Rereads empty words until all are written; the whole warp waits.
template <int N, class Words, class At>
__device__ __forceinline__ void settle(Words (&to)[N], At place) {
  for (bool again = true; __any_sync(~0u, again);) {
    again = false;
#pragma unroll
    for (int i = 0; i < N; i++)
      if (is_empty(to[i])) {
        peek(to[i], place(i));
        again = true;
      }
  }
}

// ---- copy a matrix to shared memory: N rows of at most WIDE columns, of which `wide` exist. Calls
// each(r, c) for the pieces of thread `me` of TEAM: 16 bytes of row r from column c.
template <int TEAM, int N, int WIDE, class Each>
__device__ __forceinline__ void each_16_bytes(int me, int wide, Each each) {
  constexpr int ACROSS = at_most(power_of_2(WIDE / PIECE), TEAM), DOWN = TEAM / ACROSS;
#pragma unroll 1
  for (int c = me % ACROSS * PIECE; c < at_most(WIDE, wide); c += ACROSS * PIECE)
#pragma unroll 4
    for (int r = me / ACROSS; r < N; r += DOWN) each(r, c);
}

template <int TEAM, int N, int WIDE, int PITCH, class Row>
__device__ __forceinline__ void fetch(T* to, int me, int wide, Row row) {
  each_16_bytes<TEAM, N, WIDE>(
      me, wide, [&](int r, int c) { copy_async(to + r * PITCH + c, row(r) + c); });
}

// After the copies of a fetch from the exchange: repeats the copies that were too early.
template <int TEAM, int N, int WIDE, int PITCH, class Row>
__device__ __forceinline__ void settle_fetched(T* to, int me, int wide, Row row) {
  for (bool again = true; again;) {
    again = false;
    each_16_bytes<TEAM, N, WIDE>(me, wide, [&](int r, int c) {
      if (is_empty(*(const uint4*)(to + r * PITCH + c))) {
        copy_async(to + r * PITCH + c, row(r) + c);
        again = true;
      }
    });
    if (again) {
      copy_commit();
      copy_wait<0>();
    }
  }
}
