// SPDX-License-Identifier: Apache-2.0
//
// Parts that current decoders share: the fields of their sizes and of their rotary positions.
#pragma once

#include "tools/new/Family.h"

#include <optional>

namespace kiln::newproject {

struct DecoderSizes {
  std::int64_t vocabulary, width, layers, heads;
  std::int64_t shared;  // number of key/value heads
  std::int64_t hidden;  // width of the MLPs
  std::int64_t longest; // maximum context length according to max_position_embeddings
};
DecoderSizes readSizes(Fields &fields);
/// Returns a program that generates text with `space`::Writer, whose shape begins with these sizes.
Model writerOf(const std::string &space, const DecoderSizes &sizes);
/// Returns the context length: `most`, which the checkpoint allows, or less if --context asks for it. In the latter
/// case, adds a note.
std::int64_t chooseContext(Model &model, Fields &fields, const DecoderSizes &sizes, std::int64_t most,
                           const Options &options);

/// Rotary positions (RoPE): the base of their frequencies, and how these are scaled for longer contexts.
struct Positions {
  double base = 10000;
  std::string scaling;      // a call of kiln::linear_scaling or the like, or empty
  std::int64_t turned = 0;  // the number of rotated elements of a head
  std::int64_t longest = 0; // maximum context length
};
/// Reads the rotary positions, whose scaling must be one of `kinds`. `part` is the default of "partial_rotary_factor";
/// without it, that key is not allowed.
Positions readPositions(Fields &fields, const DecoderSizes &sizes, std::int64_t head,
                        const std::vector<std::string> &kinds, std::optional<double> part = std::nullopt);
} // namespace kiln::newproject
