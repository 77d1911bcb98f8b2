// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Family.h"

#include <fmt/format.h>
#include <fstream>

namespace kiln::newproject::bert {

namespace {

/// The names that one of the kinds uses for the same things. Default keys of config.json are BERT's.
struct Kind {
  std::string name;      // bert; also the prefix of its tensors
  std::string className; // Bert
  std::string width = "hidden_size", layers = "num_hidden_layers", heads = "num_attention_heads",
              hidden = "intermediate_size", activation = "hidden_act", epsilon = "layer_norm_eps";
  std::vector<Renaming> body, wordHead, classHead; // renamings to the names of BERT
};

const Kind bert{
    .name = "bert",
    .className = "Bert",
    .body = {{"*.gamma", {"*.weight"}}, {"*.beta", {"*.bias"}}, {"*.position_ids", {}}, {"cls.seq_relationship.*", {}}},
    .wordHead = {{"bert.pooler.*", {}}, {"cls.predictions.decoder.*", {}}},
    .classHead = {{"bert.pooler.*", {"pooler.*"}}},
};
const Kind roberta{
    .name = "roberta",
    .className = "Roberta",
    .body = {{"*.position_ids", {}}},
    .wordHead = {{"bert.pooler.*", {}},
                 {"lm_head.decoder.*", {}},
                 {"lm_head.bias", {"cls.predictions.bias"}},
                 {"lm_head.dense.*", {"cls.predictions.transform.dense.*"}},
                 {"lm_head.layer_norm.*", {"cls.predictions.transform.LayerNorm.*"}}},
    .classHead = {{"bert.pooler.*", {}},
                  {"classifier.dense.*", {"pooler.dense.*"}},
                  {"classifier.out_proj.*", {"classifier.*"}}},
};
const Kind distilbert{
    .name = "distilbert",
    .className = "DistilBert",
    .width = "dim",
    .layers = "n_layers",
    .heads = "n_heads",
    .hidden = "hidden_dim",
    .activation = "activation",
    .epsilon = "",
    .body = {{"bert.transformer.layer.*", {"bert.encoder.layer.*"}},
             {"*.attention.q_lin.weight", {"*.attention.self.query.weight"}},
             {"*.attention.q_lin.bias", {"*.attention.self.query.bias"}},
             {"*.attention.k_lin.weight", {"*.attention.self.key.weight"}},
             {"*.attention.k_lin.bias", {"*.attention.self.key.bias"}},
             {"*.attention.v_lin.weight", {"*.attention.self.value.weight"}},
             {"*.attention.v_lin.bias", {"*.attention.self.value.bias"}},
             {"*.attention.out_lin.weight", {"*.attention.output.dense.weight"}},
             {"*.attention.out_lin.bias", {"*.attention.output.dense.bias"}},
             {"*.sa_layer_norm.weight", {"*.attention.output.LayerNorm.weight"}},
             {"*.sa_layer_norm.bias", {"*.attention.output.LayerNorm.bias"}},
             {"*.ffn.lin1.weight", {"*.intermediate.dense.weight"}},
             {"*.ffn.lin1.bias", {"*.intermediate.dense.bias"}},
             {"*.ffn.lin2.weight", {"*.output.dense.weight"}},
             {"*.ffn.lin2.bias", {"*.output.dense.bias"}},
             {"*.output_layer_norm.weight", {"*.output.LayerNorm.weight"}},
             {"*.output_layer_norm.bias", {"*.output.LayerNorm.bias"}}},
    .wordHead = {{"vocab_projector.weight", {}},
                 {"vocab_projector.bias", {"cls.predictions.bias"}},
                 {"vocab_transform.*", {"cls.predictions.transform.dense.*"}},
                 {"vocab_layer_norm.*", {"cls.predictions.transform.LayerNorm.*"}}},
    .classHead = {{"pre_classifier.*", {"pooler.dense.*"}}},
};

/// Reads how a sentence-transformers folder pools the model's rows to the vector of a text: the mean or the first row,
/// normalised to length 1 or not. Without its files, returns "specs::Pooling::mean, false".
std::string readPooling(const Options &options) {
  std::string pooling = "specs::Pooling::mean";
  if (const auto file = options.folder / "1_Pooling/config.json"; std::filesystem::exists(file)) {
    Fields fields = Fields::read(file.string());
    const bool isMean = fields.flag("pooling_mode_mean_tokens", false),
               isFirst = fields.flag("pooling_mode_cls_token", false);
    for (const char *mode : {"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens",
                             "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"})
      fields.only(mode, false);
    if (isMean == isFirst)
      fields.refuse("pooling_mode_mean_tokens",
                    "either the mean of the tokens or the first one (pooling_mode_cls_token)");
    pooling = isMean ? pooling : "specs::Pooling::first";
  }
  std::ifstream modules(options.folder / "modules.json");
  const std::string text{std::istreambuf_iterator<char>(modules), {}};
  return pooling + (text.find("models.Normalize") != text.npos ? ", true" : ", false");
}

/// Returns renamings of the encoder's tensors to the prefix "bert.", which some files omit.
std::vector<Renaming> bodyOf(const Kind &kind, bool hasPrefix) {
  std::vector<Renaming> all;
  if (!hasPrefix)
    for (const char *part : {"embeddings", "encoder", "pooler", "transformer"})
      all.push_back({std::string(part) + ".*", {std::string("bert.") + part + ".*"}});
  else if (kind.name != "bert")
    all.push_back({kind.name + ".*", {"bert.*"}});
  all.insert(all.end(), kind.body.begin(), kind.body.end());
  return all;
}

/// Sets the model's type, program and template words by the class that config.json names.
void chooseHead(Model &model, Fields &fields, const Kind &kind, const Options &options) {
  const std::string name = architecture(fields, kind.className + "Model");
  auto add = [&](const std::vector<Renaming> &more) {
    model.renamings.insert(model.renamings.end(), more.begin(), more.end());
  };
  if (name == kind.className + "ForMaskedLM" || name == kind.className + "ForPreTraining") {
    fields.only("tie_word_embeddings", true);
    model.type = "specs::MaskedWords<shape>";
    model.program = "words_main.cpp";
    add(kind.wordHead);
  } else if (name == kind.className + "ForSequenceClassification") {
    const std::int64_t count = countLabels(fields);
    model.type = fmt::format("specs::TextClasses<shape, {}, kiln::Activation::{}>", count,
                             kind.name == "distilbert" ? "relu" : "tanh");
    model.program = "classes_main.cpp";
    model.words.emplace_back("labels", labels(fields, count));
    add(kind.classHead);
  } else if (name == kind.className + "ForTokenClassification") {
    const std::int64_t count = countLabels(fields);
    model.type = fmt::format("specs::TokenClasses<shape, {}>", count);
    model.program = "token_classes_main.cpp";
    model.words.emplace_back("labels", labels(fields, count));
    add({{"bert.pooler.*", {}}});
  } else if (name == kind.className + "Model") {
    model.type = fmt::format("specs::TextEmbedding<shape, {}>", readPooling(options));
    model.program = "embedding_main.cpp";
    add({{"bert.pooler.*", {}}});
  } else {
    fields.refuse("architectures",
                  fmt::format("{0}Model, {0}ForMaskedLM, {0}ForSequenceClassification or {0}ForTokenClassification",
                              kind.className));
  }
}

Model readBert(Fields &fields, const Tensors &tensors, const Options &options) {
  const std::string type = fields.raw("model_type").get<std::string>();
  const Kind &kind = type == "bert" ? bert : type == "roberta" ? roberta : distilbert;
  const std::int64_t vocabulary = fields.whole("vocab_size", 1, mostRows),
                     width = fields.whole(kind.width, 1, mostWidth), layers = fields.whole(kind.layers, 1, mostLayers),
                     heads = fields.whole(kind.heads, 1, mostWidth), hidden = fields.whole(kind.hidden, 1, mostWidth),
                     rows = fields.whole("max_position_embeddings", 1, mostRows);
  requireHeads(fields, kind.heads, width, heads);
  const std::int64_t segments = kind.name == "distilbert" ? 0 : fields.whole("type_vocab_size", 1, mostRows, 2);
  // RoBERTa's positions begin after that of the padding.
  const std::int64_t first = kind.name == "roberta" ? 1 + fields.whole("pad_token_id", 0, 1024, 1) : 0;
  if (rows <= first)
    fields.refuse("max_position_embeddings", fmt::format("more than {} rows", first));
  if (kind.name == "roberta") // the head has this activation, whatever the layers have
    fields.choice(kind.activation, {"gelu"}, "gelu");
  const std::string function = activation(fields, kind.activation);
  const double epsilon = kind.epsilon.empty() ? 1e-12 : fields.number(kind.epsilon, 1e-20, 1, 1e-12);
  fields.only("position_embedding_type", "absolute");
  fields.ignore({"attention_dropout", "directionality", "dropout", "model_max_length", "pooler_fc_size",
                 "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type",
                 "qa_dropout", "seq_classif_dropout", "sinusoidal_pos_embds", "tie_weights_", "tie_word_embeddings"});

  const bool hasPrefix = tensors.hasPrefix(kind.name + ".");
  const std::string prefix = hasPrefix ? kind.name + "." : "";
  tensors.require(prefix + "embeddings.word_embeddings.weight", {vocabulary, width});
  tensors.require(prefix + "embeddings.position_embeddings.weight", {rows, width});

  Model model;
  model.header = "encoder.h";
  model.shapeType = "specs::BertShape";
  model.shape = {{"vocabulary", std::to_string(vocabulary)},
                 {"layers", std::to_string(layers)},
                 {"width", std::to_string(width)},
                 {"heads", std::to_string(heads)},
                 {"segments", std::to_string(segments)},
                 {"first_position", std::to_string(first)},
                 {"positions", std::to_string(rows - first)},
                 {"hidden", std::to_string(hidden)},
                 {"activation", function},
                 {"epsilon", shown(epsilon)}};
  model.words = {{"vocabulary", std::to_string(vocabulary)}, {"width", std::to_string(width)}};
  model.renamings = bodyOf(kind, hasPrefix);
  keepLearnedContext(model, rows - first, options);
  chooseHead(model, fields, kind, options);
  return model;
}

} // namespace

Family family() { return {.types = {"bert", "distilbert", "roberta"}, .read = readBert}; }

} // namespace kiln::newproject::bert
