// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Decoder.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numbers>

namespace kiln::newproject {

DecoderSizes readSizes(Fields &fields) {
  const std::int64_t heads = fields.whole("num_attention_heads", 1, mostWidth);
  const DecoderSizes sizes{.vocabulary = fields.whole("vocab_size", 1, mostRows),
                           .width = fields.whole("hidden_size", 1, mostWidth),
                           .layers = fields.whole("num_hidden_layers", 1, mostLayers),
                           .heads = heads,
                           .shared = fields.whole("num_key_value_heads", 1, mostWidth, heads),
                           .hidden = fields.whole("intermediate_size", 1, mostWidth),
                           .longest = fields.whole("max_position_embeddings", 1, mostRows)};
  if (heads % sizes.shared != 0)
    fields.refuse("num_key_value_heads", fmt::format("a divisor of the {} heads", heads));
  return sizes;
}

Model writerOf(const std::string &space, const DecoderSizes &sizes) {
  Model model;
  model.shapeType = space + "::Shape";
  model.shape = {{"vocabulary", std::to_string(sizes.vocabulary)},
                 {"layers", std::to_string(sizes.layers)},
                 {"width", std::to_string(sizes.width)},
                 {"heads", std::to_string(sizes.heads)},
                 {"key_value_heads", std::to_string(sizes.shared)},
                 {"hidden", std::to_string(sizes.hidden)}};
  model.type = space + "::Writer<shape>";
  model.program = "writer_main.cpp";
  model.words = {{"vocabulary", std::to_string(sizes.vocabulary)}};
  model.renamings = {{"*.rotary_emb.inv_freq", {}}};
  return model;
}

std::int64_t chooseContext(Model &model, Fields &fields, const DecoderSizes &sizes, std::int64_t most,
                           const Options &options) {
  requireContext(options, most);
  const std::int64_t context = std::min(most, options.context);
  if (context < most)
    model.notes.push_back(fmt::format("texts have up to {} tokens, of {} that the checkpoint allows; --context N "
                                      "changes that, and the memory of a session with it",
                                      context, most));
  fields.mayExceed("max_position_embeddings", std::min(context, sizes.longest));
  return context;
}

namespace {

void readLlama3(Fields &fields, Positions &positions) {
  positions.low = fields.number("low_freq_factor", 0, 1e6);
  positions.high = fields.number("high_freq_factor", 0, 1e6);
  positions.original = static_cast<double>(fields.whole("original_max_position_embeddings", 1, mostRows));
  if (!(positions.high > positions.low))
    fields.refuse("high_freq_factor", "more than low_freq_factor");
}

/// Reads YaRN (Peng et al. 2023, 3.2 and 3.4) in the form of published models, which interpolate over the indices of
/// pairs instead of their numbers of rotations; with `truncate`, the bounds are integers.
void readYarn(Fields &fields, Positions &positions, const DecoderSizes &sizes, std::int64_t head) {
  positions.original =
      static_cast<double>(fields.whole("original_max_position_embeddings", 1, mostRows, sizes.longest));
  const double fast = fields.number("beta_fast", 1e-6, 1e6, 32), slow = fields.number("beta_slow", 1e-6, 1e6, 1);
  if (!(fast > slow))
    fields.refuse("beta_fast", "more than beta_slow");
  auto pairOf = [&](double turns) { // the pair that makes `turns` rotations in the original context
    return static_cast<double>(head) * std::log(positions.original / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(positions.base));
  };
  const bool isWhole = fields.flag("truncate", true);
  positions.low = std::max(isWhole ? std::floor(pairOf(fast)) : pairOf(fast), 0.0);
  positions.high = std::min(isWhole ? std::ceil(pairOf(slow)) : pairOf(slow), static_cast<double>(head - 1));
  if (positions.low == positions.high)
    positions.high += 0.001; // to avoid a division by zero

  auto amplitudeOf = [&](double weight) { return 0.1 * weight * std::log(positions.factor) + 1; };
  const double weight = fields.number("mscale", 0, 1e3, 0), all = fields.number("mscale_all_dim", 0, 1e3, 0);
  positions.amplitude = fields.number("attention_factor", 1e-6, 1e6,
                                      weight > 0 && all > 0 ? amplitudeOf(weight) / amplitudeOf(all) : amplitudeOf(1));
  fields.ignore({"finetuned"});
  positions.longest = std::clamp(static_cast<std::int64_t>(positions.factor * positions.original), sizes.longest,
                                 std::max(sizes.longest, mostRows));
}

/// Returns the scaled frequency of a pair of numbers of a head.
double frequencyOf(const Positions &positions, std::int64_t pair, double plain) {
  auto between = [&](double share) { return share * plain + (1 - share) * plain / positions.factor; };
  if (positions.scaling == "linear")
    return between(0);
  // Pairs with many rotations in the original context keep their frequency, those with few have it divided by the
  // factor, and the others are interpolated.
  const double turns = positions.original * plain / (2 * std::numbers::pi);
  if (positions.scaling == "llama3")
    return between(std::clamp((turns - positions.low) / (positions.high - positions.low), 0.0, 1.0));
  if (positions.scaling == "yarn")
    return between(
        1 - std::clamp((static_cast<double>(pair) - positions.low) / (positions.high - positions.low), 0.0, 1.0));
  return plain;
}

} // namespace

// Older files have the base by itself and the scaling in one object, newer ones have both in another object.
Positions readPositions(Fields &fields, const DecoderSizes &sizes, std::int64_t head,
                        const std::vector<std::string> &kinds, std::optional<double> part) {
  Positions positions;
  positions.longest = sizes.longest;
  positions.turned = head;
  const bool isNew = fields.has("rope_parameters"), isScaled = isNew || fields.has("rope_scaling");
  const char *key = isNew ? "rope_parameters" : "rope_scaling";
  auto readBase = [&](Fields &from) {
    positions.base = from.number("rope_theta", 1.0001, 1e12, 10000);
    if (!part)
      return;
    positions.turned =
        static_cast<std::int64_t>(from.number("partial_rotary_factor", 0, 1, part) * static_cast<double>(head));
    if (positions.turned < 2 || positions.turned % 2 != 0)
      from.refuse("partial_rotary_factor", fmt::format("an even part of heads of {}", head));
  };
  if (isNew)
    fields.ignore({"rope_scaling", "rope_theta"}); // these repeat the same values
  else
    readBase(fields);
  if (!isScaled) {
    fields.only("rope_scaling", nullptr);
    return positions;
  }
  Fields inner = fields.inner(key);
  if (isNew)
    readBase(inner);
  if (isNew && part)
    fields.ignore({"partial_rotary_factor"}); // this repeats the same value
  positions.scaling = inner.choice(inner.has("rope_type") ? "rope_type" : "type", kinds, "default");
  if (positions.scaling != "default")
    positions.factor = inner.number("factor", 1, 1e6);
  if (positions.scaling == "dynamic") // this scaling applies only beyond the original context
    positions.longest = inner.whole("original_max_position_embeddings", 1, mostRows, sizes.longest);
  if (positions.scaling == "llama3")
    readLlama3(inner, positions);
  if (positions.scaling == "yarn")
    readYarn(inner, positions, sizes, head);
  inner.ignore({"rope_type", "type"}); // either key may be present
  fields.close(key, inner);
  return positions;
}

std::vector<std::string> scaledBases(const Positions &positions, std::int64_t head) {
  std::vector<std::string> bases;
  for (std::int64_t pair = 0; pair < head / 2; ++pair) {
    const double plain = std::pow(positions.base, -2.0 * static_cast<double>(pair) / static_cast<double>(head)),
                 scaled = frequencyOf(positions, pair, plain);
    if (scaled != plain || !bases.empty())
      bases.push_back(shown(1 / (scaled * scaled)));
  }
  return bases;
}

} // namespace kiln::newproject
