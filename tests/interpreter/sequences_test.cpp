// SPDX-License-Identifier: Apache-2.0
// Loops over time and states between calls, compared with PyTorch in f64.
#include "traced.h"

#include "captions/captions.h"
#include "char_gpt/vocabulary.h"
#include "kiln/generator.h"

namespace recurrent {
#include "recurrent.cpp"
}
namespace char_lstm {
#include "char_lstm/spec.cpp"
}

namespace kiln::interpreter {
namespace {

using testing::Golden;

TEST(Recurrent, AgreesWithPyTorch) {
  const Golden golden("recurrent.safetensors");
  Traced<> model(trace<recurrent::Model>());
  struct Layer {
    const char *name;
    std::int64_t passes;
    std::vector<const char *> outputs;
  };
  const Layer layers[] = {
      {"rnn", 1, {".y", ".h"}}, {"relu", 2, {".y", ".h"}}, {"lstm", 4, {".y", ".h", ".c"}}, {"gru", 2, {".y", ".h"}}};
  for (auto [steps, batch] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {7, 3}, {33, 1}})
    for (const Layer &layer : layers) {
      const std::string size = ".T" + std::to_string(steps) + "B" + std::to_string(batch);
      SCOPED_TRACE(layer.name + size);
      const Extents extents{{"steps", steps}, {"batch", batch}};
      const Tensor x = uniform("x", {steps, batch, 5});
      std::vector<Tensor> padded{x, integers({batch}, golden.integers(size.substr(1) + ".lengths")),
                                 uniform("h", {layer.passes, batch, 7})};
      if (layer.outputs.size() == 3)
        padded.push_back(uniform("c", {layer.passes, batch, 7}));
      const std::vector<Tensor> whole = model.run(layer.name, extents, {x});
      const std::string other = layer.name + std::string("_padded");
      const std::vector<Tensor> ended = model.run(other, extents, padded);
      for (std::size_t i = 0; i < layer.outputs.size(); ++i) {
        EXPECT_LE(testing::relativeError(rounded(whole[i]), golden.floats(layer.name + size + layer.outputs[i])),
                  goldenTolerance);
        EXPECT_LE(testing::relativeError(rounded(ended[i]), golden.floats(other + size + layer.outputs[i])),
                  goldenTolerance);
        EXPECT_GE(tightShare(ended[i]), steps < 10 ? 0.9 : 0);
      }
    }
}

std::vector<float> &append(std::vector<float> &all, const Tensor &more) {
  all.insert(all.end(), more.values.begin(), more.values.end());
  return all;
}

// Each call continues from the state of the previous one.
TEST(States, CharLstmGoesOn) {
  const Golden golden("char_lstm.safetensors");
  Traced<> model(trace<char_lstm::Model>());
  const auto characters = static_cast<std::int32_t>(char_gpt::vocabulary.size());
  const Tensor text = tokens("tokens", {300}, characters);
  std::vector<float> all;
  std::int64_t done = 0;
  for (std::int64_t part : {1, 37, 256, 1, 5}) {
    const Tensor some = Tensor::of(ElementType::i32, {part}, {&text.values[done], &text.values[done] + part});
    append(all, model.run("forward", {{"tokens", part}}, {some})[0]);
    done += part;
  }
  EXPECT_LE(golden.error("T300.logits", all), goldenTolerance);
  EXPECT_EQ(model.interpreter.states.size(), 2u);
}

// A scan whose body has attention, stored features, and a lookup of a sampled position.
TEST(States, CaptionsSeeStepByStep) {
  using Model = captions::Recurrent<captions::Convolved, 32, 128, 64>;
  const Golden golden("captions_recurrent.safetensors");
  Traced<> model(trace<Model>());
  const Tensor image = uniform("image", {56, 56}), sentence = tokens("sentence", {4}, 26);
  const std::vector<Tensor> atOnce = model.run("forward", {{"words", 4}}, {image, sentence});
  EXPECT_LE(golden.error("T4.logits", rounded(atOnce[0])), goldenTolerance);
  EXPECT_LE(golden.error("T4.seen", rounded(atOnce[1])), goldenTolerance);
  EXPECT_LE(golden.error("T4.memory", rounded(model.run("look", {}, {image})[0])), goldenTolerance);
  std::vector<float> logits, seen;
  for (double word : sentence.values) {
    const std::vector<Tensor> y = model.run("step", {}, {Tensor::of(ElementType::i32, {1}, {word})});
    append(logits, y[0]);
    append(seen, y[1]);
  }
  EXPECT_LE(golden.error("T4.logits", logits), goldenTolerance);
  EXPECT_LE(golden.error("T4.seen", seen), goldenTolerance);

  // Hard attention: the same positions are sampled, and are determined.
  model.run("look", {}, {image});
  const Tensor words = tokens("sentence", {11}, 26), all = uniform("uniform", {11, 196});
  std::vector<std::int32_t> places;
  std::vector<float> written;
  for (std::int64_t i = 0; i < 11; ++i) {
    Tensor draws = Tensor::zeros(ElementType::f32, {1, 196});
    for (std::int64_t k = 0; k < 196; ++k)
      draws.values[k] = static_cast<float>(all.values[i * 196 + k]) / 2 + 0.5f;
    const std::vector<Tensor> y =
        model.run("glance", {}, {Tensor::of(ElementType::i32, {1}, {words.values[i]}), draws});
    append(written, y[0]);
    places.push_back(static_cast<std::int32_t>(y[1].values[0]));
  }
  EXPECT_EQ(places, golden.integers("glance.place"));
  EXPECT_LE(golden.error("glance.logits", written), goldenTolerance);
}

// Keys and values are appended in each call.
TEST(States, CaptionsAppendKeysAndValues) {
  using Model = captions::Transformer<captions::Patched, 3, 4>;
  const Golden golden("captions_from_pixels.safetensors");
  Traced<> model(trace<Model>());
  const Tensor image = uniform("image", {56, 56}), sentence = tokens("sentence", {4}, 26);
  const std::vector<Tensor> atOnce = model.run("forward", {{"words", 4}}, {image, sentence});
  EXPECT_LE(golden.error("T4.logits", rounded(atOnce[0])), goldenTolerance);
  model.run("look", {}, {image});
  std::vector<float> logits;
  for (std::int64_t i = 0; i < 4; ++i)
    append(logits, model.run("step", {{"words", 1}, {"context", i + 1}},
                             {Tensor::of(ElementType::i32, {1}, {sentence.values[i]})})[0]);
  EXPECT_LE(golden.error("T4.logits", logits), goldenTolerance);
}

} // namespace
} // namespace kiln::interpreter
