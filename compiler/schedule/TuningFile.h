// SPDX-License-Identifier: Apache-2.0
//
// The tuning file: text that belongs beside a model's spec, a line a measurement, sorted. docs/tuning.md describes it.
// A line says which kernel was measured at which run-time extents, machine and number of threads, by which point of its
// strategy's search space, and what came out. Lines are independent, so files merge line by line; of two measurements
// of one thing the better founded one stays.
#pragma once

#include "compiler/schedule/KernelKey.h"
#include "compiler/schedule/Machine.h"
#include "compiler/schedule/SearchSpace.h"
#include "llvm/Support/Error.h"
#include <map>

namespace kiln {

/// What became of a candidate. The names in the file are "failed" (it did not compile), "crashed", "timeout" and
/// "wrong" (its results differ).
enum class Outcome { Measured, Failed, Crashed, TimedOut, Wrong };

/// The name in the file; "measured" of one that has a time.
llvm::StringRef toString(Outcome outcome);

/// What a measurement is a measurement of. The order of the members is the order of the lines in a file.
struct TuningCase {
  std::string strategy;
  std::string structure;
  std::vector<int64_t> shape;
  std::vector<Bounds> bounds;
  Machine machine;
  int64_t threads = 1;
  std::vector<int64_t> extents; // of the kernel's index arguments
  SchedulePoint point;          // complete: a value for each parameter of the space
  auto operator<=>(const TuningCase &) const = default;
};

/// What limits a kernel: the rate of fused multiply-adds, or that of memory.
enum class Limit { Unknown, Fma, Bytes };

struct TuningResult {
  Outcome outcome = Outcome::Measured;
  double microseconds = 0;  // of a call, comparable with the other measurements of the kernel; four digits are kept
  int64_t samples = 0;      // how many it is the median of
  double limitFraction = 0; // of what the limit allows
  Limit limit = Limit::Unknown;
  bool isDefault = false; // whether the point was the analytic default
  bool operator==(const TuningResult &) const = default;
};

/// The line of a measurement, without end of line.
std::string toString(const TuningCase &of, const TuningResult &result);

/// Whether `a` says more than `b` about the same thing: results that are wrong before all others, then those with more
/// samples; what remains equal is decided by the text, so that this is an order and merging does not depend on the
/// sequence.
bool isBetterFounded(const TuningResult &a, const TuningResult &b);

class TuningDatabase {
public:
  using Records = std::map<TuningCase, TuningResult>;

  /// Reads a file; the error names file and line of each thing that is wrong.
  static llvm::Expected<TuningDatabase> load(const std::string &path);
  /// Reads what can be read of a text; `problems` gets a line for each thing that is wrong, "NAME:LINE: ...".
  static TuningDatabase parse(llvm::StringRef text, llvm::StringRef name, std::vector<std::string> &problems);

  /// Takes the place of an earlier measurement of the same thing.
  void put(const TuningCase &of, const TuningResult &result);
  /// The union; of two measurements of the same thing the better founded one.
  void merge(const TuningDatabase &other);

  const Records &records() const { return all; }

  /// The canonical text.
  std::string text() const;
  /// Replaces the file in one step: at any moment it holds the old or the new text, whatever ends the process.
  llvm::Error save(const std::string &path) const;

private:
  Records all;
};

} // namespace kiln
