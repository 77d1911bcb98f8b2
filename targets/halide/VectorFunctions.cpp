// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/VectorFunctions.h"

#include "targets/halide/simd/avx2.inc"
#include "targets/halide/simd/avx512.inc"
#include "targets/halide/simd/f16c.inc"
#include "targets/halide/simd/fma.inc"
#include "targets/halide/simd/sse41.inc"
#include "targets/halide/simd/vnni.inc"
#include <iterator>

namespace kiln::halide {

using namespace Halide::Internal;

Halide::Expr floatOfF16(const Halide::Expr &bits) {
  return Call::make(Halide::Float(32), "kiln_simd_f16", {bits}, Call::PureExtern);
}

Halide::Expr f16OfFloat(const Halide::Expr &number) {
  return Call::make(Halide::UInt(16), "kiln_simd_to_f16", {number}, Call::PureExtern);
}

Halide::Expr floatOfI4(const Halide::Expr &bits) {
  return Call::make(Halide::Float(32), "kiln_simd_i4", {bits}, Call::PureExtern);
}

Halide::Expr addPairs(const Halide::Expr &sum, const Halide::Expr &a, const Halide::Expr &b) {
  return Call::make(Halide::Int(32), "kiln_simd_pairs", {sum, a, b}, Call::PureExtern);
}

Halide::Expr addBytes(const Halide::Expr &sum, const Halide::Expr &a, const Halide::Expr &b) {
  return Call::make(Halide::Int(32), "kiln_simd_bytes", {sum, a, b}, Call::PureExtern);
}

Halide::Expr addNibbles(const Halide::Expr &sum, const Halide::Expr &low, const Halide::Expr &high,
                        const Halide::Expr &word, const VectorFunctions &functions) {
  const Halide::Expr more = word ^ Halide::Expr(0x88888888u), mask(0x0f0f0f0fu);
  auto halves = [&](const Halide::Expr &bits) { return Halide::reinterpret<int32_t>(bits & mask); };
  auto unsignedBits = [](const Halide::Expr &e) { return Halide::reinterpret<uint32_t>(e); };
  if (functions.hasVnni)
    return addBytes(addBytes(sum, halves(more), unsignedBits(low)), halves(more >> Halide::Expr(4u)),
                    unsignedBits(high));
  return Call::make(Halide::Int(32), "kiln_simd_nibbles",
                    {sum, low, high, halves(more), halves(more >> Halide::Expr(4u))}, Call::PureExtern);
}

Halide::Expr fusedMultiplyAdd(const Halide::Expr &a, const Halide::Expr &b, const Halide::Expr &c) {
  return Call::make(c.type(), "kiln_simd_fma", {a, b, c}, Call::PureExtern);
}

template <size_t Size> static void add(Halide::Module &module, const unsigned char (&bitcode)[Size], const char *name) {
  const std::vector<uint8_t> code(std::begin(bitcode), std::end(bitcode));
  module.append(Halide::ExternalCode::bitcode_wrapper(Halide::Target("x86-64-linux"), code, name));
}

void addVectorFunctions(Halide::Module &module, const VectorFunctions &functions) {
  add(module, sse41Bitcode, "sse41");
  if (functions.hasF16c)
    add(module, f16cBitcode, "f16c");
  if (functions.hasAvx2)
    add(module, avx2Bitcode, "avx2");
  if (functions.hasFma)
    add(module, fmaBitcode, "fma");
  if (functions.hasAvx512)
    add(module, avx512Bitcode, "avx512");
  if (functions.hasVnni)
    add(module, vnniBitcode, "vnni");
}

} // namespace kiln::halide
