// SPDX-License-Identifier: Apache-2.0
//
// Checks that a checkpoint's config.json, or the metadata of its GGUF file, has the shape that a library was built for.
#pragma once

#include "models/llama/shapes.h"
#include "support/config.h"

namespace llama {

/// Returns the metadata of a GGUF file under the names of a config.json.
inline support::Config config_of_gguf(const support::Config &metadata) {
  nlohmann::json config{{"model_type", metadata.text("general.architecture", "missing")}};
  for (const auto &[field, key] : {std::pair{"vocab_size", "vocab_size"},
                                   {"hidden_size", "embedding_length"},
                                   {"intermediate_size", "feed_forward_length"},
                                   {"num_hidden_layers", "block_count"},
                                   {"num_attention_heads", "attention.head_count"},
                                   {"num_key_value_heads", "attention.head_count_kv"},
                                   {"head_dim", "rope.dimension_count"},
                                   {"rms_norm_eps", "attention.layer_norm_rms_epsilon"},
                                   {"rope_theta", "rope.freq_base"},
                                   {"max_position_embeddings", "context_length"},
                                   {"sliding_window", "attention.sliding_window"}})
    if (const std::string name = std::string("llama.") + key; metadata.has(name))
      config[field] = metadata.at(name).number();
  if (!config.contains("vocab_size") && metadata.has("tokenizer.ggml.tokens"))
    config["vocab_size"] = metadata.at("tokenizer.ggml.tokens").elements().size();
  if (metadata.text("llama.rope.scaling.type", "none") != "none")
    config["rope_scaling"] = metadata.at("llama.rope.scaling.type").text();
  return {metadata.file_name(), config};
}

/// Checks that the quantisation of the weights is supported.
inline void check_quantization(support::ConfigCheck &check, const support::Config &how) {
  const std::string method = how.text("quant_method", "unknown"), version = how.text("version", "gemm");
  const std::int64_t bits = how.integer("bits", 0);
  if ((method != "gptq" && method != "awq") || bits != 4 || (version != "gemm" && version != "GEMM"))
    check.differs("quantization_config", method + " of " + std::to_string(bits) + " bits, " + version,
                  "gptq or awq of 4 bits, gemm");
}

/// Throws std::runtime_error with a line for each field that differs.
inline void check_config(const support::Config &config, const Shape &shape) {
  support::ConfigCheck check(config);
  if (config.text("model_type", "llama") != "mistral") // which has the same layers
    check.text("model_type", "llama", "llama");
  check.text("hidden_act", "silu", "silu");
  check.number("vocab_size", static_cast<double>(shape.vocabulary));
  check.number("hidden_size", static_cast<double>(shape.width));
  check.number("intermediate_size", static_cast<double>(shape.hidden));
  check.number("num_hidden_layers", static_cast<double>(shape.layers));
  check.number("num_attention_heads", shape.heads);
  check.number("num_key_value_heads", config.number("num_attention_heads", 0), shape.key_value_heads);
  const auto head = static_cast<double>(shape.width / shape.heads);
  check.number("head_dim", head, head);
  check.number("rms_norm_eps", 1e-6, shape.epsilon);
  for (const char *field : {"attention_bias", "mlp_bias", "tie_word_embeddings"})
    check.flag(field, false, false);

  // Newer files have all position parameters in one member.
  if (config.has("rope_parameters")) {
    const support::Config positions = config.at("rope_parameters");
    support::ConfigCheck inner(positions);
    inner.number("rope_theta", 10000, shape.base);
    inner.text("rope_type", "default", "default");
    inner.finish();
  } else {
    check.number("rope_theta", 10000, shape.base);
  }
  if (config.has("rope_scaling"))
    check.differs("rope_scaling", "present", "positions as they are");
  // The library's context may be shorter than the model's.
  check.at_least("max_position_embeddings", static_cast<double>(shape.context));
  check.at_least("sliding_window", static_cast<double>(shape.context));
  if (config.has("quantization_config"))
    check_quantization(check, config.at("quantization_config"));
  check.finish();
}

} // namespace llama
