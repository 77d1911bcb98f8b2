// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Family.h"

#include <fmt/format.h>

namespace kiln::newproject::vit {

namespace {

Model readVit(Fields &fields, const Tensors &tensors, const Options &options) {
  const bool isDeit = fields.raw("model_type") == "deit";
  const std::string className = isDeit ? "DeiT" : "ViT", prefix = isDeit ? "deit." : "vit.";
  const std::int64_t width = fields.whole("hidden_size", 1, mostWidth, 768),
                     layers = fields.whole("num_hidden_layers", 1, mostLayers, 12),
                     heads = fields.whole("num_attention_heads", 1, mostWidth, 12),
                     hidden = fields.whole("intermediate_size", 1, mostWidth, 3072),
                     image = fields.whole("image_size", 1, 1 << 14, 224),
                     patch = fields.whole("patch_size", 1, 1 << 14, 16),
                     channels = fields.whole("num_channels", 1, 3, 3);
  requireHeads(fields, "num_attention_heads", width, heads);
  if (image % patch != 0)
    fields.refuse("patch_size", fmt::format("a divisor of the image's {}", image));
  if (channels == 2)
    fields.refuse("num_channels", "1 or 3");
  const double epsilon = fields.number("layer_norm_eps", 1e-20, 1, 1e-12);
  const bool hasBias = fields.flag("qkv_bias", true);
  const std::string function = activation(fields, "hidden_act");
  fields.ignore({"encoder_stride", "pooler_act", "pooler_output_size"});

  const std::string name = architecture(fields, className + "Model");
  const bool hasTeacher = name == "DeiTForImageClassificationWithTeacher",
             hasClasses = hasTeacher || name == "ViTForImageClassification";
  if (!hasClasses && name != className + "Model")
    fields.refuse("architectures", isDeit ? "DeiTModel or DeiTForImageClassificationWithTeacher"
                                          : "ViTModel or ViTForImageClassification");
  const std::int64_t classes = hasClasses ? countLabels(fields) : 1;
  const bool hasPrefix = tensors.hasPrefix(prefix);
  tensors.require((hasPrefix ? prefix : "") + "embeddings.patch_embeddings.projection.weight",
                  {width, channels, patch, patch});

  Model model;
  model.header = "vit.h";
  model.shapeType = "specs::VitShape";
  model.shape = {{"layers", std::to_string(layers)},
                 {"width", std::to_string(width)},
                 {"heads", std::to_string(heads)},
                 {"image", std::to_string(image)},
                 {"patch", std::to_string(patch)},
                 {"classes", std::to_string(classes)},
                 {"channels", std::to_string(channels)},
                 {"hidden", std::to_string(hidden)},
                 {"has_qkv_bias", hasBias ? "true" : "false"},
                 {"activation", function},
                 {"epsilon", shown(epsilon)}};
  model.type = hasTeacher   ? "specs::Deit<shape>"
               : hasClasses ? "specs::Vit<shape>"
                            : fmt::format("specs::VitFeatures<shape, {}>", isDeit);
  model.program = hasClasses ? "picture_classes_main.cpp" : "picture_features_main.cpp";
  model.words = {{"image", std::to_string(image)},
                 {"channels", std::to_string(channels)},
                 {"results", std::to_string(hasClasses ? classes : width)}};
  if (hasClasses)
    model.words.emplace_back("labels", labels(fields, classes));
  addPreprocessor(model, options, channels);
  model.renamings = {{prefix + "pooler.*", {}}, {"pooler.*", {}}, {"*.mask_token", {}}};
  if (!hasPrefix)
    for (const char *part : {"embeddings", "encoder", "layernorm"})
      model.renamings.push_back({std::string(part) + ".*", {prefix + part + ".*"}});
  return model;
}

} // namespace

Family family() { return {.types = {"deit", "vit"}, .read = readVit}; }

} // namespace kiln::newproject::vit
