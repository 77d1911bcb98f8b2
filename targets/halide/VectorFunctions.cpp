// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/VectorFunctions.h"

#include "targets/halide/simd/avx2.inc"
#include "targets/halide/simd/avx512.inc"
#include "targets/halide/simd/dotprod.inc"
#include "targets/halide/simd/f16c.inc"
#include "targets/halide/simd/fma_arm.inc"
#include "targets/halide/simd/fma_riscv.inc"
#include "targets/halide/simd/fma_x86.inc"
#include "targets/halide/simd/neon.inc"
#include "targets/halide/simd/portable_arm.inc"
#include "targets/halide/simd/portable_riscv.inc"
#include "targets/halide/simd/portable_wasm.inc"
#include "targets/halide/simd/sse41.inc"
#include "targets/halide/simd/vnni.inc"
#include "targets/halide/simd/wasm.inc"
#include "llvm/Support/ErrorHandling.h"
#include <iterator>

namespace kiln::halide {

using namespace Halide::Internal;

VectorFunctions VectorFunctions::of(const std::string &triple, llvm::StringRef features, bool hasFma,
                                    bool hasByteProducts) {
  VectorFunctions functions;
  functions.target = Halide::Target(triple);
  functions.hasF16 = features.contains("f16c") || functions.target.arch == Halide::Target::ARM;
  functions.hasFma = hasFma;
  functions.hasByteProducts = hasByteProducts;
  functions.hasAvx2 = features.contains("avx2");
  functions.hasAvx512 = features.contains("avx512");
  return functions;
}

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
  if (functions.hasByteProducts)
    return addBytes(addBytes(sum, halves(more), unsignedBits(low)), halves(more >> Halide::Expr(4u)),
                    unsignedBits(high));
  return Call::make(Halide::Int(32), "kiln_simd_nibbles",
                    {sum, low, high, halves(more), halves(more >> Halide::Expr(4u))}, Call::PureExtern);
}

Halide::Expr fusedMultiplyAdd(const Halide::Expr &a, const Halide::Expr &b, const Halide::Expr &c) {
  return Call::make(c.type(), "kiln_simd_fma", {a, b, c}, Call::PureExtern);
}

namespace {

/// Of two functions with one name the first stays.
class Modules {
public:
  Modules(Halide::Module &module, const Halide::Target &target) : module(module), target(target) {}

  template <size_t Size> void add(const unsigned char (&bitcode)[Size], const char *name) {
    const std::vector<uint8_t> code(std::begin(bitcode), std::end(bitcode));
    module.append(Halide::ExternalCode::bitcode_wrapper(target, code, name));
  }

private:
  Halide::Module &module;
  const Halide::Target &target;
};

} // namespace

static void addOfX86(Modules modules, const VectorFunctions &functions) {
  if (functions.hasFma)
    modules.add(fma_x86Bitcode, "fma");
  modules.add(sse41Bitcode, "sse41");
  if (functions.hasF16)
    modules.add(f16cBitcode, "f16c");
  if (functions.hasAvx2)
    modules.add(avx2Bitcode, "avx2");
  if (functions.hasAvx512)
    modules.add(avx512Bitcode, "avx512");
  if (functions.hasByteProducts)
    modules.add(vnniBitcode, "vnni");
}

static void addOfArm(Modules modules, const VectorFunctions &functions) {
  if (functions.hasByteProducts)
    modules.add(dotprodBitcode, "dotprod");
  modules.add(neonBitcode, "neon");
  modules.add(fma_armBitcode, "fma");
  modules.add(portable_armBitcode, "portable");
}

void addVectorFunctions(Halide::Module &module, const VectorFunctions &functions) {
  Modules modules(module, functions.target);
  switch (functions.target.arch) {
  case Halide::Target::X86:
    return addOfX86(modules, functions);
  case Halide::Target::ARM:
    return addOfArm(modules, functions);
  case Halide::Target::RISCV:
    modules.add(fma_riscvBitcode, "fma");
    return modules.add(portable_riscvBitcode, "portable");
  case Halide::Target::WebAssembly:
    modules.add(wasmBitcode, "wasm");
    return modules.add(portable_wasmBitcode, "portable");
  default:
    llvm_unreachable("a CPU has functions of vectors");
  }
}

} // namespace kiln::halide
