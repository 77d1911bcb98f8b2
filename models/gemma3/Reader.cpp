// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Decoder.h"

#include <cmath>
#include <fmt/format.h>

namespace kiln::newproject::gemma3 {

namespace {

/// The rotary positions of both kinds of layers.
struct Bases {
  double global, local;
  std::string scaling; // of the global ones
};

/// Reads the positions of one kind of layer in the newer form of config.json.
double readKind(Fields &all, const char *key, std::string *scaling) {
  Fields kind = all.inner(key);
  const double base = kind.number("rope_theta", 1.0001, 1e12);
  if (!scaling)
    kind.only("rope_type", "default");
  else if (kind.choice("rope_type", {"default", "linear"}, "default") == "linear")
    *scaling = fmt::format("kiln::linear_scaling({})", shown(kind.number("factor", 1, 1e6)));
  all.close(key, kind);
  return base;
}

Bases readBases(Fields &fields, const DecoderSizes &sizes, std::int64_t head) {
  Bases bases;
  if (fields.has("rope_parameters")) {
    fields.ignore({"rope_local_base_freq", "rope_scaling", "rope_theta"}); // these repeat the same values
    Fields all = fields.inner("rope_parameters");
    bases.global = readKind(all, "full_attention", &bases.scaling);
    bases.local = readKind(all, "sliding_attention", nullptr);
    fields.close("rope_parameters", all);
    return bases;
  }
  if (!fields.has("rope_theta"))
    fields.refuse("rope_theta", "a number");
  const Positions positions = readPositions(fields, sizes, head, {"default", "linear"});
  bases.global = positions.base;
  bases.scaling = positions.scaling;
  bases.local = fields.number("rope_local_base_freq", 1.0001, 1e12, 10000);
  return bases;
}

/// Returns the number of layers of a period, the last of which is global.
std::int64_t readPeriod(Fields &fields, std::int64_t layers) {
  const char *key = fields.has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
  const std::int64_t period = fields.whole(key, 2, mostLayers, 6);
  const nlohmann::json &types = fields.raw("layer_types");
  if (types.is_null())
    return period;
  if (!types.is_array() || static_cast<std::int64_t>(types.size()) != layers)
    fields.refuse("layer_types", fmt::format("a list of {} types", layers));
  for (std::int64_t i = 0; i < layers; ++i)
    if (types[static_cast<std::size_t>(i)] != ((i + 1) % period == 0 ? "full_attention" : "sliding_attention"))
      fields.refuse("layer_types", fmt::format("\"full_attention\" of each layer {} and \"sliding_attention\" of the "
                                               "others",
                                               period));
  return period;
}

Model readGemma3(Fields &fields, const Tensors &tensors, const Options &options) {
  if (architecture(fields, "Gemma3ForCausalLM") != "Gemma3ForCausalLM")
    fields.refuse("architectures", "Gemma3ForCausalLM");
  const DecoderSizes sizes = readSizes(fields);
  const std::int64_t head = fields.whole("head_dim", 2, 512, 256);
  if (head % 2 != 0)
    fields.refuse("head_dim", "an even number");
  const Bases bases = readBases(fields, sizes, head);
  const std::int64_t window = fields.whole("sliding_window", 2, mostRows, 4096),
                     period = readPeriod(fields, sizes.layers);
  const double epsilon = fields.number("rms_norm_eps", 1e-20, 1, 1e-6),
               scalar = fields.number("query_pre_attn_scalar", 1e-3, 1e6, 256);
  fields.choice("hidden_activation", {"gelu_pytorch_tanh"}, "gelu_pytorch_tanh");
  fields.only("attention_bias", false);
  fields.only("attn_logit_softcapping", nullptr);
  fields.only("final_logit_softcapping", nullptr);
  fields.only("tie_word_embeddings", true);
  fields.only("use_bidirectional_attention", false);
  fields.ignore({"cache_implementation"});

  const std::string layer = fmt::format("model.layers.{}.", sizes.layers - 1);
  tensors.require("model.embed_tokens.weight", {sizes.vocabulary, sizes.width});
  tensors.require(layer + "self_attn.q_proj.weight", {sizes.heads * head, sizes.width});
  tensors.require(layer + "pre_feedforward_layernorm.weight", {sizes.width});

  Model model = writerOf("gemma3", sizes);
  model.header = "gemma3.h";
  const std::int64_t context = chooseContext(model, fields, sizes, sizes.longest, options);
  model.shape.insert(model.shape.end(), {{"head", std::to_string(head)},
                                         {"window", std::to_string(window)},
                                         {"period", std::to_string(period)},
                                         {"context", std::to_string(context)}});
  if (!bases.scaling.empty())
    model.shape.emplace_back("scaling", bases.scaling);
  model.shape.insert(model.shape.end(), {{"base", shown(bases.global)},
                                         {"local_base", shown(bases.local)},
                                         {"epsilon", shown(epsilon)},
                                         {"query_scalar", shown(scalar)},
                                         {"embedding_scale", shown(std::sqrt(static_cast<double>(sizes.width)))}});
  model.renamings.push_back({"lm_head.weight", {}});
  return model;
}

} // namespace

Family family() { return {.types = {"gemma3_text"}, .read = readGemma3}; }

} // namespace kiln::newproject::gemma3
