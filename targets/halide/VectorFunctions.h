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

/// Which instructions their functions may be taken from.
struct VectorFunctions {
  Halide::Target target;        // without features
  bool hasF16 = false;          // conversions of f16: F16C, and what each Armv8-A has
  bool hasFma = false;          // a fused multiply-add
  bool hasByteProducts = false; // sums of products of four bytes: AVX512-VNNI, dot products of Armv8.2
  bool hasAvx2 = false, hasAvx512 = false;

  /// `triple` and `features` as Halide writes them: "x86-64-linux", "avx2-f16c".
  static VectorFunctions of(const std::string &triple, llvm::StringRef features, bool hasFma, bool hasByteProducts);

  bool isX86() const { return target.arch == Halide::Target::X86; }
  /// Whether the first factors of addBytes() have a sign, or, as x86-64 wants them, 128 more and none.
  bool hasSignedBytes() const { return !isX86(); }
};

/// The float whose bits as an f16 these are (u16), and the bits of a float's nearest f16; need hasF16.
Halide::Expr floatOfF16(const Halide::Expr &bits);
Halide::Expr f16OfFloat(const Halide::Expr &number);
/// The float of an element of i4, -8 to 7, in the lowest bits of these (u32); needs AVX-512.
Halide::Expr floatOfI4(const Halide::Expr &bits);
/// a * b + c of f32, rounded once; needs hasFma.
Halide::Expr fusedMultiplyAdd(const Halide::Expr &a, const Halide::Expr &b, const Halide::Expr &c);

/// sum (i32) + the products of two numbers of 16 bits in `a` (i32) and two of eight in `b` (u16), all with signs.
Halide::Expr addPairs(const Halide::Expr &sum, const Halide::Expr &a, const Halide::Expr &b);
/// sum (i32) + the products of four bytes in `a` (i32), see hasSignedBytes(), and four with a sign in `b` (u32).
Halide::Expr addBytes(const Halide::Expr &sum, const Halide::Expr &a, const Halide::Expr &b);

/// sum (i32) + the products of eight whole numbers without a sign, 0 to 15, and eight bytes with one. The former are
/// those of a word of i4 (u32), each 8 more; of the latter `low` (i32) meets the low halves of its bytes, `high` the
/// high ones.
Halide::Expr addNibbles(const Halide::Expr &sum, const Halide::Expr &low, const Halide::Expr &high,
                        const Halide::Expr &word, const VectorFunctions &functions);

/// Gives the functions to a module whose kernels call them. They stay in the object, where nothing needs them.
void addVectorFunctions(Halide::Module &module, const VectorFunctions &functions);

} // namespace kiln::halide
