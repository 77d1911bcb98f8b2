// SPDX-License-Identifier: Apache-2.0
//
// Whether a checkpoint's config.json is of the shape that a library was built for.
#pragma once

#include "shapes.h"
#include "support/config.h"

namespace llama {

/// Throws std::runtime_error with a line for each field that differs.
inline void check_config(const support::Config &config, const Shape &shape) {
  support::ConfigCheck check(config);
  if (config.text("model_type", "llama") != "mistral") // the same layers
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

  // Newer files have all that is about positions in one member.
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
  // A text may be shorter than the longest of the model.
  check.at_least("max_position_embeddings", static_cast<double>(shape.context));
  check.at_least("sliding_window", static_cast<double>(shape.context));
  if (config.has("quantization_config"))
    check.differs("quantization_config", "present", "weights of f32, f16 or bf16");
  check.finish();
}

} // namespace llama
