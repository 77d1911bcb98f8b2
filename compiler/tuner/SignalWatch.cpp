// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/SignalWatch.h"

namespace kiln {

static volatile std::sig_atomic_t stopRequested = 0;

SignalWatch::SignalWatch() {
  stopRequested = 0;
  struct sigaction note = {};
  note.sa_handler = [](int) { stopRequested = 1; };
  for (size_t i = 0; i < std::size(signals); ++i)
    sigaction(signals[i], &note, &before[i]);
}

SignalWatch::~SignalWatch() {
  for (size_t i = 0; i < std::size(signals); ++i)
    sigaction(signals[i], &before[i], nullptr);
}

bool SignalWatch::isAskedToStop() const { return stopRequested; }

} // namespace kiln
