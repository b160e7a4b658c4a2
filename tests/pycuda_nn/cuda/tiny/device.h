// Replaces device.cuh.

inline void copy_16_bytes(void* to, const void* from) {
  if ((uintptr_t)to % 16 || (uintptr_t)from % 16) abort();
  memcpy(to, from, 16);
}
inline void copy_4_bytes(void* to, const void* from) { memcpy(to, from, 4); }
inline void copies_end() {}
inline Four fetch(const float* at) {
  if ((uintptr_t)at % 16) abort();
  return *(const Four*)at;
}
inline float fetch_one(const float* at) { return *at; }
inline void publish(float* at, const Four& f) {
  if ((uintptr_t)at % 16) abort();
  *(Four*)at = f;
}
inline void publish_one(float* at, float f) { *at = f; }
inline float* peer(float* at, int block) {
  const auto& mine = *emulator::current->block;
  const int first = mine.index.z * emulator::network_blocks;
  return emulator::blocks_of_grid[first + block]->shared + (at - mine.shared);
}
inline void all_blocks(int*, int&) {
  const int network = emulator::current->block->index.z;
  emulator::meet(emulator::everyone[network], emulator::network_blocks * emulator::block_threads);
}
