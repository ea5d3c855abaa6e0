#pragma once

// Vectors of floats for the sources that are compiled once per instruction set
// (vector_loops_isa.cc, fused_softmax_isa.cc): GCC vector extensions as wide as the set's
// registers, and exp, log and tanh on them. Only those sources may include this. Everything lives
// in a namespace named after the instruction set and nothing of the standard library is
// instantiated, so the linker can never pick an AVX-512 copy of a shared inline function for a
// machine without it.
//
// Sums and maths here use no fused multiply-add except through fma(): results have the same bits on
// every instruction set, and where fma() is used, on all that have the instruction (x86-64-v3 and
// -v4).

#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(__FMA__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#if !defined(DTF_ISA)
#error "vector.h is for sources compiled per instruction set, with -DDTF_ISA=<name>"
#endif

#define DTF_INLINE inline __attribute__((always_inline))

namespace dtf::runtime::DTF_ISA {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

// Reductions run in this many lanes on every instruction set, so that their order never differs.
inline constexpr int kReduceLanes = 16;

template <int N>
struct VectorOf {
  typedef float Float __attribute__((vector_size(N * 4)));
  typedef int32_t Int __attribute__((vector_size(N * 4)));
  typedef uint32_t Unsigned __attribute__((vector_size(N * 4)));
  typedef uint64_t Pair __attribute__((vector_size(N * 4)));  // half as many
};
using Floats = VectorOf<kLanes>::Float;
using Wide = VectorOf<kReduceLanes>::Float;

template <class V>
inline constexpr int kLanesOf = static_cast<int>(sizeof(V) / sizeof(float));
template <class V>
using IntsOf = typename VectorOf<kLanesOf<V>>::Int;

DTF_INLINE int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}
// Returns the number of parts of at most `part_max`.
DTF_INLINE int64_t parts(int64_t total, int64_t part_max) {
  return (total + part_max - 1) / part_max;
}
// Returns the distance of two rows of a matrix: the given one, or for 0 the dense one.
DTF_INLINE int64_t strideOf(int64_t given, int64_t dense) {
  return given == 0 ? dense : given;
}

template <class V = Floats>
DTF_INLINE V load(const float* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

template <class V>
DTF_INLINE void store(float* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// The first `n` elements, 0 <= n <= lanes; the others are 0. Memory past them is not touched.
DTF_INLINE Floats loadPartial(const float* p, int64_t n) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
#elif defined(__AVX2__)
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane));
#else
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = i < n ? p[i] : 0.0f;
  return load(lanes);
#endif
}

DTF_INLINE void storePartial(float* p, Floats v, int64_t n) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), v);
#elif defined(__AVX2__)
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  _mm256_maskstore_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane), v);
#else
  float lanes[kLanes];
  store(lanes, v);
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
#endif
}

// Loads the first `n` of kLanes floats, the others 0; without a mask if none is needed.
DTF_INLINE Floats loadSome(const float* p, int64_t n) {
  return n >= kLanes ? load(p) : loadPartial(p, n);
}
DTF_INLINE void storeSome(float* p, Floats v, int64_t n) {
  if (n >= kLanes) {
    store(p, v);
  } else {
    storePartial(p, v, n);
  }
}

template <class V = Floats>
DTF_INLINE V splat(float x) {
  return x - V{};  // adding 0 would be an instruction, as it turns -0 into 0
}

template <class V>
DTF_INLINE V maximum(V a, V b) {
  return a < b ? b : a;  // NaN in `a` stays
}

