// SPDX-License-Identifier: Apache-2.0
#include "compiler/new/Family.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln::newproject {

namespace {

/// Rotary positions: the base of their frequencies, and how these are scaled for longer texts.
struct Positions {
  double base = 10000;
  std::string scaling = "default";
  double factor = 1, low = 1, high = 1, original = 1;
};

/// Older files have the base by itself and the scaling in one member, newer ones have both in another.
Positions readPositions(Fields &fields) {
  Positions positions;
  const bool isNew = fields.has("rope_parameters"), isScaled = isNew || fields.has("rope_scaling");
  if (isNew)
    fields.ignore({"rope_scaling", "rope_theta"}); // said again
  else
    positions.base = fields.number("rope_theta", 1.0001, 1e12, 10000);
  if (!isScaled) {
    fields.only("rope_scaling", nullptr);
    return positions;
  }
  const char *key = isNew ? "rope_parameters" : "rope_scaling";
  Fields inner = fields.inner(key);
  if (isNew)
    positions.base = inner.number("rope_theta", 1.0001, 1e12, 10000);
  positions.scaling =
      inner.choice(inner.has("rope_type") ? "rope_type" : "type", {"default", "linear", "llama3"}, "default");
  if (positions.scaling != "default")
    positions.factor = inner.number("factor", 1, 1e6);
  if (positions.scaling == "llama3") {
    positions.low = inner.number("low_freq_factor", 0, 1e6);
    positions.high = inner.number("high_freq_factor", 0, 1e6);
    positions.original = static_cast<double>(inner.whole("original_max_position_embeddings", 1, mostRows));
    if (!(positions.high > positions.low))
      inner.refuse("high_freq_factor", "more than low_freq_factor");
  }
  inner.ignore({"rope_type", "type"}); // either says it
  fields.close(key, inner);
  return positions;
}

/// The frequency of a pair of numbers of a head.
double frequencyOf(const Positions &positions, double plain) {
  if (positions.scaling == "linear")
    return plain / positions.factor;
  if (positions.scaling != "llama3")
    return plain;
  // Those that turn often in the original context stay, those that turn rarely are slower, others between the two.
  const double turns = positions.original * plain / (2 * std::acos(-1.0));
  const double share = std::clamp((turns - positions.low) / (positions.high - positions.low), 0.0, 1.0);
  return (1 - share) * plain / positions.factor + share * plain;
}

/// Of the pairs from the first that is scaled, what llama::Shape has as their bases: 1 / frequency^2.
std::vector<std::string> scaledBases(const Positions &positions, std::int64_t head) {
  std::vector<std::string> bases;
  for (std::int64_t pair = 0; pair < head / 2; ++pair) {
    const double plain = std::pow(positions.base, -2.0 * static_cast<double>(pair) / static_cast<double>(head)),
                 scaled = frequencyOf(positions, plain);
    if (scaled != plain || !bases.empty())
      bases.push_back(shown(1 / (scaled * scaled)));
  }
  return bases;
}

/// Whether attention sees a window of the last tokens alone.
bool readSlides(Fields &fields, const std::string &kind) {
  if (kind == "mistral")
    return fields.has("sliding_window");
  if (kind != "qwen2" && kind != "qwen3")
    return false;
  fields.ignore({"max_window_layers", "sliding_window"}); // of no use without the flag
  return fields.flag("use_sliding_window", false) && fields.has("sliding_window");
}

bool readGate(Fields &fields, const std::string &kind) {
  if (kind != "gemma") {
    fields.choice("hidden_act", {"silu", "swish"}, "silu");
    return false;
  }
  // The first files say "gelu" and mean the form that the model was trained with.
  fields.choice("hidden_activation", {"gelu_pytorch_tanh"}, "gelu_pytorch_tanh");
  fields.choice("hidden_act", {"gelu", "gelu_pytorch_tanh"}, "gelu_pytorch_tanh");
  return true;
}

void requireFullAttention(Fields &fields) {
  const nlohmann::json &types = fields.raw("layer_types");
  if (types.is_null())
    return;
  if (!types.is_array())
    fields.refuse("layer_types", "a list");
  for (const nlohmann::json &type : types)
    if (type != "full_attention")
      fields.refuse("layer_types", "\"full_attention\" of every layer");
}

} // namespace

