// SPDX-License-Identifier: Apache-2.0
//
// What a target provides to the compiler: facts about the machine, choices that passes ask for, and object code for a
// kernel function. The compiler knows targets only through this header, kernel_abi.h and registry.h, and a target knows
// of the compiler only the IR contract of docs/ir.md.
#pragma once

#include "targets/kernel_abi.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kiln {

struct Machine; // compiler/schedule/Machine.h

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
  std::string strategy; // "contraction", "few_rows", "attention": of the kernel's compiler
  SearchSpace space;
  double operationShare = 1; // what the strategy computes of the kernel's operations, if it knows a shorter way
};

/// What the analytic defaults are computed from. Schedules ask for lanes and registers by the type of elements:
/// vectorLanes, vectorRegisters.
struct MachineModel {
  int vectorBytes = 0;
  int vectorRegisters = 0;
  int laneBits = 32; // of the narrowest lane, see lanes()
  bool hasFusedMultiplyAdd = true;
  int64_t l1Bytes = 32 << 10;
  int64_t l2Bytes = 1 << 20;
  int64_t l3Bytes = 32 << 20;

  /// How many elements of so many bits are a vector. Those below `laneBits` count as that wide: booleans are masks of
  /// wider elements, and narrow numbers are widened to be computed with.
  int lanes(int bits) const { return vectorBytes * 8 / std::max(bits, laneBits); }

  /// Whether there is room for large register tiles (AVX-512).
  bool hasManyRegisters() const { return vectorRegisters >= 32; }
};

/// How many elements of a type are a vector; kernels have indices of 32 bits.
inline int vectorLanes(const MachineModel &machine, mlir::Type element) {
  return machine.lanes(element.isIntOrFloat() ? int(element.getIntOrFloatBitWidth()) : 32);
}
/// How many of those vectors the registers hold: one each, of any type.
inline int vectorRegisters(const MachineModel &machine, mlir::Type) { return machine.vectorRegisters; }

/// Behind a kernel's symbol: the name of the kiln_cuda_module_t that an object for a device has, too.
constexpr char deviceModuleSuffix[] = "_module";

/// A compiled kernel.
struct KernelObject {
  std::string object; // relocatable ELF
  /// Upper bounds of the scratch memory that is alive at the kernel's bounds, as the run time rounds it: of the worker
  /// that starts the kernel, and of each other one, which has a task of a parallel loop.
  int64_t scratchBytes = 0, taskBytes = 0;
  std::string strategy;
  SchedulePoint schedule;
  bool isFallback = false; // compiled by the compiler's fallback
};

/// A form of a kernel for few rows: it serves the calls whose index argument `symbol` is at most `bound`.
struct RowVariant {
  unsigned symbol = 0;
  int64_t bound = 0;
  std::vector<unsigned> ofOne = {}; // other index arguments that are 1
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

/// Text forms for `kiln compile --emit=`; the loop nest is for people alone.
enum class KernelText { Stmt, Assembly, Loops };

/// One way to make code of kernels: Halide for a CPU is one.
class KernelCompiler {
public:
  virtual ~KernelCompiler() = default;

  /// Whether it compiles this kernel. Of a target's compilers the first that does takes it.
  virtual bool accepts(mlir::func::FuncOp) const { return true; }

  /// How host code calls what it compiles.
  virtual const KernelAbi &abi() const = 0;

  /// The strategy that compiles a kernel, and its search space.
  virtual Schedulable describe(mlir::func::FuncOp kernel) const = 0;

  /// The forms for few rows that are worth compiling beside the kernel itself, by ascending bound, all below the
  /// kernel's. A form is the same function with that bound, compiled like any other (compiler/emit/RowVariants.h).
  virtual std::vector<RowVariant> rowVariants(mlir::func::FuncOp) const { return {}; }

  /// Compiles a kernel function (contract: upstream dialects only, after the target's kernel passes). `point` null: the
  /// analytic default. On failure emits a diagnostic at the function. Thread safe for kernels of different modules.
  virtual mlir::FailureOr<KernelObject> compile(mlir::func::FuncOp kernel, llvm::StringRef symbol,
                                                const SchedulePoint *point = nullptr) const = 0;
  virtual mlir::FailureOr<std::string> print(mlir::func::FuncOp kernel, llvm::StringRef symbol, KernelText form,
                                             const SchedulePoint *point = nullptr) const = 0;

  /// Checks, as far as it can, that the kernel's code writes every element of its results once, reads nothing that was
  /// not written or is overwritten in place, stays inside of its buffers, and that tasks do not meet. On failure emits
  /// a diagnostic; what is wrong with the kernel is no failure.
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

  /// The rules that the machine of a measurement sets besides those of describe(): what it has no room for is not
  /// compiled.
  virtual std::vector<TuningRule> limitsOf(mlir::func::FuncOp, const Machine &) const { return {}; }