// a * b + c, fused where the instruction set can.
DTF_INLINE Floats fma(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

using Numbers = VectorOf<kLanes>::Unsigned;

// Returns the full products of the even lanes with `factor`. Compilers don't find this instruction.
DTF_INLINE VectorOf<kLanes>::Pair multiplyEven(VectorOf<kLanes>::Pair v, uint32_t factor) {
  using Pairs = VectorOf<kLanes>::Pair;
  const Pairs factors = uint64_t{factor} - Pairs{};
#if defined(__AVX512F__)
  // All lanes: without a mask GCC 12 warns about an uninitialised value.
  return (Pairs)_mm512_maskz_mul_epu32(0xff, (__m512i)v, (__m512i)factors);
#elif defined(__AVX2__)
  return (Pairs)_mm256_mul_epu32((__m256i)v, (__m256i)factors);
#elif defined(__SSE2__)
  return (Pairs)_mm_mul_epu32((__m128i)v, (__m128i)factors);
#else
  return (v & 0xffffffff) * factors;
#endif
}

// Philox4x32-10 of base/random.h, a block in each lane.
DTF_INLINE void philox(Numbers (&c)[4], uint32_t key0, uint32_t key1) {
  using Pairs = VectorOf<kLanes>::Pair;
  const auto multiply = [](Numbers a, uint32_t factor, Numbers& high) {
    const Pairs even = multiplyEven((Pairs)a, factor);
    const Pairs odd = multiplyEven((Pairs)a >> 32, factor);
    high = (Numbers)((even >> 32) | (odd & 0xffffffff00000000));
    return (Numbers)((even & 0xffffffff) | (odd << 32));
  };
  for (int round = 0; round < 10; ++round) {
    Numbers high0, high1;
    const Numbers low0 = multiply(c[0], 0xD2511F53, high0);
    const Numbers low1 = multiply(c[2], 0xCD9E8D57, high1);
    c[0] = high1 ^ c[1] ^ key0;
    c[1] = low1;
    c[2] = high0 ^ c[3] ^ key1;
    c[3] = low0;
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

// Horizontal reductions of 16 floats in memory: lane l with lane l+8, then l+4, l+2, l+1, on every
// instruction set.
template <class F>
DTF_INLINE float reduce(const float* p, F combine) {
  using Eight = VectorOf<8>::Float;
  const Eight eight = combine(load<Eight>(p), load<Eight>(p + 8));
  auto four = combine(__builtin_shufflevector(eight, eight, 0, 1, 2, 3),
                      __builtin_shufflevector(eight, eight, 4, 5, 6, 7));
  four = combine(four, __builtin_shufflevector(four, four, 2, 3, 2, 3));
  return combine(four, __builtin_shufflevector(four, four, 1, 1, 1, 1))[0];
}
DTF_INLINE float sum(const float* p) {
  return reduce(p, [](auto a, auto b) { return a + b; });
}
DTF_INLINE float largest(const float* p) {
  return reduce(p, [](auto a, auto b) { return a < b ? b : a; });
}

template <int Width, int... Lane>
DTF_INLINE void swapHalves(Floats& a, Floats& b, std::integer_sequence<int, Lane...>) {
  const Floats first =
      __builtin_shufflevector(a, b, (Lane & Width ? kLanes + Lane - Width : Lane)...);
  b = __builtin_shufflevector(a, b, (Lane & Width ? kLanes + Lane : Lane + Width)...);
  a = first;
}

// Transposes a square of kLanes x kLanes in registers, by exchanging ever larger off-diagonal
// blocks.
template <int Width = 1>
DTF_INLINE void transpose(Floats (&m)[kLanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if ((i & Width) == 0) {
      swapHalves<Width>(m[i], m[i + Width], std::make_integer_sequence<int, kLanes>());
    }
  }
  if constexpr (2 * Width < kLanes) transpose<2 * Width>(m);
}

// The following three are the polynomials of S. Moshier's Cephes library (expf.c, logf.c, tanhf.c),
// about 2 units in the last place. NaN in, NaN out.

// Arguments are clamped to [-87.3, 88.3]: the result is always finite and normal.
template <class V>
DTF_INLINE V exp(V x) {
  using I = IntsOf<V>;
  x = x < -87.3f ? splat<V>(-87.3f) : x;
  x = x > 88.3f ? splat<V>(88.3f) : x;
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
  const V shifted = x * 1.44269504088896341f + 12582912.0f;
  const V n = shifted - 12582912.0f;
  const V r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  V p = splat<V>(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const I power = ((I)shifted - 0x4b400000 + 127) << 23;
  return p * (V)power;
}

// For finite x >= 1.2e-38; other arguments give numbers without meaning.
template <class V>
DTF_INLINE V log(V x) {
  using I = IntsOf<V>;
  const I bits = (I)x;
  I exponent = ((bits >> 23) & 0xff) - 126;
  V m = (V)((bits & 0x007fffff) | 0x3f000000);  // in [0.5, 1)
  const I small = m < 0.707106781186547524f;
  exponent += small;  // -1 where small
  m = (small ? m + m : m) - 1.0f;
  const V e = __builtin_convertvector(exponent, V);
  const V z = m * m;
  V p = splat<V>(7.0376836292e-2f);
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  V y = p * m * z + e * -2.12194440e-4f - 0.5f * z;
  y = m + y + e * 0.693359375f;
  return x == x ? y : x;  // NOLINT(misc-redundant-expression): a NaN is not
}

// log(1 + x) for x in [0, 1], exact also where 1 + x rounds to 1: x corrects the rounding of the
// sum (D. Goldberg, "What every computer scientist should know about floating-point arithmetic",
// theorem 4).
template <class V>
DTF_INLINE V log1p(V x) {
  const V u = 1.0f + x;
  const V d = u - 1.0f;
  const V corrected = log(u) * (x / (d == 0.0f ? splat<V>(1.0f) : d));
  return d == 0.0f ? x : corrected;
}

template <class V>
DTF_INLINE V tanh(V x) {
  const V a = x < 0.0f ? -x : x;
  const V e = exp(a + a);
  const V far = 1.0f - 2.0f / (e + 1.0f);
  const V z = x * x;
  V p = splat<V>(-5.70498872745e-3f);
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const V near = p * z * x + x;
  return a < 0.625f ? near : (x < 0.0f ? -far : far);
}

// The error function, of Cephes' ndtrf.c.
template <class V>
DTF_INLINE V erf(V x) {
  const V z = x * x;
  V near = splat<V>(7.853861353153693e-5f);
  near = near * z - 8.010193625184903e-4f;
  near = near * z + 5.188327685732524e-3f;
  near = near * z - 2.685381193529856e-2f;
  near = near * z + 1.128358514861418e-1f;
  near = near * z - 3.761262582423300e-1f;
  near = near * z + 1.128379165726710f;
  const V a = x < 0.0f ? -x : x;
  const V q = 1.0f / (a < 1.0f ? splat<V>(1.0f) : a);
  const V y = q * q;
  V middle = splat<V>(2.326819970068386e-2f);  // from 1 to 2
  middle = middle * y - 1.387039388740657e-1f;
  middle = middle * y + 3.687424674597105e-1f;
  middle = middle * y - 5.824733027278666e-1f;
  middle = middle * y + 6.210004621745983e-1f;
  middle = middle * y - 4.944515323274145e-1f;
  middle = middle * y + 3.404879937665872e-1f;
  middle = middle * y - 2.741127028184656e-1f;
  middle = middle * y + 5.638259427386472e-1f;
  V far = splat<V>(-1.047766399936249e+1f);
  far = far * y + 1.297719955372516e+1f;
  far = far * y - 7.495518717768503f;
  far = far * y + 2.921019019210786f;
  far = far * y - 1.015265279202700f;
  far = far * y + 4.218463358204948e-1f;
  far = far * y - 2.820767439740514e-1f;
  far = far * y + 5.641895067754075e-1f;
  const V beyond = 1.0f - exp(-z) * q * (a < 2.0f ? middle : far);
  return a < 1.0f ? near * x : (x < 0.0f ? -beyond : beyond);
}

}  // namespace dtf::runtime::DTF_ISA
