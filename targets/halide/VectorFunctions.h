// SPDX-License-Identifier: Apache-2.0
//
// Instructions for which Halide 14 has no pattern, as functions of vectors in LLVM IR (simd/). A kernel calls NAME, of
// which Halide takes NAMEx16, NAMEx8 or NAMEx4 for vectors; all calls are inlined.
#pragma once

#include "Halide.h"
#include "llvm/ADT/StringRef.h"

namespace kiln::halide {

/// What the names of the functions begin with.
inline constexpr llvm::StringLiteral vectorFunctionPrefix = "kiln_simd_";

/// Which instruction sets their functions may be taken from.
struct VectorFunctions {
  bool hasF16c = false, hasFma = false, hasAvx2 = false, hasAvx512 = false, hasVnni = false;

  /// Of names of Halide's features: "avx2-f16c".
  static VectorFunctions of(llvm::StringRef features, bool hasVnni = false) {
    return {features.contains("f16c"), features.contains("fma"), features.contains("avx2"), features.contains("avx512"),
            hasVnni};
  }
};

/// The float whose bits as an f16 these are (u16), and the bits of a float's nearest f16; need F16C.
Halide::Expr floatOfF16(const Halide::Expr &bits);
Halide::Expr f16OfFloat(const Halide::Expr &number);
/// The float of an element of i4, -8 to 7, in the lowest bits of these (u32); needs AVX-512.
Halide::Expr floatOfI4(const Halide::Expr &bits);
/// a * b + c of f32, rounded once; needs FMA.
Halide::Expr fusedMultiplyAdd(const Halide::Expr &a, const Halide::Expr &b, const Halide::Expr &c);

/// sum (i32) + the products of two numbers of 16 bits in `a` (i32) and two of eight in `b` (u16), all with signs.
Halide::Expr addPairs(const Halide::Expr &sum, const Halide::Expr &a, const Halide::Expr &b);
/// sum (i32) + the products of four bytes without a sign in `a` (i32) and four with one in `b` (u32).
Halide::Expr addBytes(const Halide::Expr &sum, const Halide::Expr &a, const Halide::Expr &b);

/// sum (i32) + the products of eight whole numbers without a sign, 0 to 15, and eight bytes with one. The former are
/// those of a word of i4 (u32), each 8 more; of the latter `low` (i32) meets the low halves of its bytes, `high` the
/// high ones.
Halide::Expr addNibbles(const Halide::Expr &sum, const Halide::Expr &low, const Halide::Expr &high,
                        const Halide::Expr &word, const VectorFunctions &functions);

/// Gives the functions to a module whose kernels call them. They stay in the object, where nothing needs them.
void addVectorFunctions(Halide::Module &module, const VectorFunctions &functions);

} // namespace kiln::halide
