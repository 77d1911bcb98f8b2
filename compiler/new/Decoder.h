// SPDX-License-Identifier: Apache-2.0
//
// What decoders of today have in common: the fields of their sizes and of their rotary positions.
#pragma once

#include "compiler/new/Family.h"

#include <optional>

namespace kiln::newproject {

struct DecoderSizes {
  std::int64_t vocabulary, width, layers, heads;
  std::int64_t shared;  // heads of keys and values
  std::int64_t hidden;  // of the perceptrons
  std::int64_t longest; // tokens that a text may have, as far as max_position_embeddings says
};
DecoderSizes readSizes(Fields &fields);
/// A program that writes with `space`::Writer, whose shape begins with these sizes.
Model writerOf(const std::string &space, const DecoderSizes &sizes);
/// Tokens that a text may have: `most` as the checkpoint allows, or fewer by --context, of which there is then a note.
std::int64_t chooseContext(Model &model, Fields &fields, const DecoderSizes &sizes, std::int64_t most,
                           const Options &options);

/// Rotary positions: the base of their frequencies, and how these are scaled for longer texts.
struct Positions {
  double base = 10000;
  std::string scaling = "default";
  double factor = 1, original = 1; // so many times as long as texts that had `original` tokens
  double low = 1, high = 1;        // turns in the original text, or pairs, between which llama3 and yarn go over
  double amplitude = 1;            // of sines and cosines
  std::int64_t turned = 0;         // numbers of a head that its position turns
  std::int64_t longest = 0;        // tokens that a text may have
};
/// By one of the kinds of scaling; `part` is what "partial_rotary_factor" is where it is missing, nothing where it may
/// not be there.
Positions readPositions(Fields &fields, const DecoderSizes &sizes, std::int64_t head,
                        const std::vector<std::string> &kinds, std::optional<double> part = std::nullopt);
/// Of the pairs of a head from the first that is scaled, what llama::Shape has as their bases: 1 / frequency^2.
std::vector<std::string> scaledBases(const Positions &positions, std::int64_t head);

} // namespace kiln::newproject
