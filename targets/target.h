// SPDX-License-Identifier: Apache-2.0
//
// What a target provides to the compiler: the layouts that its kernels want, and object code for a kernel function. The
// compiler knows targets only through this header, and a target knows of the compiler only the IR contract of
// docs/ir.md.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kiln {

/// A point of a strategy's search space: parameter name -> value, printed in order of the name as "k_block=256 m=8
/// n=48".
using SchedulePoint = std::map<std::string, int64_t>;

std::string toString(const SchedulePoint &point);

/// A parameter that a schedule strategy declares.
struct TuningParameter {
  std::string key;
  std::vector<int64_t> values; // legal ones, ascending
  int64_t preset = 0;          // the analytic default, one of them
};

/// A rule that joins parameters of a schedule.
struct TuningRule {
  std::string text;                                 // completes "schedule requires"
  std::function<bool(const SchedulePoint &)> holds; // of a point that has every parameter of the space
};

/// The parameters of a schedule and the rules that join them, which the presets obey.
struct SearchSpace : std::vector<TuningParameter> {
  using std::vector<TuningParameter>::vector;
  std::vector<TuningRule> rules;
};

/// How a kernel can be scheduled: by which strategy, and the parameters of that.
struct Schedulable {
  std::string strategy; // "contraction", "attention", "row_reduction", "pointwise"
  SearchSpace space;
  double operationShare = 1; // what the strategy computes of the kernel's operations, if it knows a shorter way
};

/// What the analytic defaults are computed from.
struct MachineModel {
  int vectorBytes = 0;
  int vectorRegisters = 0;
  bool hasFusedMultiplyAdd = true;
  int64_t l1Bytes = 32 << 10;
  int64_t l2Bytes = 1 << 20;
  int64_t l3Bytes = 32 << 20;

  /// Whether there is room for large register tiles (AVX-512).
  bool hasManyRegisters() const { return vectorRegisters >= 32; }
};

/// A compiled kernel.
struct KernelObject {
  std::string object; // relocatable ELF
  int64_t scratchBytes =
      0; // upper bound of live halide_malloc bytes of one worker, at the kernel's bounds, as the runtime rounds them
  std::string strategy; // "contraction", "attention", "row_reduction", "pointwise"
  SchedulePoint schedule;
};

/// A form of a kernel for few rows: it serves the calls whose index argument `symbol` is at most `bound`.
struct RowVariant {
  unsigned symbol = 0;
  int64_t bound = 0;
};

/// Values of a kernel's index arguments for which its accesses to memory are checked.
struct MemoryCase {
  std::vector<int64_t> extents;
  uint64_t seed = 0;                    // of the integers that its arguments hold
  int64_t stepLimit = int64_t(1) << 22; // a step is an operation on a scalar or a vector: some 30 ns
};

/// What a check says.
struct MemoryCheck {
  std::string fault; // in words, "kernel_3: element (2, 4) of result 0 is never written (s0=5)"; empty: none
  int checked = 0, tooLarge = 0; // how many cases were checked, and would have taken more steps than they may
};

/// Text forms for `kiln compile --emit=`.
enum class KernelText { Stmt, Assembly };

class Target {
public:
  virtual ~Target() = default;

  /// "x86-64-v3" and the like; goes into symbols, the manifest and the tuning key.
  virtual llvm::StringRef name() const = 0;
  /// The KILN_ISA_ value of runtime/src/model.h.
  virtual uint32_t isa() const = 0;
  virtual const MachineModel &machine() const = 0;

  /// The size of #kiln.tiled for a contraction weight with `outputs` columns and `inputs` rows; 0: leave it dense.
  virtual int64_t weightTile(int64_t outputs, int64_t inputs) const = 0;

  /// The strategy that compiles a kernel, and its search space.
  virtual Schedulable describe(mlir::func::FuncOp kernel) const = 0;

  /// The forms for few rows that are worth compiling beside the kernel itself, by ascending bound, all below the
  /// kernel's. A form is the same function with that bound, compiled like any other (compiler/emit/RowVariants.h).
  virtual std::vector<RowVariant> rowVariants(mlir::func::FuncOp) const { return {}; }

  /// Compiles a kernel function (contract: upstream dialects only, after kiln-expand-math). `point` null: the analytic
  /// default. On failure emits a diagnostic at the function. Thread safe for kernels of different modules.
  virtual mlir::FailureOr<KernelObject> compile(mlir::func::FuncOp kernel, llvm::StringRef symbol,
                                                const SchedulePoint *point = nullptr) const = 0;
  virtual mlir::FailureOr<std::string> print(mlir::func::FuncOp kernel, llvm::StringRef symbol, KernelText form,
                                             const SchedulePoint *point = nullptr) const = 0;

  /// Checks, as far as the target can, that the kernel's code writes every element of its results once, reads nothing
  /// that was not written or is overwritten in place, stays inside of its buffers, and that tasks do not meet. On
  /// failure emits a diagnostic; what is wrong with the kernel is no failure.
  virtual mlir::FailureOr<MemoryCheck> checkMemory(mlir::func::FuncOp, llvm::ArrayRef<MemoryCase>,
                                                   const SchedulePoint * = nullptr) const {
    return MemoryCheck();
  }
  /// compile(), which then also checks the memory for a few values of the index arguments and emits what is wrong as a
  /// diagnostic.
  virtual mlir::FailureOr<KernelObject> compileChecked(mlir::func::FuncOp kernel, llvm::StringRef symbol,
                                                       const SchedulePoint *point = nullptr) const {
    return compile(kernel, symbol, point);
  }
};

/// The CPU targets by name ("x86-64-v2", "x86-64-v3", "x86-64-v4"); null if there is none of that name.
std::unique_ptr<Target> createCpuTarget(llvm::StringRef name);
std::vector<std::string> cpuTargetNames();

} // namespace kiln
