// Words that blocks exchange, copies of matrices to shared memory, activations, place of a thread.

#if defined(PROFILE)
#define MARK(k) \
  if (threadIdx.x == 0 && step == a.n_steps / 2) a.profile[blockIdx.x * 32 + (k)] = clock64();
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
  constexpr int ACROSS = at_most(power_of_2(WIDE / 8), TEAM), DOWN = TEAM / ACROSS;
#pragma unroll 1
  for (int c = me % ACROSS * 8; c < at_most(WIDE, wide); c += ACROSS * 8)
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

// ---- activations
__device__ __forceinline__ float activated(float z) {
#if defined(PLAN_RELU)
  return z < 0.f ? 0.f : z;  // keeps NaN
#elif defined(PLAN_TANH)
  return tanhf(z);
#else
  return 0.5f * tanhf(0.5f * z) + 0.5f;
#endif
}
__device__ __forceinline__ float slope(float a) {  // given a = activated(z)
#if defined(PLAN_RELU)
  return a > 0.f ? 1.f : 0.f;
#elif defined(PLAN_TANH)
  return 1.f - a * a;
#else
  return a * (1.f - a);
#endif
}
__device__ __forceinline__ unsigned sloped(float even_delta, float odd_delta, unsigned a) {
  return pair(even_delta * slope(even(a)), odd_delta * slope(odd(a)));
}

// ---- parameters of a thread in layer l and all layers above
template <int l> struct Mine : Mine<l + 1> {
  float w[fragments<l>][4], v[fragments<l>][4];  // e: row g + 8 (e / 2), column 2 t + e % 2
};
template <> struct Mine<LAYERS> {};

struct Place {  // place of a thread
  int block, row, group, me, warp, lane, g, t;
  __device__ Place()
      : block(blockIdx.x), row(blockIdx.x / COLUMN_GROUPS * ROWS),
        group(blockIdx.x % COLUMN_GROUPS), me(threadIdx.x), warp(threadIdx.x / 32),
        lane(threadIdx.x % 32), g(threadIdx.x % 32 / 4), t(threadIdx.x % 4) {}
};
