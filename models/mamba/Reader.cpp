// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Family.h"

#include <fmt/format.h>

namespace kiln::newproject::mamba {

namespace {

/// Returns the rank of the projection to step sizes, which may be "auto".
std::int64_t readRank(Fields &fields, std::int64_t width) {
  const nlohmann::json &rank = fields.raw("time_step_rank");
  if (rank.is_string())
    fields.choice("time_step_rank", {"auto"});
  if (rank.is_null() || rank.is_string())
    return (width + 15) / 16;
  return fields.whole("time_step_rank", 1, mostWidth);
}

Model readMamba(Fields &fields, const Tensors &tensors, const Options &options) {
  if (architecture(fields, "MambaForCausalLM") != "MambaForCausalLM")
    fields.refuse("architectures", "MambaForCausalLM");
  const std::int64_t vocabulary = fields.whole("vocab_size", 1, mostRows),
                     layers = fields.whole("num_hidden_layers", 1, mostLayers),
                     width = fields.whole("hidden_size", 1, mostWidth), expand = fields.whole("expand", 1, 64, 2),
                     inner = fields.whole("intermediate_size", 1, mostWidth, expand * width),
                     state = fields.whole("state_size", 1, 4096, 16), kernel = fields.whole("conv_kernel", 2, 1024, 4),
                     rank = readRank(fields, width);
  if (inner != expand * width)
    fields.refuse("intermediate_size", fmt::format("expand times the width, {}", expand * width));
  const double epsilon = fields.number("layer_norm_epsilon", 1e-20, 1, 1e-5);
  const bool hasBias = fields.flag("use_bias", false), hasConvBias = fields.flag("use_conv_bias", true),
             isTied = fields.flag("tie_word_embeddings", true);
  fields.choice("hidden_act", {"silu", "swish"}, "silu");
  fields.only("rms_norm", true);
  fields.only("ssm_cfg", nlohmann::json::object());
  fields.ignore({"d_inner", "d_model", "n_layer"}); // these repeat other fields
  fields.ignore({"fused_add_norm", "pad_vocab_size_multiple", "rescale_prenorm_residual", "residual_in_fp32",
                 "time_step_floor", "time_step_init_scheme", "time_step_max", "time_step_min", "time_step_scale",
                 "use_mambapy"});

  const std::string layer = fmt::format("backbone.layers.{}.mixer.", layers - 1);
  tensors.require("backbone.embeddings.weight", {vocabulary, width});
  tensors.require(layer + "A_log", {inner, state});
  tensors.require(layer + "conv1d.weight", {inner, 1, kernel});
  tensors.require(layer + "dt_proj.weight", {inner, rank});
  tensors.require(layer + "in_proj.weight", {2 * inner, width});
  if (!isTied)
    tensors.require("lm_head.weight", {vocabulary, width});

  Model model;
  model.header = "mamba.h";
  model.shapeType = "mamba::Shape";
  model.shape = {{"vocabulary", std::to_string(vocabulary)}, {"layers", std::to_string(layers)},
                 {"width", std::to_string(width)},           {"inner", std::to_string(inner)},
                 {"state", std::to_string(state)},           {"rank", std::to_string(rank)},
                 {"kernel", std::to_string(kernel)}};
  auto member = [&](const char *name, bool isStated, const char *value) {
    if (isStated)
      model.shape.emplace_back(name, value);
  };
  member("is_tied", !isTied, "false");
  member("has_bias", hasBias, "true");
  member("has_conv_bias", !hasConvBias, "false");
  model.shape.emplace_back("epsilon", shown(epsilon));
  model.type = "mamba::Writer<shape>";
  model.program = "mamba_main.cpp";
  model.words = {{"vocabulary", std::to_string(vocabulary)}};
  if (isTied)
    model.renamings.push_back({"lm_head.weight", {}});
  if (options.hasContext)
    model.notes.push_back(
        "--context: ignored, since the states of the model have a fixed size for texts of any length");
  return model;
}

} // namespace

Family family() { return {.types = {"mamba"}, .read = readMamba}; }

} // namespace kiln::newproject::mamba
