// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Family.h"

namespace kiln::newproject::gpt2 {

namespace {

Model readGpt2(Fields &fields, const Tensors &tensors, const Options &options) {
  const std::string kind = architecture(fields, "GPT2LMHeadModel");
  if (kind != "GPT2LMHeadModel" && kind != "GPT2Model")
    fields.refuse("architectures", "GPT2LMHeadModel");
  const std::int64_t vocabulary = fields.whole("vocab_size", 1, mostRows, 50257),
                     positions = fields.whole("n_positions", 1, mostRows, 1024),
                     width = fields.whole("n_embd", 1, mostWidth, 768),
                     layers = fields.whole("n_layer", 1, mostLayers, 12),
                     heads = fields.whole("n_head", 1, mostWidth, 12);
  requireHeads(fields, "n_head", width, heads);
  const std::int64_t hidden = fields.whole("n_inner", 1, mostWidth, 4 * width);
  const double epsilon = fields.number("layer_norm_epsilon", 1e-20, 1, 1e-5);
  const std::string function = activation(fields, "activation_function", "gelu_new");
  fields.only("tie_word_embeddings", true);
  fields.only("scale_attn_weights", true);
  fields.only("scale_attn_by_inverse_layer_idx", false);
  fields.ignore({"attn_pdrop", "embd_pdrop", "n_ctx", "reorder_and_upcast_attn", "resid_pdrop", "summary_activation",
                 "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj"});

  const std::string prefix = tensors.hasPrefix("transformer.") ? "transformer." : "";
  tensors.require(prefix + "wte.weight", {vocabulary, width});
  tensors.require(prefix + "wpe.weight", {positions, width});
  tensors.require(prefix + "h." + std::to_string(layers - 1) + ".mlp.c_fc.weight", {width, hidden});

  Model model;
  model.header = "gpt2.h";
  model.shapeType = "specs::Gpt2Shape";
  model.shape = {{"layers", std::to_string(layers)},
                 {"width", std::to_string(width)},
                 {"heads", std::to_string(heads)},
                 {"vocabulary", std::to_string(vocabulary)},
                 {"context", std::to_string(positions)},
                 {"hidden", std::to_string(hidden)},
                 {"epsilon", shown(epsilon)}};
  model.type = function == "kiln::Activation::gelu_tanh" ? "specs::Gpt2WriterOf<shape>"
                                                         : "specs::Gpt2WriterOf<shape, " + function + ">";
  model.program = "writer_main.cpp";
  model.words = {{"vocabulary", std::to_string(vocabulary)}};
  // Leave out the causal masks and the tied output.
  model.renamings = {{"transformer.*", {"*"}}, {"*.attn.bias", {}}, {"*.attn.masked_bias", {}}, {"lm_head.weight", {}}};
  keepLearnedContext(model, positions, options);
  return model;
}

} // namespace

Family family() { return {.types = {"gpt2"}, .read = readGpt2}; }

} // namespace kiln::newproject::gpt2
