// SPDX-License-Identifier: Apache-2.0
//
// One of several parts of a model's kernels, for machines that tune a model together: each tunes a part and writes a
// separate file, and the files are merged. The part of a kernel is computed without communication.
#pragma once

#include "compiler/tuner/KernelsToTune.h"

#include <optional>

namespace kiln {

struct Part {
  unsigned number = 1, count = 1; // numbers start at 1
  bool isWhole() const { return count == 1; }
};

/// Parses "2/8"; nullopt if the text does not have that form.
std::optional<Part> parsePart(const std::string &text);
/// Formats "2/8".
std::string toString(const Part &part);

/// What determines the part of a kernel.
struct DealtKernel {
  std::string key; // as in a tuning file: kernels of one key are measured together
  double time = 0; // in a pass of the model, in any unit
};

/// Returns the part of each kernel, from 1 to `count`. Keys are dealt in order of decreasing time, back and forth, so
/// that the parts have similar numbers of kernels and similar times. The order of the kernels does not matter.
std::vector<unsigned> dealKernels(const std::vector<DealtKernel> &kernels, unsigned count);

/// Returns the kernels of one part, in their order; may be empty.
std::vector<KernelToTune> takePart(std::vector<KernelToTune> kernels, const Part &part);

} // namespace kiln
