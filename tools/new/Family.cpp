// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Family.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::newproject {

using Json = nlohmann::json;

void ignoreCommon(Fields &fields, bool isEncoderDecoder) {
  fields.ignore({"_attn_implementation_autoset",
                 "_commit_hash",
                 "_name_or_path",
                 "_num_labels",
                 "architectures",
                 "attention_dropout",
                 "attention_probs_dropout_prob",
                 "auto_map",
                 "bad_words_ids",
                 "begin_suppress_tokens",
                 "bos_token_id",
                 "chunk_size_feed_forward",
                 "classifier_dropout",
                 "cross_attention_hidden_size",
                 "diversity_penalty",
                 "do_sample",
                 "dtype",
                 "early_stopping",
                 "encoder_no_repeat_ngram_size",
                 "eos_token_id",
                 "exponential_decay_length_penalty",
                 "finetuning_task",
                 "forced_bos_token_id",
                 "forced_eos_token_id",
                 "gradient_checkpointing",
                 "hidden_dropout_prob",
                 "id2label",
                 "initializer_factor",
                 "initializer_range",
                 "label2id",
                 "language",
                 "length_penalty",
                 "license",
                 "max_length",
                 "min_length",
                 "model_type",
                 "no_repeat_ngram_size",
                 "num_beam_groups",
                 "num_beams",
                 "num_labels",
                 "num_return_sequences",
                 "output_attentions",
                 "output_hidden_states",
                 "output_past",
                 "output_scores",
                 "pad_token_id",
                 "prefix",
                 "problem_type",
                 "remove_invalid_values",
                 "repetition_penalty",
                 "return_dict",
                 "return_dict_in_generate",
                 "sep_token_id",
                 "suppress_tokens",
                 "task_specific_params",
                 "temperature",
                 "tf_legacy_loss",
                 "tokenizer_class",
                 "top_k",
                 "top_p",
                 "torch_dtype",
                 "torchscript",
                 "transformers.js_config",
                 "transformers_version",
                 "typical_p",
                 "unk_token_id",
                 "unsloth_fixed",
                 "unsloth_version",
                 "use_bfloat16",
                 "use_cache",
                 "xla_device"});
  fields.only("add_cross_attention", false);
  fields.only("is_decoder", false);
  fields.only("is_encoder_decoder", isEncoderDecoder);
  fields.only("pruned_heads", Json::object());
  fields.only("quantization_config", nullptr);
  fields.only("tie_encoder_decoder", false);
}

std::string architecture(Fields &fields, const std::string &otherwise) {
  const Json &all = fields.raw("architectures");
  if (all.is_null())
    return otherwise;
  if (!all.is_array() || all.size() != 1 || !all[0].is_string())
    fields.refuse("architectures", "one name");
  return all[0].get<std::string>();
}

std::string activation(Fields &fields, const std::string &key, const std::string &otherwise) {
  static const std::vector<std::pair<std::string, std::string>> names{
      {"gelu", "gelu"}, {"gelu_fast", "gelu_tanh"}, {"gelu_new", "gelu_tanh"}, {"gelu_pytorch_tanh", "gelu_tanh"},
      {"relu", "relu"}, {"sigmoid", "sigmoid"},     {"silu", "silu"},          {"swish", "silu"},
      {"tanh", "tanh"}};
  std::vector<std::string> allowed;
  for (const auto &[name, ours] : names)
    allowed.push_back(name);
  const std::string name = fields.choice(key, allowed, otherwise);
  const auto found = std::find_if(names.begin(), names.end(), [&](const auto &each) { return each.first == name; });
  return "kiln::Activation::" + found->second;
}

void requireHeads(const Fields &fields, const std::string &key, std::int64_t width, std::int64_t heads) {
  if (width % heads != 0)
    fields.refuse(key, fmt::format("a divisor of the width {}", width));
}

void requireContext(const Options &options, std::int64_t most) {
  if (options.hasContext && options.context > most)
    throw Refusal(fmt::format("--context: too large; expected at most {}, which the checkpoint allows, got {}", most,
                              options.context));
}

void keepLearnedContext(Model &model, std::int64_t positions, const Options &options) {
  requireContext(options, positions);
  if (options.context < positions)
    model.notes.push_back(
        fmt::format("--context: ignored for learned positions, of which the model has {}", positions));
}

std::int64_t countLabels(Fields &fields) {
  const Json &names = fields.raw("id2label");
  if (names.is_object() && !names.empty())
    return static_cast<std::int64_t>(names.size());
  const Json &count = fields.raw("num_labels");
  if (count.is_null())
    return 2; // the default if the field is missing
  return fields.whole("num_labels", 1, mostRows);
}

std::string labels(Fields &fields, std::int64_t count) {
  const Json names = fields.raw("id2label");
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto found = names.is_object() ? names.find(std::to_string(i)) : names.end();
    std::string name =
        found != names.end() && found->is_string() ? found->get<std::string>() : "class " + std::to_string(i);
    // Without control characters, JSON's escapes are also C++'s.
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
