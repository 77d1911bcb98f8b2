// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Family.h"

namespace kiln::newproject::dan {

namespace {

Model readDan(Fields &fields, const Tensors &tensors, const Options &) {
  if (architecture(fields, "DanForSequenceClassification") != "DanForSequenceClassification")
    fields.refuse("architectures", "DanForSequenceClassification");
  const std::int64_t vocabulary = fields.whole("vocab_size", 1, mostRows),
                     layers = fields.whole("num_hidden_layers", 1, mostLayers),
                     width = fields.whole("hidden_size", 1, mostWidth), classes = countLabels(fields);
  fields.choice("hidden_act", {"tanh"}, "tanh");
  fields.ignore({"word_dropout"});

  const std::string prefix = tensors.hasPrefix("dan.") ? "dan." : "";
  tensors.require(prefix + "embedding.weight", {vocabulary, width});

  Model model;
  model.header = "dan.h";
  model.shapeType = "dan::Shape";
  model.shape = {{"vocabulary", std::to_string(vocabulary)},
                 {"layers", std::to_string(layers)},
                 {"width", std::to_string(width)},
                 {"classes", std::to_string(classes)}};
  model.type = "dan::Classifier<shape>";
  model.program = "dan_main.cpp";
  model.words = {{"labels", labels(fields, classes)}};
  model.renamings = {{"dan.*", {"*"}}}; // some files have the prefix
  return model;
}

} // namespace

Family family() { return {.types = {"dan"}, .read = readDan}; }

} // namespace kiln::newproject::dan
