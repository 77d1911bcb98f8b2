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
  bool hasF16c = false, hasFma = false, hasAvx512 = false;

  /// Of names of Halide's features: "avx2-f16c".
  static VectorFunctions of(llvm::StringRef features) {
    return {features.contains("f16c"), features.contains("fma"), features.contains("avx512")};
  }
};

/// The float whose bits as a 16-bit one these are (u16); needs F16C.
Halide::Expr floatOfF16(const Halide::Expr &bits);
/// The float of an element of i4, -8 to 7, in the lowest bits of these (u32); needs AVX-512.
Halide::Expr floatOfI4(const Halide::Expr &bits);
/// a * b + c of f32, rounded once; needs FMA.
Halide::Expr fusedMultiplyAdd(const Halide::Expr &a, const Halide::Expr &b, const Halide::Expr &c);

/// Gives the functions to a module whose kernels call them. They stay in the object, where nothing needs them.
void addVectorFunctions(Halide::Module &module, const VectorFunctions &functions);

} // namespace kiln::halide
