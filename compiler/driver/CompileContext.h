// SPDX-License-Identifier: Apache-2.0
//
// A compilation's request, and what all of its stages share. A stage is a function that takes the values of earlier
// stages and returns its own; Compile.cpp calls the stages that an emit form needs.
#pragma once

#include "compiler/driver/Compile.h"

#include <chrono>

namespace kiln {

struct CompileContext {
  const Graph &graph;
  const CompileOptions &options;
  llvm::raw_ostream &errors;
  std::vector<const Target *> targets = {}; // best first, all of one architecture and system
  ModelInterface described = {};            // the library's interface as the graph describes it
  std::vector<ObjectFile> runtime = {};     // all members of the run time
  std::vector<StageTime> times = {};        // in the order of execution

  /// The target whose architecture and system are those of the library.
  const TargetInfo &host() const { return targets.front()->info(); }

  /// Report an error and return failure.
  mlir::LogicalResult fail(const std::string &message) const;
  mlir::LogicalResult fail(llvm::Error error) const;
  /// Returns the value, or reports the error.
  template <class T> mlir::FailureOr<T> require(llvm::Expected<T> value) const {
    if (!value)
      return fail(value.takeError());
    return std::move(*value);
  }
  mlir::LogicalResult write(const std::string &path, llvm::StringRef text) const;

  /// Returns the result of `work`, and records the time that it takes.
  template <class Work> auto timed(std::string stage, Work work) {
    const auto begin = std::chrono::steady_clock::now();
    auto result = work();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    times.push_back({std::move(stage), taken.count()});
    return result;
  }
};

/// Checks the request and describes the library's interface. A failure has been reported.
mlir::FailureOr<CompileContext> beginCompilation(const Graph &graph, const CompileOptions &options,
                                                 llvm::raw_ostream &errors);

} // namespace kiln
