// SPDX-License-Identifier: Apache-2.0
//
// Whether other programs used the machine during a measurement: with as many threads as CPUs, a compiler in the
// background halves the speed of what it hits, and medians hide this only in part.
#pragma once

namespace kiln::bench {

/// Measures from its construction on.
class Disturbance {
public:
  Disturbance();
  /// The CPU time of other processes, except this program and `children` seconds of its children, divided by the
  /// elapsed time: 1 is a whole CPU.
  double share(double children) const;

private:
  double startedAt, busyBefore, ownBefore;
};

} // namespace kiln::bench
