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

Halide::Expr floatOfU4(const Halide::Expr &bits) {
  return Call::make(Halide::Float(32), "kiln_simd_u4", {bits}, Call::PureExtern);
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

/// The functions for each object format: Halide's LLVM treats a module for another system as a mistake.
struct Bitcode {
  const char *name;
  llvm::ArrayRef<unsigned char> elf, coff, macho;
};

} // namespace

static std::vector<Bitcode> modulesOfX86(const VectorFunctions &functions) {
  std::vector<Bitcode> modules;
  if (functions.hasFma)
    modules.push_back({"fma", fma_x86_elf, fma_x86_coff, fma_x86_macho});
  modules.push_back({"sse41", sse41_elf, sse41_coff, sse41_macho});
  if (functions.hasF16)
    modules.push_back({"f16c", f16c_elf, f16c_coff, f16c_macho});
  if (functions.hasAvx2)
    modules.push_back({"avx2", avx2_elf, avx2_coff, avx2_macho});
  if (functions.hasAvx512)
    modules.push_back({"avx512", avx512_elf, avx512_coff, avx512_macho});
  if (functions.hasByteProducts)
    modules.push_back({"vnni", vnni_elf, vnni_coff, vnni_macho});
  return modules;
}

static std::vector<Bitcode> modulesOfArm(const VectorFunctions &functions) {
  std::vector<Bitcode> modules;
  if (functions.hasByteProducts)
    modules.push_back({"dotprod", dotprod_elf, {}, dotprod_macho});
  modules.push_back({"neon", neon_elf, {}, neon_macho});
  modules.push_back({"fma", fma_arm_elf, {}, fma_arm_macho});
  modules.push_back({"portable", portable_arm_elf, {}, portable_arm_macho});
  return modules;
}

/// Returns the modules in order: if two of them define a function, the first definition is used.
static std::vector<Bitcode> modulesOf(const VectorFunctions &functions) {
  switch (functions.target.arch) {
  case Halide::Target::X86:
    return modulesOfX86(functions);
  case Halide::Target::ARM:
    return modulesOfArm(functions);
  case Halide::Target::RISCV:
    return {{"fma", fma_riscv_elf, {}, {}}, {"portable", portable_riscv_elf, {}, {}}};
  case Halide::Target::WebAssembly:
    return {{"wasm", wasm_elf, {}, {}}, {"portable", portable_wasm_elf, {}, {}}};
  default:
    llvm_unreachable("a CPU has functions of vectors");
  }
}

void addVectorFunctions(Halide::Module &module, const VectorFunctions &functions) {
  const Halide::Target &target = functions.target;
  for (const Bitcode &bitcode : modulesOf(functions)) {
    const llvm::ArrayRef<unsigned char> code = target.os == Halide::Target::Windows ? bitcode.coff
                                               : target.os == Halide::Target::OSX   ? bitcode.macho
                                                                                    : bitcode.elf;
    linkBitcode(module, target, {code.begin(), code.end()}, bitcode.name);
  }
}

InlinedFunctions inlinedFunctions(const VectorFunctions &functions) {
  InlinedFunctions inlined;
  for (const Bitcode &bitcode : modulesOf(functions))
    inlined.bitcode.emplace_back(reinterpret_cast<const char *>(bitcode.elf.data()), bitcode.elf.size());
  if (functions.isX86() && functions.hasByteProducts)
    inlined.features = "+avx512vnni";
  return inlined;
}

} // namespace kiln::halide
