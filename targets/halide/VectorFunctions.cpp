// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/VectorFunctions.h"

#include "targets/halide/simd/f16c.inc"
#include <iterator>

namespace kiln::halide {

using namespace Halide::Internal;

Halide::Expr floatOfF16(const Halide::Expr &bits) {
  return Call::make(Halide::Float(32), "kiln_simd_f16", {bits}, Call::PureExtern);
}

void addVectorFunctions(Halide::Module &module) {
  std::vector<uint8_t> code(std::begin(f16cBitcode), std::end(f16cBitcode));
  module.append(Halide::ExternalCode::bitcode_wrapper(Halide::Target("x86-64-linux"), code, "f16c"));
}

} // namespace kiln::halide
