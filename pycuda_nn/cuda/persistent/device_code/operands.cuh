// Numbers of T in words, and operands of mma: two numbers of 16 bits in a word, or one float.

constexpr int WORD = 4 / sizeof(T), PIECE = 4 * WORD;  // numbers in a word, and in 16 bytes
constexpr int DEPTH = 8 * WORD;                        // of one mma

constexpr bool EXACT = PLAN_EXACT;  // floats are multiplied as floats, not as numbers of 11 bits

// The NaN that equals EMPTY becomes another: a parameter can be any.
__device__ __forceinline__ unsigned word_of(float x) {
  const unsigned u = __float_as_uint(x);
  return u == EMPTY ? EMPTY - 1 : u;
}

#if defined(T_FLOAT)
typedef uint2 Pair;  // two neighbours in a row
constexpr unsigned ONES = 0x3f800000u;
constexpr float LEAST = 1.2e-38f;  // of the positive numbers that T does not round to 0

__device__ __forceinline__ Pair pair(float even, float odd) {
  return {word_of(even), word_of(odd)};
}
__device__ __forceinline__ float even(Pair both) { return __uint_as_float(both.x); }
__device__ __forceinline__ float odd(Pair both) { return __uint_as_float(both.y); }

// The nearest number of 11 bits, which tensor cores multiply exactly; NaN if x is above 4e34.
__device__ __forceinline__ float rounded(float x) { return fmaf(-8192.f, x, 8193.f * x); }

template <int N> struct Split {  // high + low are the words, as accurate as a float
  unsigned high[N], low[N];
  __device__ __forceinline__ explicit Split(const unsigned (&words)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) {
      const float x = __uint_as_float(words[i]), near = rounded(x);
      high[i] = __float_as_uint(near);
      low[i] = __float_as_uint(x - near);
    }
  }
};

// c + rest += a b. EXACT: as accurate as products of floats; only low times low is left out.
__device__ __forceinline__ void add_product(float (&c)[4], float (&rest)[4],
                                            const unsigned (&a)[4], const unsigned (&b)[2]) {
  const Split<4> x(a);
  const Split<2> y(b);
  if (EXACT) {
    mma(rest, x.low[0], x.low[1], x.low[2], x.low[3], y.high[0], y.high[1]);
    mma(rest, x.high[0], x.high[1], x.high[2], x.high[3], y.low[0], y.low[1]);
  }
  mma(c, x.high[0], x.high[1], x.high[2], x.high[3], y.high[0], y.high[1]);
}

// ---- operands from the rows of a matrix in shared memory that is the transpose of the operand.
// place: of lane `lane` in these rows; second: number of the fragment b in which that is.
template <int PITCH> __device__ __forceinline__ int place_of_a(int lane) {
  return lane % 4 * PITCH + lane / 4;
}
template <int PITCH> __device__ __forceinline__ int place_of_b(int lane) {
  return lane % 4 * PITCH + lane / 4;
}
__device__ __forceinline__ int fragment_of_b(int lane) { return 0; }

template <int PITCH> __device__ __forceinline__ void load_a(unsigned (&to)[4], const T* at) {
#pragma unroll
  for (int i = 0; i < 4; i++) to[i] = __float_as_uint(at[i / 2 * 4 * PITCH + i % 2 * 8]);
}
template <int PITCH> __device__ __forceinline__ void load_b(unsigned (&to)[4], const T* at) {
#pragma unroll
  for (int i = 0; i < 4; i++) to[i] = __float_as_uint(at[i % 2 * 4 * PITCH + i / 2 * 8]);
}

// Publishes the transpose of 16 rows of 8 numbers: rows g (top) and g + 8, columns 2 t and 2 t + 1.
template <int PITCH>
__device__ __forceinline__ void publish_transposed(T* to, int g, int t, Pair top, Pair low) {
  to += 2 * t * PITCH + g;
  publish(to, top.x);
  publish(to + PITCH, top.y);
  publish(to + 8, low.x);
  publish(to + PITCH + 8, low.y);
}
#else
typedef unsigned Pair;
constexpr float LEAST = 6e-8f;

__device__ __forceinline__ void add_product(float (&c)[4], float (&)[4], const unsigned (&a)[4],
                                            const unsigned (&b)[2]) {
  mma(c, a[0], a[1], a[2], a[3], b[0], b[1]);
}
template <int PITCH> __device__ __forceinline__ int place_of_a(int lane) {
  return (lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 8;
}
template <int PITCH> __device__ __forceinline__ int place_of_b(int lane) {
  return lane % 16 * PITCH;
}
__device__ __forceinline__ int fragment_of_b(int lane) { return lane / 16; }

template <int PITCH> __device__ __forceinline__ void load_a(unsigned (&to)[4], const T* at) {
  load_transposed(to, at);
}
template <int PITCH> __device__ __forceinline__ void load_b(unsigned (&to)[4], const T* at) {
  load_transposed(to, at);
}
template <int PITCH>
__device__ __forceinline__ void publish_transposed(T* to, int g, int t, Pair top, Pair low) {
  to += g * PITCH + 2 * t;
  publish(to, transposed(top));
  publish(to + 8, transposed(low));
}
#endif

// c += sums + rest
__device__ __forceinline__ void add_all(float (&c)[4], const float (&sums)[4],
                                        const float (&rest)[4]) {
#pragma unroll
  for (int e = 0; e < 4; e++) c[e] += sums[e] + rest[e];
}
