// SPDX-License-Identifier: Apache-2.0
//
// Which schedule a kernel is compiled with: that of a measurement of this very kernel, else of the nearest shape of the
// same structure, else the analytic default. The tuning file and the options decide alone, so that a build gives the
// same bytes on every machine. docs/tuning.md has the rules in words.
#pragma once

#include "compiler/schedule/TuningFile.h"

#include <set>
#include <tuple>

namespace kiln {

enum class Provenance { Exact, Transferred, Default };
/// "exact", "transferred", "default".
llvm::StringRef toString(Provenance provenance);

struct ScheduleChoice {
  SchedulePoint point;
  Provenance provenance = Provenance::Default;
  /// How much longer it is expected to take than the best schedule: 0.1 is a tenth. Nothing: no measurement tells. For
  /// an exact record: its loss to the best at each of the measured extents, on the average.
  std::optional<double> loss;
  /// Of an exact one: how many times as fast as the analytic default it was measured, the geometric mean over extents
  /// and threads at which both were.
  std::optional<double> gain;
  std::string donor; // of a transferred one: shape and bounds of the kernel that was measured, and the number of
                     // threads, as far as they are not what was asked for
  std::vector<std::string> records;          // the lines of the file that it rests on, sorted
  std::set<std::vector<int64_t>> measuredAt; // the run-time extents of these
};

struct ChooseOptions {
  std::string machine; // a part of the text of the machine whose measurements count; empty: of all, the one measured
                       // most comes first
  int64_t threads = 0; // that the library will be called with; 0: not known, the best on the average of all measured
};

class ScheduleChooser {
public:
  /// Knows no measurement.
  ScheduleChooser() = default;
  /// Fails if the machine asked for is not in the file, or is several.
  static llvm::Expected<ScheduleChooser> create(const TuningDatabase &database, const ChooseOptions &options);

  ScheduleChoice choose(const KernelKey &key, const Schedulable &schedulable, llvm::StringRef isa) const;

private:
  /// A number of threads and run-time extents.
  using Condition = std::pair<int64_t, std::vector<int64_t>>;
  using Measurements = std::map<SchedulePoint, TuningResult>;
  /// All measurements of one kernel on one machine.
  struct Group {
    std::map<Condition, Measurements> conditions;
    std::set<SchedulePoint> refused; // that failed at any condition
    std::optional<SchedulePoint> preset;
    bool countsThreads = true; // not of a GPU, where the CPU's threads change nothing
  };
  using Shape = std::pair<std::vector<int64_t>, std::vector<Bounds>>;
  struct Ranked {
    double logLoss;
    SchedulePoint point;
    bool operator<(const Ranked &other) const {
      return std::tie(logLoss, point) < std::tie(other.logLoss, other.point);
    }
  };
  /// One strategy on one machine: structure -> shape -> measurements.
  using Structures = std::map<std::string, std::map<Shape, Group>>;

  std::vector<Ranked> rank(const Group &group, llvm::function_ref<bool(const SchedulePoint &)> isLegal) const;
  bool hasThreads(const Group &group) const;
  std::vector<const std::pair<const Condition, Measurements> *> relevant(const Group &group) const;
  double distance(const Shape &from, const Shape &to, const Group &group) const;
  double lossPerDistance(const Structures &structures) const;
  std::optional<double> lossOfDefault(const Structures &structures, llvm::StringRef structure) const;
  void takeRecords(ScheduleChoice &choice, const TuningCase &of, const Group &group) const;
  std::optional<double> gainOf(const SchedulePoint &point, const Group &group) const;
  bool takeExact(ScheduleChoice &choice, const KernelKey &key, const Schedulable &schedulable,
                 const Machine &machine) const;
  bool takeNearest(ScheduleChoice &choice, const KernelKey &key, const Schedulable &schedulable,
                   const Machine &machine) const;

  int64_t threads = 0;
  std::map<std::string, std::vector<Machine>> machines; // by instruction set, the preferred one first
  std::map<std::pair<Machine, std::string>, Structures> index;
};

/// The legal point nearest to `point`: parameters that it lacks get their preset.
SchedulePoint snap(const SearchSpace &space, const SchedulePoint &point);

/// 16 hexadecimal digits that change if and only if one of the lines does; "none" without lines.
std::string tuningDigest(std::vector<std::string> lines);

} // namespace kiln
