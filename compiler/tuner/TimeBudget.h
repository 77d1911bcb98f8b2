// SPDX-License-Identifier: Apache-2.0
//
// How long a run may take, from when this is made.
#pragma once

#include <chrono>

namespace kiln {

class TimeBudget {
public:
  explicit TimeBudget(double seconds) : most(seconds) {}

  double seconds() const { return most; }
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }
  /// Whether more than this part of it is gone.
  bool isSpent(double part) const { return elapsed() > most * part; }

private:
  using Clock = std::chrono::steady_clock;
  double most;
  Clock::time_point begin = Clock::now();
};

} // namespace kiln
