// SPDX-License-Identifier: Apache-2.0
//
// The time limit of a run, which starts at construction.
#pragma once

#include <chrono>

namespace kiln {

class TimeBudget {
public:
  explicit TimeBudget(double seconds) : most(seconds) {}

  double seconds() const { return most; }
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }
  /// Whether more than this fraction of the time has elapsed.
  bool isSpent(double part) const { return elapsed() > most * part; }

private:
  using Clock = std::chrono::steady_clock;
  double most;
  Clock::time_point begin = Clock::now();
};

} // namespace kiln
