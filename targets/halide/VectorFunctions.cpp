// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/VectorFunctions.h"

#include "targets/halide/simd/avx512.inc"
#include "targets/halide/simd/f16c.inc"
#include "targets/halide/simd/fma.inc"
#include <iterator>

namespace kiln::halide {

using namespace Halide::Internal;

Halide::Expr floatOfF16(const Halide::Expr &bits) {
  return Call::make(Halide::Float(32), "kiln_simd_f16", {bits}, Call::PureExtern);
}

Halide::Expr floatOfI4(const Halide::Expr &bits) {
  return Call::make(Halide::Float(32), "kiln_simd_i4", {bits}, Call::PureExtern);
}

Halide::Expr fusedMultiplyAdd(const Halide::Expr &a, const Halide::Expr &b, const Halide::Expr &c) {
  return Call::make(c.type(), "kiln_simd_fma", {a, b, c}, Call::PureExtern);
}

template <size_t Size> static void add(Halide::Module &module, const unsigned char (&bitcode)[Size], const char *name) {
  const std::vector<uint8_t> code(std::begin(bitcode), std::end(bitcode));
  module.append(Halide::ExternalCode::bitcode_wrapper(Halide::Target("x86-64-linux"), code, name));
}

void addVectorFunctions(Halide::Module &module, const VectorFunctions &functions) {
  if (functions.hasF16c)
    add(module, f16cBitcode, "f16c");
  if (functions.hasFma)
    add(module, fmaBitcode, "fma");
  if (functions.hasAvx512)
    add(module, avx512Bitcode, "avx512");
}

} // namespace kiln::halide
