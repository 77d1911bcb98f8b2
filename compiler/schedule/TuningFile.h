// SPDX-License-Identifier: Apache-2.0
//
// The tuning file: sorted text, one line per measurement, stored next to a model's spec. docs/tuning.md describes it. A
// line has the measured kernel, the sizes of its dynamic dimensions, machine and number of threads, the schedule
// configuration, and the result. Lines are independent, so files are merged line by line; of two measurements of one
// case the better founded one is kept.
#pragma once

#include "compiler/kernel/KernelKey.h"
#include "compiler/schedule/Machine.h"
#include "compiler/schedule/SearchSpace.h"
#include "llvm/Support/Error.h"
#include <map>

namespace kiln {

/// The outcome of a candidate. The names in the file are "failed" (it did not compile), "crashed", "timeout" and
/// "wrong" (its results differ).
enum class Outcome { Measured, Failed, Crashed, TimedOut, Wrong };

/// Returns the name in the file; "measured" for an outcome with a time.
llvm::StringRef toString(Outcome outcome);

/// The subject of a measurement. The order of the members is the order of the lines in a file.
struct TuningCase {
  std::string strategy;
  std::string structure;
  std::vector<int64_t> shape;
  std::vector<Bounds> bounds;
  Machine machine;
  int64_t threads = 1;
  std::vector<int64_t> extents; // values of the kernel's index arguments
  ScheduleConfig config;        // complete: a value for each parameter of the space
  auto operator<=>(const TuningCase &) const = default;
};

/// The bound on a kernel's speed: the rate of fused multiply-adds, or memory bandwidth.
enum class Limit { Unknown, Fma, Bytes };

struct TuningResult {
  Outcome outcome = Outcome::Measured;
  double microseconds = 0;  // per call, comparable with the other measurements of the kernel; four digits are kept
  int64_t samples = 0;      // the number of samples whose median it is
  double limitFraction = 0; // the fraction of the limit that was reached
  Limit limit = Limit::Unknown;
  bool isDefault = false; // whether the configuration was the analytic default
  bool operator==(const TuningResult &) const = default;
};

/// Formats the line of a measurement, without end of line.
std::string toString(const TuningCase &of, const TuningResult &result);

/// Whether `a` is better founded than `b` for the same case: wrong results come before all others, then results with
/// more samples; ties are broken by the text, so that this is a total order and merging does not depend on the
/// sequence.
bool isBetterFounded(const TuningResult &a, const TuningResult &b);

class TuningDatabase {
public:
  using Records = std::map<TuningCase, TuningResult>;

  /// Reads a file; the error names file and line of each problem.
  static llvm::Expected<TuningDatabase> load(const std::string &path);
  /// Reads as much of a text as possible; `problems` gets a line for each problem, "NAME:LINE: ...".
  static TuningDatabase parse(llvm::StringRef text, llvm::StringRef name, std::vector<std::string> &problems);

  /// Replaces an earlier measurement of the same case.
  void put(const TuningCase &of, const TuningResult &result);
  /// Adds all measurements; of two of the same case the better founded one is kept.
  void merge(const TuningDatabase &other);

  const Records &records() const { return all; }

  /// Returns the canonical text.
  std::string text() const;
  /// Replaces the file atomically: at any moment it holds the old or the new text, even if the process is killed.
  llvm::Error save(const std::string &path) const;

private:
  Records all;
};

} // namespace kiln
