// SPDX-License-Identifier: Apache-2.0
#include "compiler/new/Family.h"

#include <fmt/format.h>

namespace kiln::newproject {

Model readPhi(Fields &fields, const Tensors &tensors, const Options &options) {
  if (architecture(fields, "PhiForCausalLM") != "PhiForCausalLM")
    fields.refuse("architectures", "PhiForCausalLM");
  const std::int64_t vocabulary = fields.whole("vocab_size", 1, mostRows),
                     width = fields.whole("hidden_size", 1, mostWidth),
                     layers = fields.whole("num_hidden_layers", 1, mostLayers),
                     heads = fields.whole("num_attention_heads", 1, mostWidth),
                     shared = fields.whole("num_key_value_heads", 1, mostWidth, heads),
                     hidden = fields.whole("intermediate_size", 1, mostWidth),
                     longest = fields.whole("max_position_embeddings", 1, mostRows);
  requireHeads(fields, "num_attention_heads", width, heads);
  if (heads % shared != 0)
    fields.refuse("num_key_value_heads", fmt::format("a part of the {} heads", heads));
  const std::int64_t head = width / heads;
  const auto turned =
      static_cast<std::int64_t>(fields.number("partial_rotary_factor", 0, 1, 0.5) * static_cast<double>(head));
  if (turned < 2 || turned % 2 != 0)
    fields.refuse("partial_rotary_factor", fmt::format("an even part of heads of {}", head));
  const double base = fields.number("rope_theta", 1.0001, 1e12, 10000),
               epsilon = fields.number("layer_norm_eps", 1e-20, 1, 1e-5);
  fields.choice("hidden_act", {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"}, "gelu_new"); // one function
  fields.only("rope_scaling", nullptr);
  fields.only("qk_layernorm", false);
  fields.only("tie_word_embeddings", false);
  fields.ignore({"embd_pdrop", "resid_pdrop"});

  tensors.require("model.embed_tokens.weight", {vocabulary, width});
  tensors.require(fmt::format("model.layers.{}.mlp.fc1.weight", layers - 1), {hidden, width});

  Model model;
  model.headers = "compiler/new/headers/phi.h";
  model.shapeType = "phi::Shape";
  const std::int64_t context = chooseContext(model, fields, "max_position_embeddings", longest, options);
  model.shape = {{"vocabulary", std::to_string(vocabulary)},
                 {"layers", std::to_string(layers)},
                 {"width", std::to_string(width)},
                 {"heads", std::to_string(heads)},
                 {"key_value_heads", std::to_string(shared)},
                 {"hidden", std::to_string(hidden)},
                 {"turned", std::to_string(turned)},
                 {"context", std::to_string(context)},
                 {"base", shown(base)},
                 {"epsilon", shown(epsilon)}};
  model.type = "phi::Writer<shape>";
  model.program = "writer_main.cpp";
  model.words = {{"vocabulary", std::to_string(vocabulary)}};
  model.renamings = {{"*.rotary_emb.inv_freq", {}}};
  return model;
}

} // namespace kiln::newproject
