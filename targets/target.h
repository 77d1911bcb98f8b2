// SPDX-License-Identifier: Apache-2.0
//
// What a target provides to the compiler: facts about the machine, hooks that passes query, and object code for a
// kernel function. The compiler knows targets only through this header, kernel_abi.h and registry.h. A target knows of
// the compiler only the IR contract of docs/ir.md, and the libraries for kernels and schedules that targets/README.md
// lists.
#pragma once

#include "compiler/schedule/SearchSpace.h"
#include "targets/kernel_abi.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kiln {

struct Machine; // compiler/schedule/Machine.h

/// The machine parameters from which default schedule configurations are computed. Schedules get lanes and registers by
/// the element type: vectorLanes, vectorRegisters.
struct MachineModel {
  int vectorBytes = 0;
  int vectorRegisters = 0;
  int laneBits = 32; // width of the narrowest lane, see lanes()
  bool hasFusedMultiplyAdd = true;
  int64_t l1Bytes = 32 << 10;
  int64_t l2Bytes = 1 << 20;
  int64_t l3Bytes = 32 << 20;

  /// Returns how many elements of that many bits a vector has. Elements narrower than `laneBits` count as that wide:
  /// booleans are masks of wider elements, and narrow numbers are widened for arithmetic.
  int lanes(int bits) const { return vectorBytes * 8 / std::max(bits, laneBits); }

  /// Whether there are enough registers for large register tiles (AVX-512).
  bool hasManyRegisters() const { return vectorRegisters >= 32; }
};

/// Returns how many elements of a type a vector has; kernels have indices of 32 bits.
inline int vectorLanes(const MachineModel &machine, mlir::Type element) {
  return machine.lanes(element.isIntOrFloat() ? int(element.getIntOrFloatBitWidth()) : 32);
}
/// Returns how many such vectors the registers hold: one each, of any type.
inline int vectorRegisters(const MachineModel &machine, mlir::Type) { return machine.vectorRegisters; }

/// The suffix of a kernel's symbol that names the kiln_cuda_module_t in an object for a device.
constexpr char deviceModuleSuffix[] = "_module";

/// A compiled kernel.
struct KernelObject {
  std::string object; // relocatable ELF
  /// Upper bounds of the live scratch memory within the kernel's bounds, as the run time rounds it: for the worker that
  /// starts the kernel, and for each other worker, which runs a task of a parallel loop.
  int64_t scratchBytes = 0, taskBytes = 0;
  std::string strategy;
  ScheduleConfig schedule;
  bool isFallback = false; // compiled by the compiler's fallback
};

/// A shape-specialised variant of a kernel for few rows: it serves the calls whose index argument `symbol` is at most
/// `bound`.
struct ShapeVariant {
  unsigned symbol = 0;
  int64_t bound = 0;
  std::vector<unsigned> ofOne = {}; // other index arguments that are 1
};

/// Values of a kernel's index arguments for which its memory accesses are checked.
struct MemoryCase {
  std::vector<int64_t> extents;
  uint64_t seed = 0;                    // seed of the integers in its arguments
  int64_t stepLimit = int64_t(1) << 22; // a step is an operation on a scalar or a vector: some 30 ns
};

/// The result of a check.
struct MemoryCheck {
  std::string fault; // the error, as in "kernel_3: element (2, 4) of result 0 is never written (s0=5)"; empty: none
  int checked = 0, tooLarge = 0; // numbers of cases that were checked, and that would have exceeded the step limit
};

/// Text forms for `kiln compile --emit=`; the loop nest is only for people.
enum class KernelText { Stmt, Assembly, Loops };

/// A code generator for kernels, such as Halide for CPUs.
class KernelCompiler {
public:
  virtual ~KernelCompiler() = default;

  /// Whether the compiler accepts this kernel. The first of a target's compilers that does so compiles it.
  virtual bool accepts(mlir::func::FuncOp) const { return true; }

  /// Returns the calling convention of the compiled kernels.
  virtual const KernelAbi &abi() const = 0;

  /// Returns the strategy that compiles a kernel, and its search space.
  virtual Schedulable describe(mlir::func::FuncOp kernel) const = 0;

  /// Returns the shape-specialised variants for few rows that are worth compiling in addition to the kernel itself, by
  /// ascending bound, all below the kernel's bound. A variant is the same function with that bound, compiled like any
  /// other (compiler/library/ShapeVariants.h).
  virtual std::vector<ShapeVariant> shapeVariants(mlir::func::FuncOp) const { return {}; }

  /// Compiles a kernel function (contract: upstream dialects and attention, after the target's kernel passes). If
  /// `config` is null, the default schedule configuration is used. On failure emits a diagnostic at the function.
  /// Thread safe for kernels of different modules.
  virtual mlir::FailureOr<KernelObject> compile(mlir::func::FuncOp kernel, llvm::StringRef symbol,
                                                const ScheduleConfig *config = nullptr) const = 0;
  virtual mlir::FailureOr<std::string> print(mlir::func::FuncOp kernel, llvm::StringRef symbol, KernelText form,
                                             const ScheduleConfig *config = nullptr) const = 0;

