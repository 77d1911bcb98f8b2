// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Family.h"

#include <fmt/format.h>

namespace kiln::newproject::whisper {

namespace {

/// Returns the encoder or the decoder as a whisper::Tower.
std::string readTower(Fields &fields, const std::string &part, std::int64_t width, std::int64_t &layers) {
  layers = fields.whole(part + "_layers", 1, mostLayers);
  const std::string key = part + "_attention_heads";
  const std::int64_t heads = fields.whole(key, 1, mostWidth), hidden = fields.whole(part + "_ffn_dim", 1, mostWidth);
  requireHeads(fields, key, width, heads);
  return fmt::format("{{.layers = {}, .heads = {}, .hidden = {}}}", layers, heads, hidden);
}

/// The program computes the frames with the parameters of all published checkpoints; checks that these are the same.
void checkFrames(const Options &options, std::int64_t bins) {
  const auto file = options.folder / "preprocessor_config.json";
  if (!std::filesystem::exists(file))
    return;
  Fields fields = Fields::read(file.string());
  fields.only("feature_size", bins);
  fields.only("hop_length", 160);
  fields.only("n_fft", 400);
  fields.only("sampling_rate", 16000);
}

Model readWhisper(Fields &fields, const Tensors &tensors, const Options &options) {
  if (architecture(fields, "WhisperForConditionalGeneration") != "WhisperForConditionalGeneration")
    fields.refuse("architectures", "WhisperForConditionalGeneration");
  const std::int64_t vocabulary = fields.whole("vocab_size", 1, mostRows),
                     width = fields.whole("d_model", 1, mostWidth), bins = fields.whole("num_mel_bins", 1, 512, 80),
                     source = fields.whole("max_source_positions", 1, mostRows, 1500),
                     target = fields.whole("max_target_positions", 1, mostRows, 448);
  std::int64_t layers = 0;
  const std::string encoder = readTower(fields, "encoder", width, layers),
                    decoder = readTower(fields, "decoder", width, layers);
  fields.choice("activation_function", {"gelu"}, "gelu");
  fields.only("scale_embedding", false);
  fields.only("tie_word_embeddings", true);
  fields.ignore({"activation_dropout", "apply_spec_augment", "classifier_proj_size", "decoder_layerdrop",
                 "decoder_start_token_id", "dropout", "encoder_layerdrop", "forced_decoder_ids", "init_std",
                 "mask_feature_length", "mask_feature_min_masks", "mask_feature_prob", "mask_time_length",
                 "mask_time_min_masks", "mask_time_prob", "median_filter_width", "num_hidden_layers",
                 "use_weighted_layer_sum"});
  checkFrames(options, bins);

  tensors.require("model.encoder.conv1.weight", {width, bins, 3});
  tensors.require("model.encoder.embed_positions.weight", {source, width});
  tensors.require("model.decoder.embed_tokens.weight", {vocabulary, width});
  tensors.require("model.decoder.embed_positions.weight", {target, width});
  tensors.require(fmt::format("model.decoder.layers.{}.encoder_attn.k_proj.weight", layers - 1), {width, width});

  Model model;
  model.header = "whisper.h";
  model.shapeType = "whisper::Shape";
  model.shape = {{"vocabulary", std::to_string(vocabulary)},
                 {"width", std::to_string(width)},
                 {"bins", std::to_string(bins)},
                 {"encoder", encoder},
                 {"decoder", decoder},
                 {"source", std::to_string(source)},
                 {"target", std::to_string(target)}};
  model.type = "whisper::Whisper<shape>";
  model.program = "whisper_main.cpp";
  model.words = {{"bins", std::to_string(bins)},
                 {"source", std::to_string(source)},
                 {"width", std::to_string(width)},
                 {"vocabulary", std::to_string(vocabulary)}};
  model.renamings = {{"proj_out.weight", {}}}; // a copy of the embedding
  keepLearnedContext(model, target, options);
  return model;
}

} // namespace

Family family() { return {.types = {"whisper"}, .read = readWhisper, .isEncoderDecoder = true}; }

} // namespace kiln::newproject::whisper
