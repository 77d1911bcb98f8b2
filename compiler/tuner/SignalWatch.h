// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C and its like, as a question that a run asks: what was measured is saved, and the run ends by itself.
#pragma once

#include <csignal>
#include <iterator>

namespace kiln {

/// While it lives, the signals that ask a program to end are only noted. One at a time.
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
