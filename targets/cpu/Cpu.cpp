// SPDX-License-Identifier: Apache-2.0
//
// The CPU targets, as machine models and Halide features: the levels of x86-64 and Armv8-A, of which one each has int8
// dot-product instructions, which matter for int8 activations; RISC-V with vectors of at least 128 bits and without;
// and WebAssembly.
#include "targets/cpu/Cpu.h"

#include "runtime/src/core/model.h"
#include "targets/cpu/scan/ScanCompiler.h"
#include "targets/halide/Compile.h"
#include "targets/passes/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace kiln {

namespace {

struct Architecture {
  const char *suffix;               // of the target names
  const char *hostTriple, *hostCpu; // LLVM's triple and CPU of host code; every such CPU has its features
  const char *halideTriple;         // Halide's triple
  const char *codeOptions;          // options of Halide's LLVM
  bool isNewer = false;             // LLVM 22 compiles the kernels, for `hostCpu` and `newerFeatures`
};

struct Level {
  const char *name;
  uint64_t features;          // includes those of all lower levels
  const char *halideFeatures; // features of Halide's Target
  const char *fewerFeatures;  // for kernels that crash the code generator with all features
  int vectorBytes;
  int vectorRegisters;
  bool hasFusedMultiplyAdd;
  int64_t weightTile, narrowTile; // columns of the register tile, and of a narrower one with less padding
  bool isDefault;
  const char *newerFeatures;    // features of LLVM 22; null: it compiles no kernels of the level
  bool hasByteProducts = false; // int8 dot-product instructions
  bool isSmall = false;         // see CodeTarget
};

using halide::codeOptions, halide::x86CodeOptions;
constexpr Architecture x86{"", "x86_64-unknown-linux-gnu", "x86-64", "x86-64-linux", x86CodeOptions};
constexpr Architecture x86Android{"-android", "x86_64-unknown-linux-android21", "x86-64", "x86-64-linux",
                                  x86CodeOptions};
constexpr Architecture x86Windows{"-windows", "x86_64-w64-windows-gnu", "x86-64", "x86-64-windows", x86CodeOptions};
constexpr Architecture x86Macos{"-macos", "x86_64-apple-macosx11.0.0", "x86-64", "x86-64-osx", x86CodeOptions};
constexpr Architecture x86Simulator{
    "-ios-simulator", "x86_64-apple-ios14.0-simulator", "x86-64", "x86-64-osx", x86CodeOptions, true};
constexpr Architecture arm{"", "aarch64-unknown-linux-gnu", "generic", "arm-64-linux", codeOptions};
// LLVM 22 leaves the register x18 to these systems; Halide's LLVM uses it, also for its target arm-64-android.
constexpr Architecture armAndroid{"-android", "aarch64-unknown-linux-android21", "generic", "arm-64-linux", codeOptions,
                                  true};
constexpr Architecture armWindows{"-windows", "aarch64-w64-windows-gnu", "generic", "arm-64-linux", codeOptions, true};
constexpr Architecture armMacos{"-macos", "arm64-apple-macosx11.0.0", "apple-m1", "arm-64-osx", codeOptions, true};
constexpr Architecture armIos{"-ios", "arm64-apple-ios14.0", "apple-a7", "arm-64-osx", codeOptions, true};
constexpr Architecture armSimulator{
    "-ios-simulator", "arm64-apple-ios14.0-simulator", "apple-m1", "arm-64-osx", codeOptions, true};
constexpr Architecture riscv{"", "riscv64-unknown-linux-gnu", "generic-rv64", "riscv-64-linux", codeOptions, true};
constexpr Architecture wasm{"", "wasm32-unknown-wasip1", "generic", "wasm-32-wasmrt", codeOptions, true};

constexpr uint64_t v2 = KILN_CPU_X86_64_V2, v3 = v2 | KILN_CPU_X86_64_V3, v4 = v3 | KILN_CPU_X86_64_V4;
constexpr char v4Features[] = "sse41-avx-avx2-fma-f16c-avx512-avx512_skylake", fewer[] = "sse41-avx-avx2-fma-f16c";
constexpr Level x86Levels[] = {
    {"x86-64-v4-vnni", v4 | KILN_CPU_X86_64_VNNI, v4Features, fewer, 64, 32, true, 48, 32, false, nullptr, true},
    {"x86-64-v4", v4, v4Features, fewer, 64, 32, true, 48, 32, true, nullptr},
    {"x86-64-v3", v3, "sse41-avx-avx2-fma-f16c", "sse41-avx-fma-f16c", 32, 16, true, 16, 16, true, "+avx2,+fma,+f16c"},
    {"x86-64-v2", v2, "sse41", "sse41", 16, 16, false, 8, 8, false, "+sse4.1"},
};
constexpr Level armLevels[] = {
    {"aarch64-dotprod", KILN_CPU_AARCH64 | KILN_CPU_AARCH64_DOTPROD, "arm_dot_prod", "", 16, 32, true, 12, 8, false,
     "+dotprod", true},
    {"aarch64", KILN_CPU_AARCH64, "", "", 16, 32, true, 12, 8, true, ""},
};
constexpr Level riscvLevels[] = {
    {"riscv64-v", KILN_CPU_RISCV64 | KILN_CPU_RISCV64_V, "", "", 16, 32, true, 12, 8, true, "+v"},
    {"riscv64", KILN_CPU_RISCV64, "", "", 4, 32, true, 4, 4, true, ""},
};
// Engines on x86-64 have 16 registers and reserve some (M-1250). Relaxed SIMD has a fused multiply-add, but
// hasFusedMultiplyAdd is false: the higher unrolling that it selects makes engines spill (M-1251).
constexpr Level wasmLevels[] = {
    {"wasm32", KILN_CPU_WASM32, "wasm_simd128", "wasm_simd128", 16, 12, false, 8, 8, false, "+simd128", false, true},
    {"wasm32-relaxed", KILN_CPU_WASM32, "wasm_simd128", "wasm_simd128", 16, 12, false, 8, 8, false,
     "+simd128,+relaxed-simd", false, true},
};

/// Returns the tile size of a weight: the register tile, unless the narrow tile stores at least a sixteenth less.
int64_t weightTile(const Level &level, int64_t outputs, int64_t inputs) {
  // A matrix with few columns would be mostly padding.
  if (outputs * 2 < level.weightTile || inputs <= 0)
    return 0;
  auto stored = [&](int64_t tile) { return static_cast<int64_t>(llvm::alignTo(outputs, tile)); };
  bool isNarrowLess = 17 * stored(level.narrowTile) < 16 * stored(level.weightTile);
  return isNarrowLess ? level.narrowTile : level.weightTile;
}

/// Returns the features of LLVM 22 for kernels that are scans, which it compiles for each level.
std::string scanFeatures(const Level &level) {
  if (level.newerFeatures)
    return level.newerFeatures;
  return level.vectorBytes > 32 ? "+avx512f,+avx512cd,+avx512vl,+avx512dq,+avx512bw,+avx2,+fma,+f16c" : "+sse4.1";
}

std::unique_ptr<Target> createTarget(const Architecture &architecture, const Level &level) {
  TargetInfo info;
  info.name = std::string(level.name) + architecture.suffix;
  info.measuredAs = level.name;
  info.hostTriple = architecture.hostTriple;
  info.hostCpu = architecture.hostCpu;
  info.features = level.features;
  info.memorySpace = KILN_MEMORY_HOST;
  info.isDefault = level.isDefault;
  info.hasStoredWeights = true;
  info.hasOrder = true;
  info.machine.vectorBytes = level.vectorBytes;
  info.machine.vectorRegisters = level.vectorRegisters;
  info.machine.hasFusedMultiplyAdd = level.hasFusedMultiplyAdd;

  TargetHooks hooks;
  hooks.weightTile = [&level](int64_t outputs, int64_t inputs) { return weightTile(level, outputs, inputs); };
  hooks.interleaveBytes = level.hasByteProducts ? 4 : 2; // bytes along K that one instruction accumulates
  hooks.joinsSums = hooks.callsGroups = hooks.sortsOnHost = hooks.runsScans = true;
  hooks.addKernelPasses = mlir::kiln::addExpandMath;

  CpuName newer;
  if (architecture.isNewer)
    newer = {info.hostTriple, info.hostCpu, level.newerFeatures};
  std::vector<std::unique_ptr<KernelCompiler>> compilers;
  compilers.push_back(
      cpu::createScanCompiler({info.hostTriple, info.hostCpu, scanFeatures(level)},
                              {level.vectorBytes, llvm::StringRef(info.hostTriple).starts_with("wasm32") ? 32 : 64,
                               level.hasFusedMultiplyAdd}));
  compilers.push_back(halide::createKernelCompiler({architecture.halideTriple, level.halideFeatures,
                                                    level.fewerFeatures, architecture.codeOptions, info.machine,
                                                    level.hasByteProducts, level.isSmall, newer}));
  return std::make_unique<Target>(std::move(info), std::move(hooks), std::move(compilers));
}

} // namespace

std::vector<std::unique_ptr<Target>> createCpuTargets() {
  std::vector<std::unique_ptr<Target>> targets;
  const auto add = [&](const Architecture &architecture, llvm::ArrayRef<Level> levels) {
    for (const Level &level : levels)
      if (!architecture.isNewer || level.newerFeatures)
        targets.push_back(createTarget(architecture, level));
  };
  add(x86, x86Levels);
  add(arm, armLevels);
  add(riscv, riscvLevels);
  add(wasm, wasmLevels);
  add(x86Windows, x86Levels);
  add(armWindows, armLevels);
  add(x86Macos, x86Levels);
  add(armMacos, armLevels);
  add(armAndroid, armLevels);
  add(x86Android, x86Levels);
  add(armIos, armLevels);
  add(armSimulator, armLevels);
  add(x86Simulator, x86Levels);
  return targets;
}

} // namespace kiln
