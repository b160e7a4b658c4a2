// Random words by place, as in pycuda_nn/rng.py.

struct Words { unsigned long long w[4]; };

// Philox4x64-10, Salmon et al. 2011 (SC '11), section 3.3
__device__ __forceinline__ Words philox(unsigned long long block, unsigned long long a,
                                        unsigned long long b, unsigned long long key0,
                                        unsigned long long key1) {
  unsigned long long c0 = block, c1 = a, c2 = b, c3 = 0;
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const unsigned long long m0 = 0xD2E7470EE14C6C93ull, m1 = 0xCA5A826395121157ull;
    unsigned long long high0 = __umul64hi(m0, c0), low0 = m0 * c0;
    unsigned long long high1 = __umul64hi(m1, c2), low1 = m1 * c2;
    c0 = high1 ^ c1 ^ key0; c2 = high0 ^ c3 ^ key1; c1 = low1; c3 = low0;
    key0 += 0x9E3779B97F4A7C15ull; key1 += 0xBB67AE8584CAA73Bull;
  }
  return {{c0, c1, c2, c3}};
}
