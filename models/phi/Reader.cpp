// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Decoder.h"

#include <fmt/format.h>

namespace kiln::newproject::phi {

namespace {

Model readPhi(Fields &fields, const Tensors &tensors, const Options &options) {
  if (architecture(fields, "PhiForCausalLM") != "PhiForCausalLM")
    fields.refuse("architectures", "PhiForCausalLM");
  const DecoderSizes sizes = readSizes(fields);
  requireHeads(fields, "num_attention_heads", sizes.width, sizes.heads);
  const std::int64_t head = sizes.width / sizes.heads;
  const Positions positions = readPositions(fields, sizes, head, {"default", "dynamic"}, 0.5);
  const double epsilon = fields.number("layer_norm_eps", 1e-20, 1, 1e-5);
  fields.choice("hidden_act", {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"},
                "gelu_new"); // these are the same function
  fields.only("qk_layernorm", false);
  fields.only("tie_word_embeddings", false);
  fields.ignore({"embd_pdrop", "resid_pdrop"});

  tensors.require("model.embed_tokens.weight", {sizes.vocabulary, sizes.width});
  tensors.require(fmt::format("model.layers.{}.mlp.fc1.weight", sizes.layers - 1), {sizes.hidden, sizes.width});

  Model model = writerOf("phi", sizes);
  model.header = "phi.h";
  const std::int64_t context = chooseContext(model, fields, sizes, positions.longest, options);
  model.shape.insert(model.shape.end(), {{"turned", std::to_string(positions.turned)},
                                         {"context", std::to_string(context)},
                                         {"base", shown(positions.base)},
                                         {"epsilon", shown(epsilon)}});
  return model;
}

} // namespace

Family family() { return {.types = {"phi"}, .read = readPhi}; }

} // namespace kiln::newproject::phi
