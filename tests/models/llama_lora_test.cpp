// SPDX-License-Identifier: Apache-2.0
// LoRA adapters of examples/llama on the trained checkpoint in int8: they have no effect at first, all entries use them
// as soon as they are trained, and they are saved to a separate file. With batch-invariant libraries, results are
// compared bit for bit.
#include "llama/lora.h"
#include "llama_writer.hpp"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

namespace llama {
namespace {

using Logits = std::vector<float>;
const std::string folder = EXAMPLES "/llama/king_james";

/// Returns random numbers for one half of the adapters, the down or the up projections; zeros for the other half.
std::vector<std::byte> adapters(const char *half) {
  return make_adapters([&](const support::Tensor &tensor, std::span<float> values) {
    if (tensor.name.find(half) != tensor.name.npos)
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = 0.01f * static_cast<float>(i % 23) - 0.11f;
  });
}

/// Returns the logits after each piece of a text, and after one more token.
template <class Model> std::vector<Logits> read(const Model &model, support::Session &session) {
  std::vector<std::int32_t> text;
  std::vector<Logits> all;
  for (std::size_t piece : {1, 2, 5, 16, 31}) {
    for (std::size_t i = 0; i < piece; ++i)
      text.push_back(static_cast<std::int32_t>(7 * text.size() * text.size() % tuned_shape.vocabulary));
    const auto length = static_cast<std::int64_t>(text.size());
    Logits &logits = all.emplace_back(tuned_shape.vocabulary);
    session.check(model.prefill(session.call, length, {&text[text.size() - piece], piece}, logits.data()));
  }
  Logits &logits = all.emplace_back(tuned_shape.vocabulary);
  session.check(model.decode(session.call, static_cast<std::int64_t>(text.size()) + 1, text.data(), logits.data()));
  return all;
}

class LlamaLora : public ::testing::Test {
protected:
  void bind(std::span<const std::byte> image) { session.check(model.bind_adapters(folder, image, &session.error)); }
  /// Trains one step on one window.
  void train() {
    const std::vector<std::int32_t> tokens(tuned_shape.context, 17), targets(tuned_shape.context, 18);
    const float rate = 1e-2f;
    const std::int32_t step = 1;
    float loss, norm;
    session.check(llama_lora_begin_training(model.get(), session.call.arena, &session.error));
    session.check(model.train(session.call, {tokens.data(), 1}, {targets.data(), 1}, &rate, &step, &loss, &norm));
  }

  support::Session session{std::max(LLAMA_LORA_TRAIN_ARENA_BYTES(1), LLAMA_LORA_PREFILL_ARENA_BYTES(1))};
  TunedModel model;
};

TEST_F(LlamaLora, BeginsWithTheCheckpointToTheBit) {
  bind(adapters("lora_A"));
  llama_writer::Model checkpoint;
  session.check(checkpoint.bind((folder + "/model.safetensors").c_str(), &session.error));
  support::Session other(std::max(LLAMA_WRITER_PREFILL_ARENA_BYTES(1), LLAMA_WRITER_DECODE_ARENA_BYTES(1)));
  EXPECT_EQ(read(model, session), read(checkpoint, other));
}

TEST_F(LlamaLora, EntriesSeeWhatIsTrainedAtOnce) {
  bind(adapters("lora_A"));
  const std::vector<Logits> before = read(model, session);
  train();
  EXPECT_NE(read(model, session), before);
}

TEST_F(LlamaLora, FileHasTheAdaptersAlone) {
  bind(adapters("lora_A"));
  train();
  const std::string path = std::filesystem::temp_directory_path() / ("llama_lora_" + std::to_string(::getpid()));
  session.check(model.save_weights(path.c_str(), &session.error));
  const std::string saved = support::read_file(path);
  std::filesystem::remove(path);
  EXPECT_EQ(saved.size(), adapters("").size());
  const std::vector<Logits> expected = read(model, session);
  bind(adapters("lora_B"));
  EXPECT_NE(read(model, session), expected);
  bind(std::as_bytes(std::span(saved)));
  EXPECT_EQ(read(model, session), expected);
}

TEST_F(LlamaLora, CheckpointAloneLacksThem) {
  EXPECT_EQ(model.bind_adapters(folder, {}, &session.error), KILN_WEIGHT_MISSING);
  EXPECT_NE(std::string(session.error.message).find("lora_A"), std::string::npos) << session.error.message;
}

} // namespace
} // namespace llama
