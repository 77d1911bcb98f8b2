// SPDX-License-Identifier: Apache-2.0
//
// Checks that a checkpoint's config.json has the shape that a library was built for.
#pragma once

#include "models/gpt2/shapes.h"
#include "support/config.h"

namespace specs {

/// Throws std::runtime_error with a line for each field that differs.
inline void check_config(const support::Config &config, const Gpt2Shape &shape) {
  support::ConfigCheck check(config);
  const auto width = static_cast<double>(shape.width);
  check.text("model_type", "gpt2", "gpt2");
  check.text("activation_function", "gelu_new", "gelu_new");
  check.number("vocab_size", static_cast<double>(shape.vocabulary));
  check.number("n_positions", static_cast<double>(shape.context));
  check.number("n_embd", width);
  check.number("n_inner", 4 * width, static_cast<double>(shape.hidden));
  check.number("n_layer", static_cast<double>(shape.layers));
  check.number("n_head", shape.heads);
  check.number("layer_norm_epsilon", 1e-5, shape.epsilon);
  check.flag("tie_word_embeddings", true, true);
  check.flag("scale_attn_weights", true, true);
  check.flag("scale_attn_by_inverse_layer_idx", false, false);
  check.finish();
}

} // namespace specs
