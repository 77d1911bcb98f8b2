// SPDX-License-Identifier: Apache-2.0
//
// Compiles the text of a kernel function, of linalg ops or of kiln ops, for an instruction set, links and loads it, and
// calls it on buffers of the exact size that end (or start) at a guard page. Outputs are poisoned before, and the
// scratch memory of each worker is limited to the bound that the target stated.
#pragma once

#include "RunnableTargets.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "targets/registry.h"
#include <random>

namespace kiln::testing {

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<double> values; // exact in the element type

  double &at(std::initializer_list<int64_t> index);
  double at(std::initializer_list<int64_t> index) const { return const_cast<Tensor *>(this)->at(index); }
  static Tensor zeros(std::vector<int64_t> shape);
};

/// Random f32 numbers of a normal distribution, or whole numbers of [low, high). Each run has its own seed; KILN_SEED
/// fixes it.
Tensor randomTensor(std::vector<int64_t> shape, double scale = 1);
Tensor randomIntegers(std::vector<int64_t> shape, int low, int high);

class Kernel {
public:
  /// Throws if the kernel does not compile. KILN_PRINT in the environment prints the text.
  Kernel(const std::string &text, const std::string &target, const SchedulePoint *point = nullptr);
  ~Kernel();

  /// `aliased` results share memory with the tensor argument of that number, -1: none. Tasks go round the `workers`,
  /// each a thread; the one worker does them last to first.
  std::vector<Tensor> run(const std::vector<int64_t> &symbols, const std::vector<Tensor> &inputs, int aliased = -1,
                          int workers = 1);

  const KernelObject &object() const { return code; }

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  KernelObject code;
  void *library = nullptr;
  void *entry = nullptr;
};

/// How a kernel can be scheduled.
Schedulable describe(const std::string &text, const std::string &target);

/// The forms for few rows that the target wants of it.
std::vector<RowVariant> rowVariants(const std::string &text, const std::string &target);

/// The kernel's code as assembly.
std::string assemblyOf(const std::string &text, const std::string &target, const SchedulePoint &point);

/// What Halide made of it.
std::string statementOf(const std::string &text, const std::string &target, const SchedulePoint &point);

/// What the target's check of accesses to memory says; throws if the kernel does not compile.
MemoryCheck checkMemory(const std::string &text, const std::string &target, const std::vector<MemoryCase> &cases,
                        const SchedulePoint *point = nullptr);

/// Whether a target has its turn at case `number` of a list: each case is tried on one of the targets, and with
/// KILN_TEST_TURNS=n in the environment by one run in n, which is drawn; on all of them with KILN_TEST_ALL.
bool hasTurn(const std::string &target, size_t number);

/// The points of a space that a test tries: the preset and, in turn with the other targets, the least and the largest
/// value of each parameter beside the presets of the others as far as the rules allow, and `more` that are drawn.
std::vector<SchedulePoint> pointsToTry(const SearchSpace &space, int more, const std::string &target);

/// The first diagnostic of a kernel that does not compile; empty if it does.
std::string compileError(const std::string &text, const SchedulePoint *point = nullptr,
                         const std::string &target = "x86-64-v3");

/// Each value within `tolerance` of the largest magnitude of the expected tensor or, with `elementwise`, of its own.
/// `leastScale`: the magnitude of the terms of a sum; when they cancel, the error is relative to them, not to what is
/// left.
void expectClose(const Tensor &actual, const Tensor &expected, double tolerance = 1e-5, bool elementwise = false,
                 double leastScale = 0);

} // namespace kiln::testing
