// SPDX-License-Identifier: Apache-2.0
#include "compiler/new/Family.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::newproject {

using Json = nlohmann::json;

void ignoreCommon(Fields &fields) {
  fields.ignore({"_attn_implementation_autoset",
                 "_commit_hash",
                 "_name_or_path",
                 "architectures",
                 "attention_dropout",
                 "attention_probs_dropout_prob",
                 "auto_map",
                 "bos_token_id",
                 "classifier_dropout",
                 "dtype",
                 "eos_token_id",
                 "finetuning_task",
                 "gradient_checkpointing",
                 "hidden_dropout_prob",
                 "id2label",
                 "initializer_factor",
                 "initializer_range",
                 "label2id",
                 "language",
                 "license",
                 "model_type",
                 "num_labels",
                 "output_past",
                 "pad_token_id",
                 "problem_type",
                 "return_dict",
                 "sep_token_id",
                 "task_specific_params",
                 "tokenizer_class",
                 "torch_dtype",
                 "torchscript",
                 "transformers_version",
                 "unk_token_id",
                 "use_cache"});
  fields.only("add_cross_attention", false);
  fields.only("is_decoder", false);
  const Json &type = fields.raw("model_type");
  fields.only("is_encoder_decoder", type == "t5" || type == "whisper");
  fields.only("pruned_heads", Json::object());
  fields.only("quantization_config", nullptr);
}

std::string architecture(Fields &fields, const std::string &otherwise) {
  const Json &all = fields.raw("architectures");
  if (all.is_null())
    return otherwise;
  if (!all.is_array() || all.size() != 1 || !all[0].is_string())
    fields.refuse("architectures", "one name");
  return all[0].get<std::string>();
}

std::string activation(Fields &fields, const std::string &key) {
  static const std::vector<std::pair<std::string, std::string>> names{
      {"gelu", "gelu"}, {"gelu_fast", "gelu_tanh"}, {"gelu_new", "gelu_tanh"}, {"gelu_pytorch_tanh", "gelu_tanh"},
      {"relu", "relu"}, {"sigmoid", "sigmoid"},     {"silu", "silu"},          {"swish", "silu"},
      {"tanh", "tanh"}};
  std::vector<std::string> allowed;
  for (const auto &[name, ours] : names)
    allowed.push_back(name);
  const std::string name = fields.choice(key, allowed, "gelu");
  const auto found = std::find_if(names.begin(), names.end(), [&](const auto &each) { return each.first == name; });
  return "kiln::Activation::" + found->second;
}

void requireHeads(const Fields &fields, const std::string &key, std::int64_t width, std::int64_t heads) {
  if (width % heads != 0)
    fields.refuse(key, fmt::format("a part of the width {}", width));
}

std::int64_t chooseContext(Model &model, Fields &fields, const std::string &key, std::int64_t most,
                           const Options &options) {
  const std::int64_t context = std::min(most, options.context);
  if (context < most)
    model.notes.push_back(fmt::format("texts have up to {} tokens, of {} that the checkpoint allows; --context N "
                                      "changes that, and the memory of a session with it",
                                      context, most));
  fields.mayExceed(key, context);
  return context;
}

void keepLearnedContext(Model &model, std::int64_t positions, const Options &options) {
  if (options.context < positions)
    model.notes.push_back(fmt::format("--context is not for a model of learned positions, which has {}", positions));
}

std::int64_t countLabels(Fields &fields) {
  const Json &names = fields.raw("id2label");
  if (names.is_object() && !names.empty())
    return static_cast<std::int64_t>(names.size());
  const Json &count = fields.raw("num_labels");
  if (count.is_null())
    return 2; // what the field's absence means
  return fields.whole("num_labels", 1, mostRows);
}

std::string labels(Fields &fields, std::int64_t count) {
  const Json names = fields.raw("id2label");
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto found = names.is_object() ? names.find(std::to_string(i)) : names.end();
    std::string name =
        found != names.end() && found->is_string() ? found->get<std::string>() : "class " + std::to_string(i);
    // Without control characters JSON's escapes are C++'s.
    std::replace_if(name.begin(), name.end(), [](unsigned char c) { return c < ' ' || c == 127; }, ' ');
    text += fmt::format("    {},\n", Json(name).dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return text;
}

void addPreprocessor(Model &model, const Options &options, std::int64_t channels) {
  std::vector<double> mean(channels, 0.5), deviation(channels, 0.5);
  if (const auto file = options.folder / "preprocessor_config.json"; std::filesystem::exists(file)) {
    Fields fields = Fields::read(file.string());
    for (auto [key, values] : {std::pair{"image_mean", &mean}, {"image_std", &deviation}}) {
      const nlohmann::json &numbers = fields.raw(key);
      if (numbers.is_null())
        continue;
      if (!numbers.is_array() || numbers.size() != values->size())
        fields.refuse(key, fmt::format("{} numbers", channels));
      for (std::size_t i = 0; i < values->size(); ++i) {
        if (!numbers[i].is_number() || (values == &deviation && !(numbers[i].get<double>() > 0)))
          fields.refuse(key, fmt::format("{} numbers", channels));
        (*values)[i] = numbers[i].get<double>();
      }
    }
    fields.only("do_rescale", true);
    fields.only("do_normalize", true);
  }
  model.words.emplace_back("mean", fmt::format("{}", fmt::join(mean, ", ")));
  model.words.emplace_back("deviation", fmt::format("{}", fmt::join(deviation, ", ")));
}

} // namespace kiln::newproject
