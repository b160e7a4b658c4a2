// Dropout as in dropout.py, with 16 bits per element, drawn as in pycuda_nn/rng.py.
// Needs philox.cuh and activation.cuh.

// The 16 bits of element e of a philox block of 16, e = 0 to 15.
__device__ __forceinline__ unsigned drop_bits(const Words& words, int e) {
  unsigned long long low = e & 4 ? words.w[1] : words.w[0], high = e & 4 ? words.w[3] : words.w[2];
  return (unsigned)((e & 8 ? high : low) >> (16 * (e & 3))) & 0xffffu;
}

__device__ __forceinline__ Words drop_words(const Activation& u, long long block) {
  return philox(1 + block, u.clock->total + u.j, u.layer, u.seed, u.purpose);
}

// Factors of elements (row-major, without padding), to be read in ascending order.
struct Keeper {
  const Activation& u;
  long long block = -1;
  Words words;
  __device__ __forceinline__ Keeper(const Activation& u) : u(u) {}
  __device__ __forceinline__ float factor(long long e) {
    if ((e >> 4) != block) {
      block = e >> 4;
      words = drop_words(u, block);
    }
    return drop_bits(words, (int)(e & 15)) >= u.threshold ? u.scale : 0.f;
  }
};