  /// What compiles a kernel in the same way for fewer instruction sets, in case that the code generator crashes: the
  /// instructions that it could not find are then others. Null: nothing does.
  virtual const KernelCompiler *fallback() const { return nullptr; }

  /// What bounds the kernel at its largest extents, computed and not measured, for people: lines. Empty: not known.
  virtual std::string printCost(mlir::func::FuncOp, const SchedulePoint &) const { return ""; }

  /// Keys of describe()'s parameters that are without effect on the machine of a measurement: they keep their presets.
  virtual std::vector<std::string> idleParameters(mlir::func::FuncOp, const Machine &) const { return {}; }

  /// How many times as fast as multiply-adds of f32 the machine's fastest are that the kernel's schedules use.
  virtual double multiplyRate(mlir::func::FuncOp, const Machine &) const { return 1; }
};

/// What the passes ask a target; each may be null.
struct TargetHooks {
  /// Layout: the size of #kiln.tiled for a contraction weight with so many outputs and inputs; 0: leave it dense. Null:
  /// all are dense.
  std::function<int64_t(int64_t outputs, int64_t inputs)> weightTile = nullptr;
  /// Layout: how many steps of the depth of an int8 weight lie together where rows of int8 are multiplied by it.
  int64_t wordBytes = 1;
  /// Grouping: whether the kernel of an anchor (compiler/transforms/KernelGroups.h) may compute this op, too. Null: any
  /// that the rules allow.
  std::function<bool(mlir::Operation *anchor, mlir::Operation *op)> mayJoin = nullptr;
  /// Grouping: kernels write rows of states where those lie, columns of what they leave, too; else those are copied.
  bool writesStates = false;
  /// Grouping: products of a single row compute the norm that they are of; else that is a kernel of its own.
  bool normsSingleRows = false;
  /// Grouping: a sum of few elements is computed by the only sum that reads it; else that is a separate kernel.
  bool joinsSums = false;
  /// Adds the passes that the target's compilers want last, such as polynomials for functions of the math library.
  std::function<void(mlir::OpPassManager &)> addKernelPasses = nullptr;
};

/// What code runs on, as data.
struct TargetInfo {
  std::string name;         // "x86-64-v3": goes into symbols, the manifest and the tuning key
  std::string measuredAs;   // the target whose measurements are of the same code; empty: its own name
  std::string hostTriple;   // of the code around the kernels, as LLVM writes it: "x86_64-unknown-linux-gnu"
  std::string hostCpu;      // what each CPU of that architecture has, LLVM's name: "x86-64"
  uint64_t features = 0;    // what kernels need of the CPU: KILN_CPU_ bits of runtime/src/model.h
  uint32_t memorySpace = 0; // where weights, arena and constants lie: a KILN_MEMORY_ value
  std::string copyRows = "kiln_copy_rows"; // the function of the run time that copies rows there
  std::string backend;                     // the kiln_backend_t of the run time that runs it; empty: the CPU needs none
  bool isDefault = false;                  // compiled for, unless a user names others
  bool hasTf32 = false;                    // whether there are tensor cores for f32 that is rounded to tf32
  bool hasStoredWeights = false;           // whether kernels read weights that are stored in fewer bits
  bool hasOrder = false;                   // whether kernels may be kiln.ordered
  MachineModel machine;
};

/// A target: facts, hooks and one or more kernel compilers.
class Target {
public:
  Target(TargetInfo info, TargetHooks hooks, std::vector<std::unique_ptr<KernelCompiler>> compilers)
      : facts(std::move(info)), passHooks(std::move(hooks)), compilers(std::move(compilers)) {}

  const TargetInfo &info() const { return facts; }
  llvm::StringRef name() const { return facts.name; }
  llvm::StringRef measuredAs() const { return facts.measuredAs.empty() ? facts.name : facts.measuredAs; }
  const MachineModel &machine() const { return facts.machine; }
  const TargetHooks &hooks() const { return passHooks; }

  /// TargetHooks::weightTile, 0 without that hook.
  int64_t weightTile(int64_t outputs, int64_t inputs) const {
    return passHooks.weightTile ? passHooks.weightTile(outputs, inputs) : 0;
  }

  /// The compiler of this kernel.
  const KernelCompiler &compilerOf(mlir::func::FuncOp kernel) const {
    for (const std::unique_ptr<KernelCompiler> &compiler : compilers)
      if (compiler->accepts(kernel))
        return *compiler;
    llvm_unreachable("the last compiler of a target accepts every kernel");
  }

private:
  TargetInfo facts;
  TargetHooks passHooks;
  std::vector<std::unique_ptr<KernelCompiler>> compilers;
};

} // namespace kiln
