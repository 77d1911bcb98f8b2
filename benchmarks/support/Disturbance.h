// SPDX-License-Identifier: Apache-2.0
//
// Whether anybody else used the machine meanwhile: with as many threads as CPUs, a compiler in the background halves
// what it meets, and medians hide only so much.
#pragma once

namespace kiln::bench {

/// Measures from its construction on.
class Disturbance {
public:
  Disturbance();
  /// The CPU time that others took, beside this program and so many seconds of its children, over the time that passed:
  /// 1 is a whole CPU.
  double share(double children) const;

private:
  double startedAt, busyBefore, ownBefore;
};

} // namespace kiln::bench
