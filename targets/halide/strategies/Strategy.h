// SPDX-License-Identifier: Apache-2.0
//
// A schedule strategy recognises the structure of a kernel, declares its parameters, and places the kernel's Funcs. A
// strategy may also build the Funcs of some ops itself (packing, blocking) through Translator::setBuilder.
#pragma once

#include "compiler/kernel/Attention.h"
#include "compiler/schedule/SearchSpace.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "targets/target.h"
#include <memory>

namespace kiln::halide {

class Translator;

class Strategy {
public:
  virtual ~Strategy() = default;
  virtual llvm::StringRef name() const = 0;
  virtual SearchSpace searchSpace() const = 0;
  /// Returns the share of the kernel's operations that the strategy executes: below 1 for an algorithm that saves some.
  virtual double operationShare() const { return 1; }
  /// Returns the shape-specialised variants that pay off, by ascending bound.
  virtual std::vector<ShapeVariant> shapeVariants() const { return {}; }
  /// Called before the translation; sets builders.
  virtual void prepare(Translator &, const ScheduleConfig &) {}
  /// Called after the translation; schedules every Func that must not be inlined.
  virtual void schedule(Translator &translator, const ScheduleConfig &config) = 0;
};

/// Each returns null if the kernel does not have the strategy's structure; the last one always applies.
std::unique_ptr<Strategy> matchOneQuery(const DecomposedKernel &kernel, const MachineModel &machine);
std::unique_ptr<Strategy> matchAttention(const DecomposedKernel &kernel, const MachineModel &machine);
std::unique_ptr<Strategy> matchSkinnyGemm(mlir::func::FuncOp kernel, const MachineModel &machine);
std::unique_ptr<Strategy> matchWinograd(mlir::func::FuncOp kernel, const MachineModel &machine);
std::unique_ptr<Strategy> matchConvolution(mlir::func::FuncOp kernel, const MachineModel &machine);
std::unique_ptr<Strategy> matchContraction(mlir::func::FuncOp kernel, const MachineModel &machine);
std::unique_ptr<Strategy> matchRunningSum(mlir::func::FuncOp kernel, const MachineModel &machine);
std::unique_ptr<Strategy> matchRowReduction(mlir::func::FuncOp kernel, const MachineModel &machine);
std::unique_ptr<Strategy> matchPointwise(mlir::func::FuncOp kernel, const MachineModel &machine);

} // namespace kiln::halide
