// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Family.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln::newproject::t5 {

namespace {

/// Returns the distances at which buckets of more than one distance begin: of `count` buckets, the first half have one
/// distance each, and the sizes of the others grow logarithmically up to `farthest`.
std::string distancesOf(std::int64_t count, std::int64_t farthest, std::size_t &size) {
  const std::int64_t exact = count / 2;
  std::vector<std::int64_t> begins;
  for (std::int64_t i = 1; i < count - exact; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(count - exact);
    const double begin =
        static_cast<double>(exact) * std::pow(static_cast<double>(farthest) / static_cast<double>(exact), share);
    begins.push_back(static_cast<std::int64_t>(std::ceil(begin - 1e-9))); // an integer begins its own bucket
  }
  size = begins.size();
  return fmt::format("{{{}}}", fmt::join(begins, ", "));
}

Model readT5(Fields &fields, const Tensors &tensors, const Options &options) {
  const std::string name = architecture(fields, "T5ForConditionalGeneration");
  if (name != "T5ForConditionalGeneration" && name != "T5WithLMHeadModel")
    fields.refuse("architectures", "T5ForConditionalGeneration");
  const std::int64_t vocabulary = fields.whole("vocab_size", 1, mostRows),
                     width = fields.whole("d_model", 1, mostWidth), head = fields.whole("d_kv", 1, mostWidth),
                     hidden = fields.whole("d_ff", 1, mostWidth), layers = fields.whole("num_layers", 1, mostLayers),
                     decoderLayers = fields.whole("num_decoder_layers", 1, mostLayers, layers),
                     heads = fields.whole("num_heads", 1, mostWidth),
                     buckets = fields.whole("relative_attention_num_buckets", 8, 128, 32),
                     farthest = fields.whole("relative_attention_max_distance", buckets, 1 << 20, 128);
  if (buckets % 4 != 0)
    fields.refuse("relative_attention_num_buckets", "a multiple of 4");
  const double epsilon = fields.number("layer_norm_epsilon", 1e-20, 1, 1e-6);
  const bool isGated = fields.choice("feed_forward_proj", {"relu", "gated-gelu"}, "relu") == "gated-gelu",
             isTied = fields.flag("tie_word_embeddings", true);
  fields.only("decoder_start_token_id", 0);
  fields.ignore({"classifier_dropout", "dense_act_fn", "dropout_rate", "is_gated_act", "n_positions"});

  tensors.require("shared.weight", {vocabulary, width});
  tensors.require(fmt::format("decoder.block.{}.layer.2.DenseReluDense.wo.weight", decoderLayers - 1), {width, hidden});

  Model model;
  model.header = "t5.h";
  model.shapeType = "t5::Shape";
  constexpr std::int64_t most = 512; // published models were trained with texts of this length
  requireContext(options, most);
  const std::int64_t longest = std::min(options.context, most);
  std::size_t encoderCount = 0, decoderCount = 0;
  const std::string encoderDistances = distancesOf(buckets / 2, farthest, encoderCount),
                    decoderDistances = distancesOf(buckets, farthest, decoderCount);
  model.shape = {{"vocabulary", std::to_string(vocabulary)},
                 {"layers", std::to_string(layers)},
                 {"decoder_layers", std::to_string(decoderLayers)},
                 {"width", std::to_string(width)},
                 {"heads", std::to_string(heads)},
                 {"head", std::to_string(head)},
                 {"hidden", std::to_string(hidden)},
                 {"source", std::to_string(longest)},
                 {"target", std::to_string(longest)},
                 {"buckets", std::to_string(buckets)},
                 {"encoder_count", std::to_string(encoderCount)},
                 {"decoder_count", std::to_string(decoderCount)},
                 {"encoder_distances", encoderDistances},
                 {"decoder_distances", decoderDistances},
                 {"is_gated", isGated ? "true" : "false"},
                 {"is_tied", isTied ? "true" : "false"},
                 {"epsilon", shown(epsilon)}};
  model.type = "t5::Translator<shape>";
  model.program = "t5_main.cpp";
  model.words = {{"vocabulary", std::to_string(vocabulary)}, {"width", std::to_string(width)}};
  for (const char *part : {"encoder", "decoder"}) {
    model.renamings.push_back({fmt::format("{}.block.0.layer.0.SelfAttention.relative_attention_bias.weight", part),
                               {fmt::format("{}.distances.weight", part)}});
    model.renamings.push_back({fmt::format("{}.embed_tokens.weight", part), {}}); // a copy of the shared embedding
  }
  model.renamings.push_back({"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", {}}); // unused
  if (isTied)
    model.renamings.push_back({"lm_head.weight", {}});
  return model;
}

} // namespace

Family family() { return {.types = {"t5"}, .read = readT5, .isEncoderDecoder = true}; }

} // namespace kiln::newproject::t5
