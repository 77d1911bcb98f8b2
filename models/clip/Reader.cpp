// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Family.h"

#include <fmt/format.h>

namespace kiln::newproject::clip {

namespace {

/// The defaults of an encoder.
struct Usual {
  std::int64_t width, hidden, heads;
};

struct Tower {
  std::int64_t width;
  double epsilon;
  std::string members;
};

/// Reads the fields that both encoders have, as the members of clip::Tower.
Tower readTower(Fields &fields, const Usual &usual) {
  ignoreCommon(fields);
  const std::int64_t layers = fields.whole("num_hidden_layers", 1, mostLayers, 12),
                     width = fields.whole("hidden_size", 1, mostWidth, usual.width),
                     heads = fields.whole("num_attention_heads", 1, mostWidth, usual.heads),
                     hidden = fields.whole("intermediate_size", 1, mostWidth, usual.hidden);
  requireHeads(fields, "num_attention_heads", width, heads);
  const bool isQuick = fields.choice("hidden_act", {"gelu", "quick_gelu"}, "quick_gelu") == "quick_gelu";
  const double epsilon = fields.number("layer_norm_eps", 1e-20, 1, 1e-5);
  fields.ignore({"dropout", "projection_dim", "tie_word_embeddings"});
  return {width, epsilon,
          fmt::format("{{.layers = {}, .width = {}, .heads = {}, .hidden = {}, .has_quick_gelu = {}}}", layers, width,
                      heads, hidden, isQuick)};
}

Model readClip(Fields &fields, const Tensors &tensors, const Options &options) {
  if (architecture(fields, "CLIPModel") != "CLIPModel")
    fields.refuse("architectures", "CLIPModel");
  const std::int64_t joint = fields.whole("projection_dim", 1, mostWidth, 512);
  fields.ignore({"logit_scale_init_value", "text_config_dict", "vision_config_dict"});

  Fields texts = fields.inner("text_config");
  const Tower text = readTower(texts, {512, 2048, 8});
  const std::int64_t vocabulary = texts.whole("vocab_size", 1, mostRows, 49408),
                     positions = texts.whole("max_position_embeddings", 1, mostRows, 77);
  fields.close("text_config", texts);

  Fields pictures = fields.inner("vision_config");
  const Tower vision = readTower(pictures, {768, 3072, 12});
  const std::int64_t image = pictures.whole("image_size", 1, 1 << 14, 224),
                     patch = pictures.whole("patch_size", 1, 1 << 14, 32);
  if (pictures.whole("num_channels", 1, 3, 3) != 3)
    pictures.refuse("num_channels", "3");
  if (vision.epsilon != text.epsilon)
    pictures.refuse("layer_norm_eps", "that of text_config, " + shown(text.epsilon));
  if (image % patch != 0)
    pictures.refuse("patch_size", fmt::format("a divisor of the image's {}", image));
  fields.close("vision_config", pictures);

  tensors.require("text_model.embeddings.token_embedding.weight", {vocabulary, text.width});
  tensors.require("vision_model.embeddings.patch_embedding.weight", {vision.width, 3, patch, patch});

  Model model;
  model.header = "clip.h";
  model.shapeType = "clip::Shape";
  model.shape = {{"text", text.members},
                 {"vision", vision.members},
                 {"vocabulary", std::to_string(vocabulary)},
                 {"positions", std::to_string(positions)},
                 {"image", std::to_string(image)},
                 {"patch", std::to_string(patch)},
                 {"joint", std::to_string(joint)},
                 {"epsilon", shown(text.epsilon)}};
  model.type = "clip::Clip<shape>";
  model.program = "clip_main.cpp";
  model.words = {{"image", std::to_string(image)}, {"channels", "3"}, {"joint", std::to_string(joint)}};
  addPreprocessor(model, options, 3);
  model.renamings = {{"logit_scale", {}}, {"*.position_ids", {}}};
  keepLearnedContext(model, positions, options);
  return model;
}

} // namespace

Family family() { return {.types = {"clip"}, .read = readClip}; }

} // namespace kiln::newproject::clip
