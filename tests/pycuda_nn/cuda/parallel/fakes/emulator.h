// Emulates on the CPU the kernels of several GPUs that run at the same time and wait for each other.
// Every thread is a fiber. Operations start when those before them in their streams have ended, at a
// random time; blocks run in random order, and one rank and one kernel at a time are slow. Stores to
// other GPUs become visible late and in any order (except to the same address): only a release of the
// same thread, or of a thread that met it at a barrier, orders them. Replaces peer.cuh.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__

namespace emulator {

struct Meeting { int arrived = 0, generation = 0; };
struct Index { int x = 0, y = 0, z = 0; };
struct Store { void* at; uint64_t low, high; int bytes, thread, generation; };
struct Warp { Meeting meeting; float words[2][32]; };
struct Grid;
struct Block;
struct Fiber {
  Block* block;
  Warp* warp;
  Index thread;
  int turn = 0;
  bool done = false;
  const Meeting* waits = nullptr;
  int generation = 0;
  std::unique_ptr<char[]> stack;
  void* sp = nullptr;
};
struct Block {
  Grid* grid;
  Index index;
  Meeting barrier;
  std::map<int, std::unique_ptr<char[]>> shared;
  std::vector<Store> stores;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<std::unique_ptr<Fiber>> fibers;
};
struct Operation {  // as in emulation.py
  int kind, rank, blocks, threads, held, n_after;
  const int* after;
  const void* arguments;
};
struct Grid {
  int number, rank, left = 0, host_turns = 0;
  Index blocks, threads;
  std::function<void()> kernel;
  std::vector<std::unique_ptr<Block>> all;
};

inline Fiber* current;
inline void* scheduler_sp;
inline std::mt19937 random;
inline std::vector<std::unique_ptr<char[]>> stacks;
inline int mutation;  // see emulation.py
constexpr size_t STACK = 32 * 1024;

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

inline void meet(Meeting& at, int n) {
  const int generation = at.generation;
  if (++at.arrived == n) {
    at.arrived = 0;
    at.generation++;
    return;
  }
  current->waits = &at;
  current->generation = generation;
  yield();
  current->waits = nullptr;
}

inline void show(Block& block, size_t i) {  // the oldest store to the address of store i
  size_t first = 0;
  while (block.stores[first].at != block.stores[i].at) first++;
  const Store& store = block.stores[first];
  const uint64_t words[] = {store.low, store.high};
  memcpy(store.at, words, store.bytes);
  block.stores.erase(block.stores.begin() + first);
}
inline void show_all(Block& block) {
  while (!block.stores.empty()) show(block, 0);
}
// Shows what a release of this thread orders.
inline void release() {
  Block& block = *current->block;
  for (size_t i = 0; i < block.stores.size();) {
    const Store& store = block.stores[i];
    if (store.thread == current->thread.x || store.generation < block.barrier.generation)
      show(block, i), i = 0;
    else
      i++;
  }
}
inline void store_late(void* at, const void* from, int bytes) {
  if ((uintptr_t)at % bytes) abort();
  Store store{at, 0, 0, bytes, current->thread.x, current->block->barrier.generation};
  memcpy(&store.low, from, bytes < 8 ? bytes : 8);
  if (bytes > 8) memcpy(&store.high, (const char*)from + 8, bytes - 8);
  current->block->stores.push_back(store);
  if (chance(4)) yield();
}

template <class U> U& shared(int id) {
  auto& memory = current->block->shared[id];
  if (!memory) {
    memory.reset(new char[sizeof(U)]);
    memset(memory.get(), 0xcd, sizeof(U));
  }
  return *(U*)memory.get();
}

inline void enter() {
  current->block->grid->kernel();
  current->done = true;
  yield();
}

inline std::unique_ptr<Grid> start(int number, const Operation& op, std::function<void()> kernel) {
  auto grid = std::make_unique<Grid>();
  grid->number = number;
  grid->rank = op.rank;
  grid->blocks.x = op.blocks;
  grid->threads.x = op.threads;
  grid->kernel = std::move(kernel);
  if (!grid->kernel) {
    grid->host_turns = 1 + random() % 20;
    return grid;
  }
  grid->left = op.blocks * op.threads;
  for (int i = 0; i < op.blocks; i++) {
    auto block = std::make_unique<Block>();
    block->grid = grid.get();
    block->index.x = i;
    for (int t = 0; t < op.threads; t++) {
      if (t % 32 == 0) block->warps.push_back(std::make_unique<Warp>());
      auto fiber = std::make_unique<Fiber>();
      fiber->block = block.get();
      fiber->warp = block->warps.back().get();
      fiber->thread.x = t;
      if (stacks.empty()) stacks.emplace_back(new char[STACK]);
      fiber->stack = std::move(stacks.back());
      stacks.pop_back();
      void** top = (void**)(((uintptr_t)fiber->stack.get() + STACK) / 16 * 16);
      *--top = nullptr;
      *--top = (void*)enter;
      fiber->sp = top - 6;
      block->fibers.push_back(std::move(fiber));
    }
    grid->all.push_back(std::move(block));
  }
  return grid;
}

// Runs every fiber of a random block until it waits.
inline void advance(Grid& grid) {
  if (grid.host_turns) {
    grid.host_turns--;
    return;
  }
  if (grid.all.empty()) return;
  Block& block = *grid.all[random() % grid.all.size()];
  const size_t threads = block.fibers.size(), first = random() % threads;
  for (size_t i = 0; i < threads; i++) {
    Fiber& fiber = *block.fibers[(first + i) % threads];
    if (fiber.done || (fiber.waits && fiber.waits->generation == fiber.generation)) continue;
    current = &fiber;
    emulator_switch(&scheduler_sp, fiber.sp);
    if (fiber.done) stacks.push_back(std::move(fiber.stack));
    grid.left -= fiber.done;
  }
  for (size_t n = block.stores.size() / 8 + chance(4); n && !block.stores.empty(); n--)
    show(block, random() % block.stores.size());
}

typedef void (*Host)(int number, int end);

// Runs all operations that can start; returns the operations that have ended, or -1 for a deadlock.
// `words` are those of the host; it stops the ranks at turn `stop_at`, if that is not negative.
inline int run(const Operation* ops, int n, int ranks, unsigned seed, unsigned* words, int stop_at,
               Host host, std::function<void()> (*kernel_of)(const Operation&)) {
  random.seed(seed);
  std::vector<int> missing(n);
  std::vector<std::vector<int>> next(n);
  std::vector<int> ready;
  std::vector<std::unique_ptr<Grid>> running;
  for (int i = 0; i < n; i++) {
    missing[i] = ops[i].n_after;
    for (int k = 0; k < ops[i].n_after; k++) next[ops[i].after[k]].push_back(i);
    if (!missing[i] && !ops[i].held) ready.push_back(i);
  }
  int ended = 0, slow_rank = 0, slow_kernel = 0;
  for (long turn = 0; !ready.empty() || !running.empty(); turn++) {
    if (turn > 20000L * (n + 100)) return -1;
    if (turn % 1000 == 999) words[1]++;
    if (turn == stop_at) words[0] = 1;
    if (chance(300)) slow_rank = random() % ranks;
    if (chance(100)) slow_kernel = random() % n;
    if (!ready.empty() && (running.empty() || chance(3))) {
      const size_t i = random() % ready.size();
      const int number = ready[i];
      if (ops[number].rank == slow_rank && !running.empty() && !chance(32)) continue;
      ready.erase(ready.begin() + i);
      auto kernel = kernel_of(ops[number]);
      if (!kernel) host(number, 0);
      running.push_back(start(number, ops[number], std::move(kernel)));
    }
    if (running.empty()) continue;
    const size_t i = random() % running.size();
    Grid& grid = *running[i];
    if ((grid.rank == slow_rank || grid.number == slow_kernel) && !chance(16)) continue;
    advance(grid);
    if (grid.left || grid.host_turns) continue;
    for (auto& block : grid.all) show_all(*block);
    if (!grid.kernel) host(grid.number, 1);
    ended++;
    for (int after : next[grid.number])
      if (!--missing[after] && !ops[after].held) ready.push_back(after);
    running.erase(running.begin() + i);
  }
  return ended;
}

}  // namespace emulator

