// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/translate/VectorFunctions.h"

#include "targets/halide/simd/avx2_coff.inc"
#include "targets/halide/simd/avx2_elf.inc"
#include "targets/halide/simd/avx2_macho.inc"
#include "targets/halide/simd/avx512_coff.inc"
#include "targets/halide/simd/avx512_elf.inc"
#include "targets/halide/simd/avx512_macho.inc"
#include "targets/halide/simd/dotprod_elf.inc"
#include "targets/halide/simd/dotprod_macho.inc"
#include "targets/halide/simd/f16c_coff.inc"
#include "targets/halide/simd/f16c_elf.inc"
#include "targets/halide/simd/f16c_macho.inc"
#include "targets/halide/simd/fma_arm_elf.inc"
#include "targets/halide/simd/fma_arm_macho.inc"
#include "targets/halide/simd/fma_riscv_elf.inc"
#include "targets/halide/simd/fma_x86_coff.inc"
#include "targets/halide/simd/fma_x86_elf.inc"
#include "targets/halide/simd/fma_x86_macho.inc"
#include "targets/halide/simd/neon_elf.inc"
#include "targets/halide/simd/neon_macho.inc"
#include "targets/halide/simd/portable_arm_elf.inc"
#include "targets/halide/simd/portable_arm_macho.inc"
#include "targets/halide/simd/portable_riscv_elf.inc"
#include "targets/halide/simd/portable_wasm_elf.inc"
#include "targets/halide/simd/sse41_coff.inc"
#include "targets/halide/simd/sse41_elf.inc"
#include "targets/halide/simd/sse41_macho.inc"
#include "targets/halide/simd/vnni_coff.inc"
#include "targets/halide/simd/vnni_elf.inc"
#include "targets/halide/simd/vnni_macho.inc"
#include "targets/halide/simd/wasm_elf.inc"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/ErrorHandling.h"

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

/// The functions for each object format: LLVM treats a module for another system as a mistake.
struct Bitcode {
  llvm::ArrayRef<unsigned char> elf, coff, macho;
};

/// Adds modules. Of two functions with one name the first one is kept.
class Modules {
public:
  Modules(Halide::Module &module, const Halide::Target &target) : module(module), target(target) {}

  void add(const Bitcode &bitcode, const char *name) {
    const llvm::ArrayRef<unsigned char> code = target.os == Halide::Target::Windows ? bitcode.coff
                                               : target.os == Halide::Target::OSX   ? bitcode.macho
                                                                                    : bitcode.elf;
    module.append(Halide::ExternalCode::bitcode_wrapper(target, {code.begin(), code.end()}, name));
  }

private:
  Halide::Module &module;
  const Halide::Target &target;
};

} // namespace

static void addOfX86(Modules modules, const VectorFunctions &functions) {
  if (functions.hasFma)
    modules.add({fma_x86_elf, fma_x86_coff, fma_x86_macho}, "fma");
  modules.add({sse41_elf, sse41_coff, sse41_macho}, "sse41");
  if (functions.hasF16)
    modules.add({f16c_elf, f16c_coff, f16c_macho}, "f16c");
  if (functions.hasAvx2)
    modules.add({avx2_elf, avx2_coff, avx2_macho}, "avx2");
  if (functions.hasAvx512)
    modules.add({avx512_elf, avx512_coff, avx512_macho}, "avx512");
  if (functions.hasByteProducts)
    modules.add({vnni_elf, vnni_coff, vnni_macho}, "vnni");
}

static void addOfArm(Modules modules, const VectorFunctions &functions) {
  if (functions.hasByteProducts)
    modules.add({dotprod_elf, {}, dotprod_macho}, "dotprod");
  modules.add({neon_elf, {}, neon_macho}, "neon");
  modules.add({fma_arm_elf, {}, fma_arm_macho}, "fma");
  modules.add({portable_arm_elf, {}, portable_arm_macho}, "portable");
}

void addVectorFunctions(Halide::Module &module, const VectorFunctions &functions) {
  Modules modules(module, functions.target);
  switch (functions.target.arch) {
  case Halide::Target::X86:
    return addOfX86(modules, functions);
  case Halide::Target::ARM:
    return addOfArm(modules, functions);
  case Halide::Target::RISCV:
    modules.add({fma_riscv_elf, {}, {}}, "fma");
    return modules.add({portable_riscv_elf, {}, {}}, "portable");
  case Halide::Target::WebAssembly:
    modules.add({wasm_elf, {}, {}}, "wasm");
    return modules.add({portable_wasm_elf, {}, {}}, "portable");
  default:
    llvm_unreachable("a CPU has functions of vectors");
  }
}

} // namespace kiln::halide
