// SPDX-License-Identifier: Apache-2.0
//
// Runs kernels of the cuda target without a GPU: the launch plan runs on the PTX interpreter, whose memory checks
// bounds and uninitialised reads. The results are compared with those of compiler/verify for the same IR.
#pragma once

#include "Harness.h"
#include "compiler/verify/ModuleInterpreter.h"
#include "targets/cuda/plan/LaunchPlan.h"
#include <optional>

namespace kiln::testing {

class DeviceKernel {
public:
  /// Throws if the kernel does not compile.
  explicit DeviceKernel(const std::string &text, const ScheduleConfig *config = nullptr);

  const cuda::LaunchPlan &plan() const { return made; }

  /// Returns the results. `shared`: (result, tensor argument) whose memory is shared. An error that the interpreter
  /// finds fails the test.
  std::vector<Tensor> run(const std::vector<int64_t> &symbols, const std::vector<Tensor> &inputs,
                          std::optional<std::pair<unsigned, unsigned>> shared = std::nullopt);
  /// Computes the expected results by compiler/verify: kiln ops in f64 with error bounds, linalg in f32 without.
  std::vector<verify::SharedTensor> expected(const std::vector<int64_t> &symbols, const std::vector<Tensor> &inputs);
  /// Runs the kernel and compares the results, also with each result in the memory of each argument that it may
  /// overwrite. Where there are no error bounds, `tolerance` is relative to the tensor's largest magnitude.
  void check(const std::vector<int64_t> &symbols, const std::vector<Tensor> &inputs, double tolerance = 0);

  /// The last run's extra shared-memory wavefronts: those beyond one per access.
  uint64_t bankConflicts() const { return conflicts; }

  /// From here on launches use the TMA variant, if the kernel has one and its tensors meet the run time's conditions,
  /// on a GPU with this number of multiprocessors. 0 disables it.
  void setTma(uint32_t multiprocessors) { tmaBlocks = multiprocessors; }
  /// Returns the number of TMA launches so far.
  int tmaLaunches() const { return tma; }

  /// From here on tensors begin this many bytes, but at least one element, after multiples of 256; results begin
  /// `ofResults` bytes later.
  void setOffset(int64_t bytes, int64_t ofResults = 0) { offset = bytes, resultOffset = ofResults; }

private:
  void compare(const std::vector<Tensor> &results, const std::vector<verify::SharedTensor> &expected,
               double tolerance) const;

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> parsed, module;
  mlir::func::FuncOp function;
  cuda::LaunchPlan made;
  int64_t offset = 0, resultOffset = 0;
  uint64_t conflicts = 0;
  uint32_t tmaBlocks = 0;
  int tma = 0;
};

/// Returns random inputs of a kernel: normally distributed floats, integers of [low, high).
std::vector<Tensor> randomInputs(const std::string &text, const std::vector<int64_t> &symbols, int low = -100,
                                 int high = 100);

/// Returns the first diagnostic of a kernel that the target rejects, or an empty string.
std::string refusal(const std::string &text, const ScheduleConfig *config = nullptr);

} // namespace kiln::testing
