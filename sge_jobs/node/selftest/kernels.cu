// Kernels of the GPU self-test and of the MulC benchmark. NVRTC 12 compiled this file to kernels.ptx for
// compute_52 with --fmad=false: each operation below rounds once, as in sge_jobs/node/selftest/expected.py.
// Its ".version" is lowered to 6.0, which every driver since CUDA 9 supports.

typedef unsigned int u32;
typedef unsigned long long u64;

// Returns word `i` of the memory under test: the pattern, with `addressed` combined with the index.
__device__ __forceinline__ u32 expected_word(u64 i, u32 pattern, u32 addressed) {
    return addressed ? pattern ^ (u32)i ^ ((u32)(i >> 32) * 0x9E3779B1u) : pattern;
}

extern "C" __global__ void fill(u32* data, u64 n, u64 first, u32 pattern, u32 addressed) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        data[i] = expected_word(first + i, pattern, addressed);
}

// faults[0] += wrong words; faults[1] = lowest wrong index; faults[2] |= wrong bits.
extern "C" __global__ void verify(const u32* data, u64 n, u64 first, u32 pattern, u32 addressed,
                                  u64* faults) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        u32 wrong = data[i] ^ expected_word(first + i, pattern, addressed);
        if (wrong) {
            atomicAdd(&faults[0], 1ull);
            atomicMin(&faults[1], first + i);
            atomicOr((u32*)&faults[2], wrong);
        }
    }
}

// The logistic map x <- r * (x - x * x). It is chaotic: one wrong bit changes all later values.
extern "C" __global__ void float_chain(const float* seeds, const float* answers, u32 count,
                                       u32 rounds, u32 loops, float r, u64* faults) {
    u32 place = (blockIdx.x * blockDim.x + threadIdx.x) % count;
    for (u32 loop = 0; loop < loops; ++loop) {
        float x = seeds[place];
        for (u32 i = 0; i < rounds; ++i) x = __fmul_rn(r, __fmaf_rn(-x, x, x));
        if (__float_as_uint(x) != __float_as_uint(answers[place])) atomicAdd(&faults[0], 1ull);
    }
}

// Multiply, add, shift and rotate of 32 bits.
extern "C" __global__ void integer_chain(const u32* seeds, const u32* answers, u32 count,
                                         u32 rounds, u32 loops, u64* faults) {
    u32 place = (blockIdx.x * blockDim.x + threadIdx.x) % count;
    for (u32 loop = 0; loop < loops; ++loop) {
        u32 x = seeds[place];
        for (u32 i = 0; i < rounds; ++i) {
            x = x * 1664525u + 1013904223u;
            x ^= x >> 15;
            x = (x << 7) | (x >> 25);
        }
        if (x != answers[place]) atomicAdd(&faults[0], 1ull);
    }
}

// MulC: data[i] *= factor, with one or four floats per thread.
extern "C" __global__ void mulc(float* data, u64 n, float factor) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= factor;
}

extern "C" __global__ void mulc4(float* data, u64 n, float factor) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 four = n / 4;
    if (i < four) {
        float4 v = reinterpret_cast<float4*>(data)[i];
        v.x *= factor; v.y *= factor; v.z *= factor; v.w *= factor;
        reinterpret_cast<float4*>(data)[i] = v;
    } else if (i - four < n % 4) {
        u64 rest = 4 * four + (i - four);
        data[rest] *= factor;
    }
}
