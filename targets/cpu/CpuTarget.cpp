// SPDX-License-Identifier: Apache-2.0
//
// The x86-64 levels that a library is compiled for, as machine models and Halide features.
#include "runtime/src/model.h"
#include "targets/halide/Compile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace kiln {

namespace {

struct Level {
  const char *name;
  uint32_t isa;
  const char *features;
  int vectorBytes;
  int vectorRegisters;
  bool hasFusedMultiplyAdd;
  int64_t weightTile, narrowTile; // the columns of the register tile, and of one that pads 64 or 128 less
};

constexpr Level levels[] = {
    {"x86-64-v2", KILN_ISA_X86_64_V2, "sse41", 16, 16, false, 8, 8},
    {"x86-64-v3", KILN_ISA_X86_64_V3, "sse41-avx-avx2-fma-f16c", 32, 16, true, 16, 16},
    {"x86-64-v4", KILN_ISA_X86_64_V4, "sse41-avx-avx2-fma-f16c-avx512-avx512_skylake", 64, 32, true, 48, 32},
};

class CpuTarget : public Target {
public:
  explicit CpuTarget(const Level &level) : level(level), code{"x86-64-linux", level.features, {}} {
    code.machine.vectorBytes = level.vectorBytes;
    code.machine.vectorRegisters = level.vectorRegisters;
    code.machine.hasFusedMultiplyAdd = level.hasFusedMultiplyAdd;
  }

  llvm::StringRef name() const override { return level.name; }
  uint32_t isa() const override { return level.isa; }
  const MachineModel &machine() const override { return code.machine; }

  int64_t weightTile(int64_t outputs, int64_t inputs) const override {
    // A matrix of a few columns would be mostly padding.
    if (outputs * 2 < level.weightTile || inputs <= 0)
      return 0;
    auto stored = [&](int64_t tile) { return static_cast<int64_t>(llvm::alignTo(outputs, tile)); };
    bool isNarrowLess = 17 * stored(level.narrowTile) < 16 * stored(level.weightTile);
    return isNarrowLess ? level.narrowTile : level.weightTile;
  }

  Schedulable describe(mlir::func::FuncOp kernel) const override {
    return halide::describeSchedule(kernel, code.machine);
  }

  std::vector<RowVariant> rowVariants(mlir::func::FuncOp kernel) const override {
    return halide::rowVariants(kernel, code.machine);
  }

  mlir::FailureOr<KernelObject> compile(mlir::func::FuncOp kernel, llvm::StringRef symbol,
                                        const SchedulePoint *point) const override {
    return halide::compileKernel(kernel, symbol, code, point);
  }

  mlir::FailureOr<std::string> print(mlir::func::FuncOp kernel, llvm::StringRef symbol, KernelText form,
                                     const SchedulePoint *point) const override {
    return halide::printKernel(kernel, symbol, code, form, point);
  }

  mlir::FailureOr<MemoryCheck> checkMemory(mlir::func::FuncOp kernel, llvm::ArrayRef<MemoryCase> cases,
                                           const SchedulePoint *point) const override {
    return halide::checkMemory(kernel, code, cases, point);
  }

  mlir::FailureOr<KernelObject> compileChecked(mlir::func::FuncOp kernel, llvm::StringRef symbol,
                                               const SchedulePoint *point) const override {
    return halide::compileKernel(kernel, symbol, code, point, /*isChecked=*/true);
  }

private:
  const Level &level;
  halide::CodeTarget code;
};

} // namespace

std::unique_ptr<Target> createCpuTarget(llvm::StringRef name) {
  const Level *level = llvm::find_if(levels, [&](const Level &l) { return name == l.name; });
  return level == std::end(levels) ? nullptr : std::make_unique<CpuTarget>(*level);
}

std::vector<std::string> cpuTargetNames() {
  std::vector<std::string> names;
  for (const Level &level : levels)
    names.emplace_back(level.name);
  return names;
}

} // namespace kiln
