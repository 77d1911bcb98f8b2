// SPDX-License-Identifier: Apache-2.0
//
// Chooses the schedule of a kernel: that of a measurement of this kernel, else of the nearest shape of the same
// structure (docs/decisions/0055), else the analytic default. The choice depends on the tuning file and the options
// only, so that a build gives the same bytes on every machine. docs/tuning.md describes the rules.
#pragma once

#include "compiler/schedule/TuningFile.h"

#include <set>
#include <tuple>

namespace kiln {

enum class Provenance { Exact, Transferred, Default };
/// Returns "exact", "transferred" or "default".
llvm::StringRef toString(Provenance provenance);

struct ScheduleChoice {
  ScheduleConfig config;
  Provenance provenance = Provenance::Default;
  /// For an exact record: the slowdown compared with the best schedule, as the mean over the measured sizes: 0.1 is a
  /// tenth.
  std::optional<double> loss;
  /// For an exact record: the measured speed-up over the analytic default, as the geometric mean over the sizes and
  /// numbers of threads at which both were measured.
  std::optional<double> gain;
  std::string donor; // for a transferred one: shape and bounds of the measured kernel, and the number of threads, where
                     // they differ from the requested ones
  std::vector<std::string> records;          // the lines of the file on which it is based, sorted
  std::set<std::vector<int64_t>> measuredAt; // the sizes of dynamic dimensions in these
};

struct ChooseOptions {
  std::string machine; // selects the machine whose measurements are used, as a part of its text; empty: all machines,
                       // those with the most measurements first
  int64_t threads = 0; // the number of threads that will call the library; 0: unknown, optimise the mean over all
                       // measured
};

class ScheduleChooser {
public:
  /// Creates a chooser without measurements.
  ScheduleChooser() = default;
  /// Fails if the requested machine is not in the file, or ambiguous.
  static llvm::Expected<ScheduleChooser> create(const TuningDatabase &database, const ChooseOptions &options);

  ScheduleChoice choose(const KernelKey &key, const Schedulable &schedulable, llvm::StringRef isa) const;

private:
  /// A number of threads and sizes of dynamic dimensions.
  using Condition = std::pair<int64_t, std::vector<int64_t>>;
  using Measurements = std::map<ScheduleConfig, TuningResult>;
  /// All measurements of one kernel on one machine.
  struct Group {
    std::map<Condition, Measurements> conditions;
    std::set<ScheduleConfig> refused; // configurations that failed under any condition
    std::optional<ScheduleConfig> defaultConfig;
    bool countsThreads = true; // false for GPUs, where the number of CPU threads has no effect
  };
  using Shape = std::pair<std::vector<int64_t>, std::vector<Bounds>>;
  struct Ranked {
    double logLoss;
    ScheduleConfig config;
    bool operator<(const Ranked &other) const {
      return std::tie(logLoss, config) < std::tie(other.logLoss, other.config);
    }
  };
  /// A measured shape whose best configuration another one takes.
  struct Donor {
    const Shape *shape;
    const Group *group;
    ScheduleConfig measured, legal; // as in the file, and moved to the other kernel's nearest legal values
  };
  /// One strategy on one machine: structure -> shape -> measurements.
  using Structures = std::map<std::string, std::map<Shape, Group>>;

  std::vector<Ranked> rank(const Group &group, llvm::function_ref<bool(const ScheduleConfig &)> isLegal) const;
  bool hasThreads(const Group &group) const;
  std::vector<const std::pair<const Condition, Measurements> *> relevant(const Group &group) const;
  double distance(const Shape &from, const Shape &to, const Group &group) const;
  std::optional<Donor> findDonor(const std::map<Shape, Group> &groups, const Shape &own,
                                 const SearchSpace &space) const;
  void takeRecords(ScheduleChoice &choice, const TuningCase &of, const Group &group) const;
  std::optional<double> gainOf(const ScheduleConfig &config, const Group &group) const;
  /// These return whether measurements of the machine decide the choice.
  bool takeExact(ScheduleChoice &choice, const KernelKey &key, const Schedulable &schedulable,
                 const Machine &machine) const;
  bool takeNearest(ScheduleChoice &choice, const KernelKey &key, const Schedulable &schedulable,
                   const Machine &machine) const;

  int64_t threads = 0;
  std::map<std::string, std::vector<Machine>> machines; // by instruction set, the preferred machine first
  std::map<std::pair<Machine, std::string>, Structures> index;
};

/// Returns the legal configuration nearest to `config`; parameters that it lacks get their default.
ScheduleConfig snap(const SearchSpace &space, const ScheduleConfig &config);

/// Returns 16 hexadecimal digits that identify the lines; "none" without lines.
std::string tuningDigest(std::vector<std::string> lines);

} // namespace kiln
