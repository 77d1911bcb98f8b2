// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Decoder.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::newproject::moe {

namespace {

/// The fields of the experts, which have other names in Mixtral's files.
struct Mixture {
  std::int64_t count, chosen;
  std::int64_t width;  // of an expert
  std::int64_t shared; // width of the shared expert, or 0
  bool isNormalized;
};

Mixture readMixture(Fields &fields, const std::string &kind, const DecoderSizes &sizes) {
  Mixture mixture{.count = fields.whole(kind == "mixtral" ? "num_local_experts" : "num_experts", 1, 1024),
                  .chosen = fields.whole("num_experts_per_tok", 1, 1024),
                  .width = sizes.hidden,
                  .shared = 0,
                  .isNormalized = true};
  if (mixture.chosen > mixture.count)
    fields.refuse("num_experts_per_tok", fmt::format("at most the {} experts", mixture.count));
  fields.ignore({"output_router_logits", "router_aux_loss_coef", "router_jitter_noise"}); // for training
  if (kind == "mixtral")
    return mixture;
  mixture.width = fields.whole("moe_intermediate_size", 1, mostWidth);
  mixture.isNormalized = fields.flag("norm_topk_prob", false);
  if (kind == "qwen2_moe")
    mixture.shared = fields.whole("shared_expert_intermediate_size", 1, mostWidth);
  // Every layer has experts.
  fields.only("decoder_sparse_step", 1);
  fields.only("mlp_only_layers", nlohmann::json::array());
  return mixture;
}

/// Returns the longest context within the sliding window, if there is one.
std::int64_t readWindow(Fields &fields, const std::string &kind, std::int64_t longest) {
  fields.ignore({"max_window_layers"});
  if (kind != "mixtral" && !fields.flag("use_sliding_window", false)) {
    fields.ignore({"sliding_window"}); // without effect
    return longest;
  }
  if (!fields.has("sliding_window")) {
    fields.only("sliding_window", nullptr);
    return longest;
  }
  return std::min(longest, fields.whole("sliding_window", 1, mostRows));
}

void requireTensors(const Tensors &tensors, const DecoderSizes &sizes, const Mixture &mixture, std::int64_t head,
                    bool isMixtral) {
  const std::string layer = fmt::format("model.layers.{}.", sizes.layers - 1),
                    mlp = layer + (isMixtral ? "block_sparse_moe." : "mlp.");
  tensors.require("model.embed_tokens.weight", {sizes.vocabulary, sizes.width});
  tensors.require(layer + "self_attn.q_proj.weight", {sizes.heads * head, sizes.width});
  tensors.require(mlp + "gate.weight", {mixture.count, sizes.width});
  tensors.require(fmt::format("{}experts.{}.{}.weight", mlp, mixture.count - 1, isMixtral ? "w2" : "down_proj"),
                  {sizes.width, mixture.width});
}

Model readMoe(Fields &fields, const Tensors &tensors, const Options &options) {
  const std::string kind = fields.raw("model_type").get<std::string>();
  const bool isMixtral = kind == "mixtral";
  const std::string expected = isMixtral             ? "MixtralForCausalLM"
                               : kind == "qwen2_moe" ? "Qwen2MoeForCausalLM"
                                                     : "Qwen3MoeForCausalLM";
  if (architecture(fields, expected) != expected)
    fields.refuse("architectures", expected);
  const DecoderSizes sizes = readSizes(fields);
  if (!fields.has("head_dim"))
    requireHeads(fields, "num_attention_heads", sizes.width, sizes.heads);
  const std::int64_t head =
      fields.whole("head_dim", 2, mostWidth, std::max<std::int64_t>(2, sizes.width / sizes.heads));
  if (head % 2 != 0 || head > 256)
    fields.refuse("head_dim", "an even number of at most 256");
  const Positions positions = readPositions(fields, sizes, head, {"default"});
  const Mixture mixture = readMixture(fields, kind, sizes);
  const std::int64_t longest = readWindow(fields, kind, positions.longest);
  const double epsilon = fields.number("rms_norm_eps", 1e-20, 1, isMixtral ? 1e-5 : 1e-6);
  const bool isTied = fields.flag("tie_word_embeddings", false);
  fields.choice("hidden_act", {"silu", "swish"}, "silu");
  fields.only("attention_bias", false);
  requireTensors(tensors, sizes, mixture, head, isMixtral);

  Model model = writerOf("moe", sizes);
  model.header = "moe.h";
  model.shape.back().second = std::to_string(mixture.width);
  const std::int64_t context = chooseContext(model, fields, sizes, longest, options);
  model.shape.insert(model.shape.end(), {{"experts", std::to_string(mixture.count)},
                                         {"chosen", std::to_string(mixture.chosen)},
                                         {"head", std::to_string(head)},
                                         {"context", std::to_string(context)}});
  auto member = [&](const char *name, bool isStated, const std::string &value = "true") {
    if (isStated)
      model.shape.emplace_back(name, value);
  };
  member("shared", mixture.shared > 0, std::to_string(mixture.shared));
  member("is_normalized", !mixture.isNormalized, "false");
  member("is_mixtral", isMixtral);
  member("is_tied", isTied);
  member("has_qkv_bias", kind == "qwen2_moe");
  member("has_qk_norm", kind == "qwen3_moe");
  member("base", true, shown(positions.base));
  member("epsilon", true, shown(epsilon));
  if (isMixtral)
    for (const auto &[theirs, ours] : {std::pair("w1", "gate_proj"), {"w3", "up_proj"}, {"w2", "down_proj"}})
      model.renamings.push_back({fmt::format("*.{}.weight", theirs), {fmt::format("*.{}.weight", ours)}});
  if (isTied)
    model.renamings.push_back({"lm_head.weight", {}});
  return model;
}

} // namespace

Family family() { return {.types = {"mixtral", "qwen2_moe", "qwen3_moe"}, .read = readMoe}; }

} // namespace kiln::newproject::moe
