// Emulates on the CPU a kernel whose threads meet at barriers and in warps. Every thread is a fiber that runs until it
// has to wait; blocks and their threads run in random order. Replaces the built-in names of CUDA C++, and device.cuh.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#define __device__
#define __host__
#define __global__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__

struct double2 { double x, y; };
inline double2 make_double2(double x, double y) { return {x, y}; }

namespace emulator {

struct Meeting { int arrived = 0, generation = 0; };
struct Index { int x, y, z; };
struct Block;
struct Warp { Meeting meeting; unsigned words[2][32]; };
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
  Index index;
  std::unique_ptr<unsigned char[]> memory;
  float* shared;
  Meeting meeting;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<std::unique_ptr<Fiber>> fibers;
};

inline Fiber* current;
inline void* scheduler_sp;
inline std::vector<Meeting> everyone;  // of the blocks of a network
inline int all_threads, block_threads, network_blocks;
inline std::function<void()> kernel;
inline std::vector<std::unique_ptr<Block>> blocks_of_grid;

extern "C" void tiny_emulator_switch(void** from, void* to);
asm(R"(.text
tiny_emulator_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
)");

inline void meet(Meeting& at, int n) {
  const int generation = at.generation;
  if (++at.arrived == n) {
    at.arrived = 0;
    at.generation++;
    return;
  }
  current->waits = &at;
  current->generation = generation;
  tiny_emulator_switch(&current->sp, scheduler_sp);
  current->waits = nullptr;
}

inline void enter() {
  kernel();
  current->done = true;
  tiny_emulator_switch(&current->sp, scheduler_sp);
}

inline std::unique_ptr<Block> make_block(int number, int threads, size_t shared_bytes) {
  constexpr size_t STACK = 64 * 1024;
  auto block = std::make_unique<Block>();
  block->index = {number % network_blocks, 0, number / network_blocks};
  block->memory.reset(new unsigned char[shared_bytes + 128]);
  memset(block->memory.get(), 0xcd, shared_bytes + 128);
  block->shared = (float*)(((uintptr_t)block->memory.get() + 127) / 128 * 128);
  for (int t = 0; t < threads; t++) {
    if (t % 32 == 0) block->warps.push_back(std::make_unique<Warp>());
    auto fiber = std::make_unique<Fiber>();
    fiber->block = block.get();
    fiber->warp = block->warps.back().get();
    fiber->thread = {t, 0, 0};
    fiber->stack.reset(new char[STACK]);
    void** top = (void**)(((uintptr_t)fiber->stack.get() + STACK) / 16 * 16);
    *--top = nullptr;
    *--top = (void*)enter;
    fiber->sp = top - 6;
    block->fibers.push_back(std::move(fiber));
  }
  return block;
}

// Returns whether the kernel has finished; false if it deadlocks.
inline bool run(int blocks, int threads, size_t shared_bytes, unsigned seed, int networks = 1) {
  std::mt19937 random(seed);
  network_blocks = blocks;
  blocks *= networks;
  everyone.assign(networks, Meeting());
  all_threads = blocks * threads;
  block_threads = threads;
  auto& all = blocks_of_grid;
  all.clear();
  for (int i = 0; i < blocks; i++) all.push_back(make_block(i, threads, shared_bytes));
  for (int left = all_threads, idle = 0; left;) {
    Block& block = *all[random() % blocks];
    const int first = random() % threads, way = random() % 2 ? 1 : threads - 1;
    bool ran = false;
    for (int i = 0; i < threads; i++) {
      Fiber& fiber = *block.fibers[(first + (long)i * way) % threads];
      if (fiber.done || (fiber.waits && fiber.waits->generation == fiber.generation)) continue;
      ran = true;
      current = &fiber;
      tiny_emulator_switch(&scheduler_sp, fiber.sp);
      left -= fiber.done;
    }
    idle = ran ? 0 : idle + 1;
    if (idle > 1000 * blocks) return false;
  }
  return true;
}

template <class V> V exchanged(V mine, int lane) {
  Fiber* self = current;
  auto* words = self->warp->words[self->turn++ % 2];
  memcpy(&words[self->thread.x % 32], &mine, 4);
  meet(self->warp->meeting, 32);
  V out;
  memcpy(&out, &words[lane], 4);
  return out;
}

}  // namespace emulator

#define threadIdx (emulator::current->thread)
#define blockIdx (emulator::current->block->index)
inline emulator::Index blockDim, gridDim;  // of kernels that are not run

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned __float_as_uint(float x) { unsigned u; memcpy(&u, &x, 4); return u; }
inline float __uint_as_float(unsigned u) { float x; memcpy(&x, &u, 4); return x; }
inline float __int_as_float(int u) { return __uint_as_float((unsigned)u); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline void __syncthreads() { emulator::meet(emulator::current->block->meeting, emulator::block_threads); }
template <class V> V __shfl_xor_sync(unsigned, V x, int lanes) {
  return emulator::exchanged(x, emulator::current->thread.x % 32 ^ lanes);
}
