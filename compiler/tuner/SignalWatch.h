// SPDX-License-Identifier: Apache-2.0
//
// Turns Ctrl-C and similar signals into a flag that a run polls: measurements are saved, and the run ends normally.
#pragma once

#include <csignal>
#include <iterator>

namespace kiln {

/// While an instance exists, signals that request termination are only recorded. One instance at a time.
class SignalWatch {
public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch &) = delete;
  SignalWatch &operator=(const SignalWatch &) = delete;

  bool isAskedToStop() const;

private:
  static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before[std::size(signals)];
};

} // namespace kiln
