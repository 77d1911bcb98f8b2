// SPDX-License-Identifier: Apache-2.0
//
// Four doubles with the operations of functions.h and errors.h, for x86-64 with AVX2. The functions are those of
// libmvec, the vector library of glibc, whose errors are at most 4 ulp of f64.
#pragma once

#include <immintrin.h>

extern "C" {
__m256d _ZGVdN4v_cos(__m256d);
__m256d _ZGVdN4v_erf(__m256d);
__m256d _ZGVdN4v_erfc(__m256d);
__m256d _ZGVdN4v_exp(__m256d);
__m256d _ZGVdN4v_expm1(__m256d);
__m256d _ZGVdN4v_log(__m256d);
__m256d _ZGVdN4v_log1p(__m256d);
__m256d _ZGVdN4v_sin(__m256d);
__m256d _ZGVdN4v_tanh(__m256d);
}

namespace kiln::testing::oracle {

/// The result of a comparison: all bits of a lane are equal.
struct LaneMask {
  __m256d bits;
};

struct Lanes {
  static constexpr int count = 4;

  Lanes() : v(_mm256_setzero_pd()) {}
  explicit Lanes(double value) : v(_mm256_set1_pd(value)) {}
  explicit Lanes(__m256d v) : v(v) {}
  static Lanes load(const float *from) { return Lanes(_mm256_cvtps_pd(_mm_loadu_ps(from))); }
  void store(double *to) const { _mm256_storeu_pd(to, v); }

  __m256d v;
};

inline LaneMask operator&(LaneMask a, LaneMask b) { return {_mm256_and_pd(a.bits, b.bits)}; }
inline LaneMask operator<(Lanes a, Lanes b) { return {_mm256_cmp_pd(a.v, b.v, _CMP_LT_OQ)}; }
inline LaneMask operator==(Lanes a, Lanes b) { return {_mm256_cmp_pd(a.v, b.v, _CMP_EQ_OQ)}; }
inline LaneMask operator!=(Lanes a, Lanes b) { return {_mm256_cmp_pd(a.v, b.v, _CMP_NEQ_UQ)}; }
inline Lanes operator+(Lanes a, Lanes b) { return Lanes(_mm256_add_pd(a.v, b.v)); }
inline Lanes operator-(Lanes a, Lanes b) { return Lanes(_mm256_sub_pd(a.v, b.v)); }
inline Lanes operator*(Lanes a, Lanes b) { return Lanes(_mm256_mul_pd(a.v, b.v)); }
inline Lanes operator/(Lanes a, Lanes b) { return Lanes(_mm256_div_pd(a.v, b.v)); }
inline Lanes operator-(Lanes a) { return Lanes(_mm256_xor_pd(a.v, _mm256_set1_pd(-0.0))); }

inline Lanes select(LaneMask condition, Lanes a, Lanes b) { return Lanes(_mm256_blendv_pd(b.v, a.v, condition.bits)); }
inline Lanes fabs(Lanes a) { return Lanes(_mm256_andnot_pd(_mm256_set1_pd(-0.0), a.v)); }
inline Lanes sqrt(Lanes a) { return Lanes(_mm256_sqrt_pd(a.v)); }
/// Returns a within the limits, or NaN.
inline Lanes limited(Lanes a, double least, double most) {
  return Lanes(_mm256_min_pd(_mm256_set1_pd(most), _mm256_max_pd(_mm256_set1_pd(least), a.v)));
}
/// Returns the power of two of a's exponent; 0 for 0.
inline Lanes powerOfTwoIn(Lanes a) {
  return Lanes(_mm256_and_pd(a.v, _mm256_castsi256_pd(_mm256_set1_epi64x(0x7ff0000000000000))));
}

// libmvec computes arguments out of its range, half of all floats, one by one. Beyond these limits results differ from
// those at the limits by nothing that f32 tells apart, even if they are multiplied by the largest f32.
inline Lanes exp(Lanes a) { return Lanes(_ZGVdN4v_exp(limited(a, -700, 700).v)); }
inline Lanes expm1(Lanes a) { return Lanes(_ZGVdN4v_expm1(limited(a, -700, 700).v)); }
inline Lanes erfc(Lanes a) { return Lanes(_ZGVdN4v_erfc(limited(a, -10, 26).v)); }
inline Lanes tanh(Lanes a) { return Lanes(_ZGVdN4v_tanh(limited(a, -30, 30).v)); }
inline Lanes log1p(Lanes a) {
  const LaneMask isBelow = a < Lanes(-1.0);
  return select(isBelow, Lanes(__builtin_nan("")), Lanes(_ZGVdN4v_log1p(select(isBelow, Lanes(), a).v)));
}
inline Lanes erf(Lanes a) { return Lanes(_ZGVdN4v_erf(limited(a, -10, 10).v)); }
inline Lanes sin(Lanes a) { return Lanes(_ZGVdN4v_sin(a.v)); }
inline Lanes cos(Lanes a) { return Lanes(_ZGVdN4v_cos(a.v)); }
inline Lanes log(Lanes a) { return select(a < Lanes(0.0), Lanes(__builtin_nan("")), Lanes(_ZGVdN4v_log(fabs(a).v))); }

} // namespace kiln::testing::oracle
