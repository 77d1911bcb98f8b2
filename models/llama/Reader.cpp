// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Decoder.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln::newproject::llama {

namespace {

/// Whether attention is limited to a sliding window.
bool readSlides(Fields &fields, const std::string &kind) {
  if (kind == "mistral")
    return fields.has("sliding_window");
  if (kind != "qwen2" && kind != "qwen3")
    return false;
  fields.ignore({"max_window_layers", "sliding_window"}); // without effect if the flag is not set
  return fields.flag("use_sliding_window", false) && fields.has("sliding_window");
}

bool readGate(Fields &fields, const std::string &kind) {
  if (kind != "gemma") {
    fields.choice("hidden_act", {"silu", "swish"}, "silu");
    return false;
  }
  // The first files say "gelu" but mean the tanh approximation, with which the model was trained.
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

  const DecoderSizes sizes = readSizes(fields);
  if (!fields.has("head_dim"))
    requireHeads(fields, "num_attention_heads", sizes.width, sizes.heads);
  const std::int64_t head =
      fields.whole("head_dim", 2, mostWidth, std::max<std::int64_t>(2, sizes.width / sizes.heads));
  if (head % 2 != 0 || head > 256)
    fields.refuse("head_dim", "an even number of at most 256");
  const double epsilon = fields.number("rms_norm_eps", 1e-20, 1, 1e-6);
  const Positions positions = readPositions(fields, sizes, head, {"default", "dynamic", "linear", "llama3", "yarn"});
  const bool isTied = fields.flag("tie_word_embeddings", kind == "gemma"),
             hasBias = fields.flag("attention_bias", false), hasMlpBias = fields.flag("mlp_bias", false);
  const bool hasGelu = readGate(fields, kind);
  std::int64_t longest = positions.longest;
  const bool slides = readSlides(fields, kind);
  if (slides) // within a window, each token sees all tokens before it
    longest = std::min(longest, fields.whole("sliding_window", 1, mostRows));
  requireFullAttention(fields);
  fields.only("rope_interleaved", false);
  fields.only("use_mrope", false);
  fields.ignore({"is_llama_config", "pretraining_tp"});

  const std::string layer = "model.layers." + std::to_string(sizes.layers - 1);
  tensors.require("model.embed_tokens.weight", {sizes.vocabulary, sizes.width});
  tensors.require(layer + ".self_attn.q_proj.weight", {sizes.heads * head, sizes.width});
  tensors.require(layer + ".mlp.down_proj.weight", {sizes.width, sizes.hidden});
  if (!isTied)
    tensors.require("lm_head.weight", {sizes.vocabulary, sizes.width});

  Model model = writerOf("llama", sizes);
  model.header = "llama.h";
  const std::int64_t context = chooseContext(model, fields, sizes, longest, options);
  if (slides)
    fields.mayExceed("sliding_window", context);
  model.shape.emplace_back("context", std::to_string(context));
  auto member = [&](const char *name, bool isStated, const std::string &value = "true") {
    if (isStated)
      model.shape.emplace_back(name, value);
  };
  member("head", head * sizes.heads != sizes.width, std::to_string(head));
  member("is_tied", isTied);
  member("has_qkv_bias", hasBias || kind == "qwen2");
  member("has_o_bias", hasBias && kind != "qwen2");
  member("has_mlp_bias", hasMlpBias);
  member("has_qk_norm", kind == "qwen3");
  member("has_gelu_gate", hasGelu);
  member("has_norms_of_one", kind == "gemma");
  member("scaling", !positions.scaling.empty(), positions.scaling);
  member("base", true, shown(positions.base));
  member("epsilon", true, shown(epsilon));
  member("embedding_scale", kind == "gemma", shown(std::sqrt(static_cast<double>(sizes.width))));
  if (isTied)
    model.renamings.push_back({"lm_head.weight", {}});
  return model;
}

} // namespace

Family family() { return {.types = {"gemma", "llama", "mistral", "qwen2", "qwen3"}, .read = readLlama}; }

} // namespace kiln::newproject::llama
