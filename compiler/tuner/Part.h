// SPDX-License-Identifier: Apache-2.0
//
// One of several shares of a model's kernels, for machines that tune a model together: each takes a share and writes a
// file of its own, and the files are merged. Which share a kernel is in is found without asking anyone.
#pragma once

#include "compiler/tuner/KernelsToTune.h"

#include <optional>

namespace kiln {

struct Part {
  unsigned number = 1, count = 1; // the first is 1
  bool isWhole() const { return count == 1; }
};

/// "2/8"; nothing if the text is no such part.
std::optional<Part> parsePart(const std::string &text);
/// "2/8".
std::string toString(const Part &part);

/// What decides where a kernel goes.
struct DealtKernel {
  std::string key; // as a tuning file has it: kernels of one key are measured together
  double time = 0; // in a pass of the model, in any unit
};

/// The part of each kernel, from 1 to `count`. The keys are dealt as cards are, those that take longest first, forth
/// and back: so the parts have alike many, of alike times. The order of the kernels does not matter.
std::vector<unsigned> dealKernels(const std::vector<DealtKernel> &kernels, unsigned count);

/// The kernels of one part, in their order; there may be none.
std::vector<KernelToTune> takePart(std::vector<KernelToTune> kernels, const Part &part);

} // namespace kiln