Model readLlama(Fields &fields, const Tensors &tensors, const Options &options) {
  const std::string kind = fields.raw("model_type").get<std::string>();
  const std::vector<std::pair<std::string, std::string>> architectures{{"llama", "LlamaForCausalLM"},
                                                                       {"mistral", "MistralForCausalLM"},
                                                                       {"qwen2", "Qwen2ForCausalLM"},
                                                                       {"qwen3", "Qwen3ForCausalLM"},
                                                                       {"gemma", "GemmaForCausalLM"}};
  for (const auto &[type, name] : architectures)
    if (type == kind && architecture(fields, name) != name)
      fields.refuse("architectures", name);

  const std::int64_t vocabulary = fields.whole("vocab_size", 1, mostRows),
                     width = fields.whole("hidden_size", 1, mostWidth),
                     layers = fields.whole("num_hidden_layers", 1, mostLayers),
                     heads = fields.whole("num_attention_heads", 1, mostWidth),
                     shared = fields.whole("num_key_value_heads", 1, mostWidth, heads),
                     hidden = fields.whole("intermediate_size", 1, mostWidth);
  if (!fields.has("head_dim"))
    requireHeads(fields, "num_attention_heads", width, heads);
  const std::int64_t head = fields.whole("head_dim", 2, mostWidth, std::max<std::int64_t>(2, width / heads));
  if (head % 2 != 0 || head > 256)
    fields.refuse("head_dim", "an even number of at most 256");
  if (heads % shared != 0)
    fields.refuse("num_key_value_heads", "a part of the " + std::to_string(heads) + " heads");
  const double epsilon = fields.number("rms_norm_eps", 1e-20, 1, 1e-6);
  const Positions positions = readPositions(fields);
  const bool isTied = fields.flag("tie_word_embeddings", kind == "gemma"),
             hasBias = fields.flag("attention_bias", false), hasMlpBias = fields.flag("mlp_bias", false);
  const bool hasGelu = readGate(fields, kind);
  std::int64_t longest = fields.whole("max_position_embeddings", 1, mostRows);
  const bool slides = readSlides(fields, kind);
  if (slides) // within a window each token sees all before it
    longest = std::min(longest, fields.whole("sliding_window", 1, mostRows));
  requireFullAttention(fields);
  fields.only("rope_interleaved", false);
  fields.ignore({"pretraining_tp"});

  const std::string layer = "model.layers." + std::to_string(layers - 1);
  tensors.require("model.embed_tokens.weight", {vocabulary, width});
  tensors.require(layer + ".self_attn.q_proj.weight", {heads * head, width});
  tensors.require(layer + ".mlp.down_proj.weight", {width, hidden});
  if (!isTied)
    tensors.require("lm_head.weight", {vocabulary, width});

  Model model;
  model.headers = "examples/llama/llama.h examples/llama/shapes.h";
  model.shapeType = "llama::Shape";
  const std::int64_t context = chooseContext(model, fields, "max_position_embeddings", longest, options);
  if (slides)
    fields.mayExceed("sliding_window", context);
  model.shape = {{"vocabulary", std::to_string(vocabulary)},
                 {"layers", std::to_string(layers)},
                 {"width", std::to_string(width)},
                 {"heads", std::to_string(heads)},
                 {"key_value_heads", std::to_string(shared)},
                 {"hidden", std::to_string(hidden)},
                 {"context", std::to_string(context)}};
  auto member = [&](const char *name, bool isStated, const std::string &value = "true") {
    if (isStated)
      model.shape.emplace_back(name, value);
  };
  member("head", head * heads != width, std::to_string(head));
  member("is_tied", isTied);
  member("has_qkv_bias", hasBias || kind == "qwen2");
  member("has_o_bias", hasBias && kind != "qwen2");
  member("has_mlp_bias", hasMlpBias);
  member("has_qk_norm", kind == "qwen3");
  member("has_gelu_gate", hasGelu);
  member("has_norms_of_one", kind == "gemma");
  const std::vector<std::string> bases = scaledBases(positions, head);
  member("scaled_pairs", !bases.empty(), std::to_string(bases.size()));
  member("base", true, shown(positions.base));
  member("epsilon", true, shown(epsilon));
  member("embedding_scale", kind == "gemma", shown(std::sqrt(static_cast<double>(width))));
  member("scaled_bases", !bases.empty(), fmt::format("{{{}}}", fmt::join(bases, ", ")));
  model.type = "llama::Writer<shape>";
  model.program = "writer_main.cpp";
  model.words = {{"vocabulary", std::to_string(vocabulary)}};
  model.renamings = {{"*.rotary_emb.inv_freq", {}}};
  if (isTied)
    model.renamings.push_back({"lm_head.weight", {}});
  return model;
}

} // namespace kiln::newproject