  /// Checks, as far as it can, that the kernel's code writes every element of its results once, does not read elements
  /// that were not written or are overwritten in place, stays inside of its buffers, and that tasks do not race. On
  /// failure emits a diagnostic; an error in the kernel is no failure.
  virtual mlir::FailureOr<MemoryCheck> checkMemory(mlir::func::FuncOp, llvm::ArrayRef<MemoryCase>,
                                                   const ScheduleConfig * = nullptr) const {
    return MemoryCheck();
  }
  /// Compiles like compile(), then also checks the memory for a few values of the index arguments and emits an error as
  /// a diagnostic.
  virtual mlir::FailureOr<KernelObject> compileChecked(mlir::func::FuncOp kernel, llvm::StringRef symbol,
                                                       const ScheduleConfig *config = nullptr) const {
    return compile(kernel, symbol, config);
  }

  /// Returns the constraints that the machine of a measurement adds to those of describe(): a configuration that
  /// exceeds the machine is not compiled.
  virtual std::vector<TuningRule> limitsOf(mlir::func::FuncOp, const Machine &) const { return {}; }

  /// Returns a compiler that compiles a kernel in the same way for fewer instruction sets, for the case that the code
  /// generator crashes on an instruction that it cannot select. Null if there is none.
  virtual const KernelCompiler *fallback() const { return nullptr; }

  /// Returns lines for people on what bounds the kernel at its largest extents, computed and not measured. Empty if not
  /// known.
  virtual std::string printCost(mlir::func::FuncOp, const ScheduleConfig &) const { return ""; }

  /// Returns the keys of describe()'s parameters that have no effect on the machine of a measurement: they keep their
  /// default values.
  virtual std::vector<std::string> idleParameters(mlir::func::FuncOp, const Machine &) const { return {}; }

  /// Returns how many times as fast as f32 multiply-adds the machine's fastest multiply-adds are that the kernel's
  /// schedules use.
  virtual double multiplyRate(mlir::func::FuncOp, const Machine &) const { return 1; }
};

/// The hooks by which passes query a target; each may be null.
struct TargetHooks {
  /// Layout: returns the size of #kiln.tiled for a contraction weight with that many outputs and inputs; 0: leave it
  /// dense. Null: all weights are dense.
  std::function<int64_t(int64_t outputs, int64_t inputs)> weightTile = nullptr;
  /// Layout: the number of elements along K of an int8 weight that are interleaved (VNNI) if rows of int8 are
  /// multiplied by it.
  int64_t interleaveBytes = 1;
  /// Grouping: whether the kernel of an anchor (compiler/transforms/KernelGroups.h) may compute this op, too. Null: any
  /// op that the rules allow.
  std::function<bool(mlir::Operation *anchor, mlir::Operation *op)> mayJoin = nullptr;
  /// Grouping: kernels write rows of states in place, and columns of an op's result, too; otherwise those are copied.
  bool writesStates = false;
  /// Grouping: a GEMV computes the norm of its operand; otherwise the norm is a separate kernel.
  bool normsSingleRows = false;
  /// Grouping: a sum of few elements is computed by the only sum that reads it; otherwise it is a separate kernel.
  bool joinsSums = false;
  /// Grouping: host code can read the ends of the groups of a grouped_linear, and calls a kernel for each group that
  /// has rows; otherwise one kernel looks up the group of each row.
  bool callsGroups = false;
  /// Host code can read tensors, so that functions of the run time sort and add up rows by index; otherwise kernels do.
  bool sortsOnHost = false;
  /// Grouping: a loop over time without large products is one kernel; otherwise host code calls kernels in a loop.
  bool runsScans = false;
  /// Adds the passes that the target's compilers need last, such as polynomials for functions of the math library.
  std::function<void(mlir::OpPassManager &)> addKernelPasses = nullptr;
};

/// The properties of a target, as data.
struct TargetInfo {
  std::string name;         // "x86-64-v3": part of symbols, the manifest and the tuning key
  std::string measuredAs;   // the target whose measurements are for the same code; empty: its own name
  std::string hostTriple;   // triple of the entry-point glue, as LLVM writes it: "x86_64-unknown-linux-gnu"
  std::string hostCpu;      // the baseline CPU of that architecture, LLVM's name: "x86-64"
  uint64_t features = 0;    // CPU features that kernels need: KILN_CPU_ bits of runtime/src/core/model.h
  uint32_t memorySpace = 0; // memory of weights, arena and constants: a KILN_MEMORY_ value
  std::string copyRows = "kiln_copy_rows"; // the run-time function that copies rows in that memory space
  std::string backend;           // the kiln_backend_t of the run time that runs the code; empty: CPUs need none
  bool isDefault = false;        // compiled for on machines of that architecture and system, unless a user names others
  bool hasTf32 = false;          // whether there are tensor cores for f32 that is rounded to tf32
  bool hasStoredWeights = false; // whether kernels read quantised weights
  bool hasOrder = false;         // whether kernels may be kiln.batch_invariant (batch-invariant)
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

  /// Returns the compiler of this kernel.
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
