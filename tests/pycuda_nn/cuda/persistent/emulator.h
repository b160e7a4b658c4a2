// Emulates on the CPU a kernel with named barriers, warp operations and words that blocks exchange.
// Every thread is a fiber; blocks run in random order, and one block at a time is slow. Stores that
// other blocks read become visible late and in any order (except to the same address); only `arrive`
// orders them. Copies happen at their start or at the wait for them, at random. Replaces common.cuh
// and tensor.cuh.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
struct float2 { float x, y; };
struct half16 { unsigned short bits; };
struct bfloat16 { unsigned short bits; };

namespace emulator {

struct Copy { void* to; const void* from; };
struct Store { unsigned *at, word; };
struct Meeting { int arrived = 0, generation = 0; };
struct Index { int x; };

struct Block;
struct Warp { Meeting meeting; unsigned words[2][32][16]; };
struct Fiber {
  Block* block;
  Warp* warp;
  Index thread;
  int turn = 0;
  bool done = false;
  const Meeting* waits = nullptr;
  int generation = 0;
  std::vector<std::vector<Copy>> copies{1};
  std::unique_ptr<char[]> stack;
  void* sp = nullptr;
};
struct Block {
  Index index;
  std::unique_ptr<unsigned char[]> memory;
  unsigned char* shared;
  Meeting barriers[16];
  std::vector<Store> stores;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<std::unique_ptr<Fiber>> fibers;
};

inline Fiber* current;
inline void* scheduler_sp;
inline std::mt19937 random;
inline bool orderly;  // no late stores, for large networks
inline std::function<void()> kernel;

extern "C" void emulator_switch(void** from, void* to);
asm(R"(.text
emulator_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
)");

inline void yield() { emulator_switch(&current->sp, scheduler_sp); }
inline bool chance(int of) { return random() % of == 0; }

inline void meet(Meeting& at, int n, bool wait) {
  const int generation = at.generation;
  if (++at.arrived == n) {
    at.arrived = 0;
    at.generation++;
  } else if (wait) {
    current->waits = &at;
    current->generation = generation;
    yield();
    current->waits = nullptr;
  }
}

inline void show(Block& block, size_t i) {  // the oldest store to the address of store i
  size_t first = 0;
  while (block.stores[first].at != block.stores[i].at) first++;
  *block.stores[first].at = block.stores[first].word;
  block.stores.erase(block.stores.begin() + first);
}
inline void show_all(Block& block) {
  for (const Store& store : block.stores) *store.at = store.word;
  block.stores.clear();
}
inline void show_to_own_block(const void* at, int words) {
  auto& stores = current->block->stores;
  for (size_t i = 0; i < stores.size();)
    if (stores[i].at >= (unsigned*)at && stores[i].at < (unsigned*)at + words) {
      *stores[i].at = stores[i].word;
      stores.erase(stores.begin() + i);
    } else {
      i++;
    }
}

// Takes N words of each lane and returns the words of all lanes.
template <int N> unsigned (*exchange(const unsigned* mine))[16] {
  Fiber* self = current;
  auto* words = self->warp->words[self->turn++ % 2];
  memcpy(words[self->thread.x % 32], mine, 4 * N);
  meet(self->warp->meeting, 32, true);
  return words;
}

inline void enter() {
  kernel();
  current->done = true;
  yield();
}

// Returns whether the kernel has finished; false if it deadlocks.
inline bool run(int blocks, int threads, size_t shared_bytes, unsigned seed, bool in_order) {
  constexpr size_t STACK = 64 * 1024;
  size_t turns = (size_t)blocks * 20000;
  int slow = 0;  // a block that runs only if the others wait for it
  random.seed(seed);
  orderly = in_order;
  std::vector<std::unique_ptr<Block>> all;
  for (int i = 0; i < blocks; i++) {
    auto block = std::make_unique<Block>();
    block->index.x = i;
    block->memory.reset(new unsigned char[shared_bytes + 128]);
    memset(block->memory.get(), 0xcd, shared_bytes + 128);
    block->shared = (unsigned char*)(((uintptr_t)block->memory.get() + 127) / 128 * 128);
    for (int t = 0; t < threads; t++) {
      if (t % 32 == 0) block->warps.push_back(std::make_unique<Warp>());
      auto fiber = std::make_unique<Fiber>();
      fiber->block = block.get();
      fiber->warp = block->warps.back().get();
      fiber->thread.x = t;
      fiber->stack.reset(new char[STACK]);
      void** top = (void**)(((uintptr_t)fiber->stack.get() + STACK) / 16 * 16);
      *--top = nullptr;
      *--top = (void*)enter;
      fiber->sp = top - 6;
      block->fibers.push_back(std::move(fiber));
    }
    all.push_back(std::move(block));
  }
  for (size_t left = (size_t)blocks * threads; left;) {
    if (!--turns) return false;
    if (chance(64 * blocks)) slow = random() % blocks;
    const int next = random() % blocks;
    if (next == slow && blocks > 1 && !chance(64)) continue;
    Block& block = *all[next];
    const size_t first = random() % threads;
    for (int i = 0; i < threads; i++) {
      Fiber& fiber = *block.fibers[(first + i) % threads];
      if (fiber.done || (fiber.waits && fiber.waits->generation == fiber.generation)) continue;
      current = &fiber;
      emulator_switch(&scheduler_sp, fiber.sp);
      left -= fiber.done;
    }
    for (size_t n = block.stores.size() / 4 + 1; n && !block.stores.empty(); n--)
      show(block, random() % block.stores.size());
  }
  for (auto& block : all) show_all(*block);
  return true;
}

}  // namespace emulator