#define threadIdx (emulator::current->thread)
#define blockIdx (emulator::current->block->index)
#define gridDim (emulator::current->block->grid->blocks)
#define blockDim (emulator::current->block->grid->threads)

// ---- names of CUDA C++
inline unsigned __float_as_uint(float x) { unsigned u; memcpy(&u, &x, 4); return u; }
inline float __uint_as_float(unsigned u) { float x; memcpy(&x, &u, 4); return x; }
inline float __int_as_float(int i) { return __uint_as_float(i); }
inline void __syncthreads() {
  emulator::meet(emulator::current->block->barrier, blockDim.x);
}
inline void __threadfence_system() { emulator::release(); }
inline unsigned atomicAdd(unsigned* at, unsigned more) {
  emulator::yield();
  const unsigned old = *at;
  *at += more;
  return old;
}
inline float __shfl_xor_sync(unsigned, float x, int lanes) {
  emulator::Fiber* self = emulator::current;
  float* words = self->warp->words[self->turn++ % 2];
  words[self->thread.x % 32] = x;
  emulator::meet(self->warp->meeting, 32);
  return words[self->thread.x % 32 ^ lanes];
}

// ---- peer.cuh; a Late is a float that other GPUs read
inline void put_flag(unsigned* at, unsigned value) {
  emulator::release();
  emulator::store_late(at, &value, 4);
}
inline unsigned get_flag(const unsigned* at) {
  emulator::yield();
  return *(const volatile unsigned*)at;
}
inline unsigned glance(const unsigned* at) { return *(const volatile unsigned*)at; }
inline void note(unsigned* at, unsigned value) { *(volatile unsigned*)at = value; }
struct Late {
  float value;
  void operator=(float x) { emulator::store_late(&value, &x, 4); }
  operator float() const { return value; }
};
inline float fresh(const Late* at) {
  if (emulator::chance(4)) emulator::yield();
  return at->value;
}
template <class U> struct alignas(16) Line { U at[8]; };
template <class U> void load_line(Line<U>& to, const U* from) {
  if ((uintptr_t)from % 16) abort();
  for (size_t k = 0; k < sizeof(to); k += 16) {
    memcpy((char*)to.at + k, (const char*)from + k, 16);
    if (emulator::chance(4)) emulator::yield();
  }
}
template <class U> void store_line(U* to, const Line<U>& from) {
  for (size_t k = 0; k < sizeof(from); k += 16)
    emulator::store_late((char*)to + k, (const char*)from.at + k, 16);
}
