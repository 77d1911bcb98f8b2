// SPDX-License-Identifier: Apache-2.0
//
// Compiles the text of a kernel function, of linalg ops or of kiln ops, for an instruction set, links and loads it, and
// calls it on buffers of the exact size that end (or start) at a guard page. Outputs are poisoned before the call, and
// each worker's scratch memory is limited to the bound that the target stated.
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
  std::vector<double> values; // representable in the element type

  double &at(std::initializer_list<int64_t> index);
  double at(std::initializer_list<int64_t> index) const { return const_cast<Tensor *>(this)->at(index); }
  static Tensor zeros(std::vector<int64_t> shape);
};

/// Returns normally distributed f32 numbers, or integers of [low, high). Each run has its own seed; KILN_SEED fixes it.
Tensor randomTensor(std::vector<int64_t> shape, double scale = 1);
Tensor randomIntegers(std::vector<int64_t> shape, int low, int high);

class Kernel {
public:
  /// Throws if the kernel does not compile. KILN_PRINT in the environment prints the text.
  Kernel(const std::string &text, const std::string &target, const ScheduleConfig *config = nullptr);
  ~Kernel();

  /// `aliased`: the tensor argument that shares memory with the results; -1: none. Tasks are distributed round-robin
  /// over the `workers`, each a thread; a single worker runs them last to first.
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

/// Returns the kernel's strategy and search space.
Schedulable describe(const std::string &text, const std::string &target);

/// Returns the shape-specialised variants that the target requests for the kernel.
std::vector<ShapeVariant> shapeVariants(const std::string &text, const std::string &target);

/// Returns the kernel's assembly.
std::string assemblyOf(const std::string &text, const std::string &target, const ScheduleConfig &config);

/// Returns the kernel's Halide statement.
std::string statementOf(const std::string &text, const std::string &target, const ScheduleConfig &config);

/// Returns the result of the target's check of memory accesses; throws if the kernel does not compile.
MemoryCheck checkMemory(const std::string &text, const std::string &target, const std::vector<MemoryCase> &cases,
                        const ScheduleConfig *config = nullptr);

/// Whether a target runs case `number` of a list: each case runs on one of the targets. KILN_TEST_TURNS=n in the
/// environment makes only one run in n, chosen by the seed, try it; KILN_TEST_ALL makes all targets run all cases.
bool hasTurn(const std::string &target, size_t number);

/// Returns the configurations that a test tries: the default and, distributed over the targets, the smallest and the
/// largest value of each parameter, with the defaults of the others as far as the rules allow, and `more` random ones.
std::vector<ScheduleConfig> configsToTry(const SearchSpace &space, int more, const std::string &target);

/// Returns the first diagnostic of a kernel that does not compile, or an empty string.
std::string compileError(const std::string &text, const ScheduleConfig *config = nullptr,
                         const std::string &target = "x86-64-v3");

/// Expects each value within `tolerance` of the expected tensor's largest magnitude or, with `elementwise`, of its own
/// magnitude. `leastScale`: the magnitude of a sum's terms; when they cancel, the error is relative to them, not to the
/// sum.
void expectClose(const Tensor &actual, const Tensor &expected, double tolerance = 1e-5, bool elementwise = false,
                 double leastScale = 0);

} // namespace kiln::testing
