// SPDX-License-Identifier: Apache-2.0
//
// Vector functions in LLVM IR (simd/) for instructions that Halide has no pattern for. A kernel calls NAME; for
// vectors Halide calls NAMEx16, NAMEx8 or NAMEx4. All calls are inlined.
#pragma once

#include "compiler/object/InlineFunctions.h"
#include "targets/halide/Compat.h"
#include "llvm/ADT/StringRef.h"

namespace kiln::halide {

/// The prefix of the functions' names.
inline constexpr llvm::StringLiteral vectorFunctionPrefix = "kiln_simd_";

/// The instructions that the vector functions may use.
struct VectorFunctions {
  Halide::Target target;        // without features
  bool hasF16 = false;          // conversions of f16: F16C, and every Armv8-A
  bool hasFma = false;          // a fused multiply-add
  bool hasByteProducts = false; // sums of products of four bytes: AVX512-VNNI, Armv8.2 dot products
  bool hasAvx2 = false, hasAvx512 = false;

  /// `triple` and `features` as Halide writes them: "x86-64-linux", "avx2-f16c".
  static VectorFunctions of(const std::string &triple, llvm::StringRef features, bool hasFma, bool hasByteProducts);

  bool isX86() const { return target.arch == Halide::Target::X86; }
  /// Whether the first factors of addBytes() are signed. On x86-64 they are unsigned, with 128 added to each.
  bool hasSignedBytes() const { return !isX86(); }
};

/// floatOfF16() converts the bits of an f16 (u16) to f32, f16OfFloat() rounds f32 to the bits of an f16. Both need
/// hasF16.
Halide::Expr floatOfF16(const Halide::Expr &bits);
Halide::Expr f16OfFloat(const Halide::Expr &number);
/// Converts the i4, -8 to 7, in the lowest bits of `bits` (u32) to f32; needs AVX-512.
Halide::Expr floatOfI4(const Halide::Expr &bits);
/// The same for a u4, 0 to 15.
Halide::Expr floatOfU4(const Halide::Expr &bits);
/// Returns a * b + c in f32, rounded once; needs hasFma.
Halide::Expr fusedMultiplyAdd(const Halide::Expr &a, const Halide::Expr &b, const Halide::Expr &c);

/// Returns sum (i32) + the products of two signed 16-bit numbers in `a` (i32) and two signed bytes in `b` (u16).
Halide::Expr addPairs(const Halide::Expr &sum, const Halide::Expr &a, const Halide::Expr &b);
/// Returns sum (i32) + the products of four bytes in `a` (i32), see hasSignedBytes(), and four signed bytes in `b`
/// (u32).
Halide::Expr addBytes(const Halide::Expr &sum, const Halide::Expr &a, const Halide::Expr &b);

/// Returns sum (i32) + the products of eight unsigned integers, 0 to 15, and eight signed bytes. The integers are the
/// i4 elements of `word` (u32), plus 8 each. The bytes in `low` (i32) are multiplied by the low halves of the word's
/// bytes, those in `high` by the high halves.
Halide::Expr addNibbles(const Halide::Expr &sum, const Halide::Expr &low, const Halide::Expr &high,
                        const Halide::Expr &word, const VectorFunctions &functions);

/// Adds the functions to a module whose kernels call them, if Halide links bitcode. They remain in the object, which
/// does not need them.
void addVectorFunctions(Halide::Module &module, const VectorFunctions &functions);
/// Returns the functions for compileBitcode(), if Halide does not link bitcode.
InlinedFunctions inlinedFunctions(const VectorFunctions &functions);

} // namespace kiln::halide
