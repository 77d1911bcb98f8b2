// SPDX-License-Identifier: Apache-2.0
//
// A kernel of the cuda target without a GPU: its plan runs on the PTX interpreter, with memory that knows its bounds
// and what was written. What it gives is compared with what compiler/verify makes of the same text.
#pragma once

#include "Harness.h"
#include "compiler/verify/ModuleInterpreter.h"
#include "targets/cuda/Plan.h"
#include <optional>

namespace kiln::testing {

class DeviceKernel {
public:
  /// Throws if the kernel does not compile.
  explicit DeviceKernel(const std::string &text, const SchedulePoint *point = nullptr);

  const cuda::DevicePlan &plan() const { return made; }

  /// The results. `shared`: the result of that number lies in the memory of the tensor argument of that number. A fault
  /// that the interpreter finds fails the test.
  std::vector<Tensor> run(const std::vector<int64_t> &symbols, const std::vector<Tensor> &inputs,
                          std::optional<std::pair<unsigned, unsigned>> shared = std::nullopt);
  /// What the results are by compiler/verify: of kiln ops in f64 with bounds, of linalg in f32 without.
  std::vector<verify::SharedTensor> expected(const std::vector<int64_t> &symbols, const std::vector<Tensor> &inputs);
  /// Runs the kernel and compares, also with each result in each argument whose memory it may take. Of what has no
  /// bounds, `tolerance` of the tensor's largest magnitude is allowed.
  void check(const std::vector<int64_t> &symbols, const std::vector<Tensor> &inputs, double tolerance = 0);

  /// Of the last run: turns that accesses to shared memory took beyond one each.
  uint64_t bankConflicts() const { return conflicts; }

  /// From here on launches take their mapped form, if they have one and their tensors are as the run time wants them,
  /// on a GPU of so many multiprocessors; 0: none does.
  void setMapped(uint32_t multiprocessors) { mappedBlocks = multiprocessors; }
  /// How many did so far.
  int mappedLaunches() const { return mapped; }

  /// From here on tensors begin so many bytes behind multiples of 256, or a whole element where that is more; results
  /// more bytes behind those.
  void setOffset(int64_t bytes, int64_t ofResults = 0) { offset = bytes, resultOffset = ofResults; }

private:
  void compare(const std::vector<Tensor> &results, const std::vector<verify::SharedTensor> &expected,
               double tolerance) const;

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> parsed, module;
  mlir::func::FuncOp function;
  cuda::DevicePlan made;
  int64_t offset = 0, resultOffset = 0;
  uint64_t conflicts = 0;
  uint32_t mappedBlocks = 0;
  int mapped = 0;
};

/// Random inputs of a kernel: floats of a normal distribution, integers of [low, high).
std::vector<Tensor> randomInputs(const std::string &text, const std::vector<int64_t> &symbols, int low = -100,
                                 int high = 100);

/// The first diagnostic of a kernel that the target refuses; empty if it does not.
std::string refusal(const std::string &text, const SchedulePoint *point = nullptr);

} // namespace kiln::testing
