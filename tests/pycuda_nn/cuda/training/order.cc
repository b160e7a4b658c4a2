// Runs the kernels of order.cuh, which replace the line KERNELS, on the CPU. Follows tiny/emulator.h.
#include <map>
inline int atomicAdd(int* at, int more) { const int old = *at; *at += more; return old; }
namespace emulator {
inline std::map<std::pair<const Block*, int>, std::vector<uint64_t>> memories;
template <class U> U& shared(int id) {
  auto& memory = memories[{current->block, id}];
  memory.resize((sizeof(U) + 7) / 8, 0xcdcdcdcdcdcdcdcdull);
  return *(U*)memory.data();
}
inline bool run_kernel(int blocks, int threads, int networks, unsigned seed, std::function<void()> body) {
  blockDim.x = threads;
  kernel = std::move(body);
  const bool good = run(blocks, threads, 0, seed, networks);
  memories.clear();
  return good;
}
}

// KERNELS

extern "C" bool order_of(int* places, int* unsorted, int* rows, const Drawn* drawn, unsigned long long purpose,
                         int n, int buckets, int slots, int networks, unsigned seed, int draw_threads) {
  const int draw_blocks = (n + 4 * draw_threads - 1) / (4 * draw_threads);
  bool good = true;
  auto run = [&](int blocks, int threads, std::function<void()> body) {
    good = good && emulator::run_kernel(blocks, threads, networks, seed++, std::move(body));
  };
  if (buckets > 1) {
    run(draw_blocks, draw_threads, [=] { count_rows(places, drawn, purpose, n, buckets); });
    run(1, SCAN_THREADS, [=] { scan_buckets(places, buckets); });
    run(draw_blocks, draw_threads, [=] { scatter_rows(places, unsorted, drawn, purpose, n, buckets, slots); });
  }
  run(buckets, SORT_THREADS, [=] { sort_rows(places, unsorted, rows, drawn, purpose, n, buckets, slots); });
  return good;
}
