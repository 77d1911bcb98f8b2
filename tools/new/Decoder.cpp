// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Decoder.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

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

std::string readLlama3(Fields &fields, double factor) {
  const double low = fields.number("low_freq_factor", 0, 1e6), high = fields.number("high_freq_factor", 0, 1e6);
  const std::int64_t original = fields.whole("original_max_position_embeddings", 1, mostRows);
  if (!(high > low))
    fields.refuse("high_freq_factor", "more than low_freq_factor");
  return fmt::format("kiln::llama3_scaling({}, {}, {}, {})", shown(factor), original, shown(low), shown(high));
}

/// Reads YaRN (Peng et al. 2023), and sets the longest context.
std::string readYarn(Fields &fields, double factor, const DecoderSizes &sizes, std::int64_t &longest) {
  const std::int64_t original = fields.whole("original_max_position_embeddings", 1, mostRows, sizes.longest);
  const double fast = fields.number("beta_fast", 1e-6, 1e6, 32), slow = fields.number("beta_slow", 1e-6, 1e6, 1);
  if (!(fast > slow))
    fields.refuse("beta_fast", "more than beta_slow");
  const bool isWhole = fields.flag("truncate", true);

  auto amplitudeOf = [&](double weight) { return 0.1 * weight * std::log(factor) + 1; };
  const double weight = fields.number("mscale", 0, 1e3, 0), all = fields.number("mscale_all_dim", 0, 1e3, 0);
  const double amplitude = fields.number(
      "attention_factor", 1e-6, 1e6, weight > 0 && all > 0 ? amplitudeOf(weight) / amplitudeOf(all) : amplitudeOf(1));
  fields.ignore({"finetuned"});
  longest = std::clamp(static_cast<std::int64_t>(factor * static_cast<double>(original)), sizes.longest,
                       std::max(sizes.longest, mostRows));
  std::string options;
  auto option = [&](const char *name, bool isStated, const std::string &value) {
    if (isStated)
      options += fmt::format("{}.{} = {}", options.empty() ? "" : ", ", name, value);
  };
  option("beta_fast", fast != 32, shown(fast));
  option("beta_slow", slow != 1, shown(slow));
  option("attention_factor", amplitude != amplitudeOf(1), shown(amplitude));
  option("truncates", !isWhole, "false");
  return fmt::format("kiln::yarn_scaling({}, {}{})", shown(factor), original,
                     options.empty() ? "" : ", {" + options + "}");
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
  const std::string kind = inner.choice(inner.has("rope_type") ? "rope_type" : "type", kinds, "default");
  const double factor = kind == "default" ? 1 : inner.number("factor", 1, 1e6);
  if (kind == "dynamic") // this scaling applies only beyond the original context
    positions.longest = inner.whole("original_max_position_embeddings", 1, mostRows, sizes.longest);
  if (kind == "linear")
    positions.scaling = fmt::format("kiln::linear_scaling({})", shown(factor));
  if (kind == "llama3")
    positions.scaling = readLlama3(inner, factor);
  if (kind == "yarn")
    positions.scaling = readYarn(inner, factor, sizes, positions.longest);
  inner.ignore({"rope_type", "type"}); // either key may be present
  fields.close(key, inner);
  return positions;
}

} // namespace kiln::newproject