#define threadIdx (emulator::current->thread)
#define blockIdx (emulator::current->block->index)

// ---- names of CUDA C++
inline int min(int a, int b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float square_root(float x) { return std::sqrt(x); }
inline unsigned long long opaque(unsigned long long x) { return x; }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline unsigned __float_as_uint(float x) { unsigned u; memcpy(&u, &x, 4); return u; }
inline float __uint_as_float(unsigned u) { float x; memcpy(&x, &u, 4); return x; }
inline void __syncwarp() { emulator::meet(emulator::current->warp->meeting, 32, true); }
inline float __shfl_xor_sync(unsigned, float x, int lanes) {
  const unsigned word = __float_as_uint(x);
  auto* all = emulator::exchange<1>(&word);
  return __uint_as_float(all[threadIdx.x % 32 ^ lanes][0]);
}
inline bool __any_sync(unsigned, bool x) {
  const unsigned word = x;
  auto* all = emulator::exchange<1>(&word);
  for (int lane = 0; lane < 32; lane++)
    if (all[lane][0]) return true;
  return false;
}

// ---- common.cuh
#if defined(T_FLOAT)
typedef float T;
#elif defined(T_HALF)
typedef half16 T;
inline float to_float(half16 x) { _Float16 y; memcpy(&y, &x, 2); return (float)y; }
inline unsigned short bits(float x) {
  const _Float16 y = (_Float16)x;
  unsigned short out;
  memcpy(&out, &y, 2);
  return x != x ? 0x7fff : out;
}
constexpr unsigned ONES = 0x3c003c00u;
#else
typedef bfloat16 T;
inline float to_float(bfloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }
inline unsigned short bits(float x) {
  const unsigned u = __float_as_uint(x);
  return x != x ? 0x7fff : (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
constexpr unsigned ONES = 0x3f803f80u;
#endif
inline float warp_sum(float x) {
  for (int lane = 16; lane; lane >>= 1) x += __shfl_xor_sync(~0u, x, lane);
  return x;
}

// ---- tensor.cuh
#if defined(T_FLOAT)
inline float tensor_float(unsigned word) { return __uint_as_float(word & 0xffffe000u); }
inline float product_of_words(unsigned a, unsigned b) { return tensor_float(a) * tensor_float(b); }
#else
inline unsigned pair(float even, float odd) { return bits(even) | (unsigned)bits(odd) << 16; }
inline float even(unsigned both) { return to_float(T{(unsigned short)both}); }
inline float odd(unsigned both) { return to_float(T{(unsigned short)(both >> 16)}); }
inline float product_of_words(unsigned a, unsigned b) {
  return even(a) * even(b) + odd(a) * odd(b);
}
#endif

inline void mma(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                unsigned b1) {
  const unsigned mine[] = {a0, a1, a2, a3, b0, b1};
  auto* all = emulator::exchange<6>(mine);
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int e = 0; e < 4; e++)
    for (int k = 0; k < 8; k++) {
      const unsigned a = all[g * 4 + k % 4][e / 2 + k / 4 * 2];
      const unsigned b = all[(2 * t + e % 2) * 4 + k % 4][4 + k / 4];
      c[e] += product_of_words(a, b);
    }
}
#if !defined(T_FLOAT)
inline void load_transposed(unsigned (&to)[4], const T* row) {
  unsigned mine[2];
  memcpy(mine, &row, 8);
  auto* all = emulator::exchange<2>(mine);
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int j = 0; j < 4; j++) {
    const T *first, *second;
    memcpy(&first, all[8 * j + 2 * t], 8);
    memcpy(&second, all[8 * j + 2 * t + 1], 8);
    if ((uintptr_t)first % 16) abort();
    to[j] = first[g].bits | (unsigned)second[g].bits << 16;
  }
  __syncwarp();  // the reads finish with the instruction
}
inline unsigned transposed(unsigned both) {
  auto* all = emulator::exchange<1>(&both);
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, shift = g % 2 * 16;
  return (all[2 * t * 4 + g / 2][0] >> shift & 0xffff) |
         (all[(2 * t + 1) * 4 + g / 2][0] >> shift) << 16;
}
#endif

namespace emulator {
inline void copy(const Copy& one) {
  show_to_own_block(one.from, 4);
  if ((uintptr_t)one.to % 16 || (uintptr_t)one.from % 16) abort();
  memcpy(one.to, one.from, 16);
}
}  // namespace emulator
inline void copy_async(void* to, const void* from) {
  if (emulator::chance(2))
    emulator::copy({to, from});
  else
    emulator::current->copies.back().push_back({to, from});
}
inline void copy_commit() { emulator::current->copies.emplace_back(); }
template <int PENDING> void copy_wait() {
  auto& copies = emulator::current->copies;
  while (copies.size() > PENDING + 1) {
    for (const auto& one : copies.front()) emulator::copy(one);
    copies.erase(copies.begin());
  }
  emulator::yield();
}
template <int ID, int N> void barrier_sync() {
  emulator::meet(emulator::current->block->barriers[ID], N, true);
}
template <int ID, int N> void barrier_arrive() {
  emulator::meet(emulator::current->block->barriers[ID], N, false);
}

constexpr unsigned EMPTY = 0xffffffffu;
template <class Words> void peek(Words& to, const void* at) {
  if ((uintptr_t)at % sizeof(Words)) abort();
  emulator::show_to_own_block(at, sizeof(Words) / 4);
  memcpy(&to, at, sizeof(Words));
  emulator::yield();
}
inline void publish(void* at, unsigned word) {
  if ((uintptr_t)at % 4) abort();
  if (emulator::orderly)
    *(unsigned*)at = word;
  else
    emulator::current->block->stores.push_back({(unsigned*)at, word});
}
inline void publish(void* at, uint2 words) {
  if ((uintptr_t)at % 8) abort();
  publish(at, words.x);
  publish((unsigned*)at + 1, words.y);
}
inline void publish(void* at, uint4 words) {
  if ((uintptr_t)at % 16) abort();
  const unsigned word[] = {words.x, words.y, words.z, words.w};
  for (int i = 0; i < 4; i++) publish((unsigned*)at + i, word[i]);
}
inline void arrive(int* counter) {
  emulator::show_all(*emulator::current->block);
  ++*counter;
}
inline void await(const int* counter, int target) {
  while (*(const volatile int*)counter < target) emulator::yield();
}
template <int N> void take_registers() {}
template <int N> void give_registers() {}
