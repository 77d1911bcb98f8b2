// SPDX-License-Identifier: Apache-2.0
// Models of examples/ that decode token by token: with the counter's weights compared with PyTorch in f64, one token
// per call, and all tokens in one call for models with such an entry.
#include "captions_from_pixels.h"
#include "captions_recurrent.h"
#include "captions_transformer.h"
#include "captions_vgg.h"
#include "char_gpt/vocabulary.h"
#include "char_lstm.h"
#include "golden.h"
#include "names_fixed.h"
#include "names_recurrent.h"
#include "names_transformer.h"
#include "session.h"
#include "support.h"

namespace kiln::testing {
namespace {

/// The tolerance relative to the f64 oracle: at most three times the measured error, 2.4e-6.
constexpr double modelTolerance = 7e-6;

/// Outputs of the steps, concatenated, for comparison with those of PyTorch.
struct Written {
  std::vector<float> logits, seen;

  void add(const Output<float> &someLogits, const Output<float> &someSeen) {
    logits.insert(logits.end(), someLogits.values().begin(), someLogits.values().end());
    seen.insert(seen.end(), someSeen.values().begin(), someSeen.values().end());
  }
  void expect(const Golden &golden, const std::string &prefix) const {
    EXPECT_LE(golden.error(prefix + ".logits", logits), modelTolerance);
    EXPECT_LE(golden.error(prefix + ".seen", seen), modelTolerance);
  }
};

struct Lengths {
  std::int64_t source, target;
};
constexpr Lengths lengths[] = {{1, 1}, {7, 5}, {NAMES_RECURRENT_FORWARD_SOURCE_TOKENS_MAX, 41}};

/// Returns tokens of names; 0 is padding.
std::vector<std::int32_t> nameTokens(const char *name, std::int64_t count) {
  std::vector<std::int32_t> tokens = counterTokens(name, count, 383);
  for (std::int32_t &token : tokens)
    ++token;
  return tokens;
}

template <class Handle, class Encode, class Step>
void expectNames(Conversation<Handle> &&talk, const Golden &golden, const Lengths &n, std::int64_t width, Encode encode,
                 Step step) {
  const std::string prefix = "S" + std::to_string(n.source) + "T" + std::to_string(n.target);
  SCOPED_TRACE(prefix);
  Output<float> memory(n.source * width), logits(384), seen(n.source);
  talk.run(encode, n.source, Input(nameTokens("source", n.source)), memory);
  EXPECT_LE(golden.error(prefix + ".memory", memory.values()), modelTolerance);
  Written written;
  for (std::int32_t token : nameTokens("target", n.target)) {
    const Input<std::int32_t> given({token});
    if constexpr (std::is_invocable_v<Step, const Handle *, const kiln_call_t *, std::int64_t, const std::int32_t *,
                                      float *, float *>)
      talk.run(step, n.source, given, logits, seen);
    else
      talk.run(step, n.source, static_cast<std::int64_t>(written.logits.size() / 384 + 1), given, logits, seen);
    written.add(logits, seen);
  }
  written.expect(golden, prefix);
}

TEST(Names, RecurrentAgreesWithPyTorch) {
  const Golden golden("names_recurrent.safetensors");
  Session<names_recurrent_t> session(KILN_TEST_LIBRARY(names_recurrent, NAMES_RECURRENT_WEIGHTS));
  for (const Lengths &n : lengths) {
    expectNames(Conversation<names_recurrent_t>(
                    session, 2, NAMES_RECURRENT_STATE_BYTES,
                    std::max(NAMES_RECURRENT_ENCODE_ARENA_BYTES(2), NAMES_RECURRENT_STEP_ARENA_BYTES(2))),
                golden, n, 256, names_recurrent_encode, names_recurrent_step);
    Output<float> logits(n.target * 384), seen(n.target * n.source);
    session.run(names_recurrent_forward, n.source, n.target, Input(nameTokens("source", n.source)),
                Input(nameTokens("target", n.target)), logits, seen);
    Written written;
    written.add(logits, seen);
    written.expect(golden, "S" + std::to_string(n.source) + "T" + std::to_string(n.target));
  }
}

TEST(Names, FixedAgreesWithPyTorch) {
  const Golden golden("names_fixed.safetensors");
  Session<names_fixed_t> session(KILN_TEST_LIBRARY(names_fixed, NAMES_FIXED_WEIGHTS));
  for (const Lengths &n : lengths) {
    Output<float> logits(n.target * 384);
    session.run(names_fixed_forward, n.source, n.target, Input(nameTokens("source", n.source)),
                Input(nameTokens("target", n.target)), logits);
    const std::string prefix = "S" + std::to_string(n.source) + "T" + std::to_string(n.target);
    EXPECT_LE(golden.error(prefix + ".logits", logits.values()), modelTolerance);
  }
}

TEST(Names, TransformerAgreesWithPyTorch) {
  const Golden golden("names_transformer.safetensors");
  Session<names_transformer_t> session(KILN_TEST_LIBRARY(names_transformer, NAMES_TRANSFORMER_WEIGHTS));
  for (const Lengths &n : lengths)
    expectNames(Conversation<names_transformer_t>(
                    session, 2, NAMES_TRANSFORMER_STATE_BYTES,
                    std::max(NAMES_TRANSFORMER_ENCODE_ARENA_BYTES(2), NAMES_TRANSFORMER_STEP_ARENA_BYTES(2))),
                golden, n, 128, names_transformer_encode, names_transformer_step);
}

std::vector<float> image() { return counterValues("image", 56 * 56); }

TEST(Captions, VggAgreesWithPyTorch) {
  const Golden golden("captions_vgg.safetensors");
  Session<captions_vgg_t> session(KILN_TEST_LIBRARY(captions_vgg, CAPTIONS_VGG_WEIGHTS));
  for (std::int64_t count : {1, 11}) {
    Output<float> logits(count * 26);
    session.run(captions_vgg_forward, count, Input(image()), Input(counterTokens("sentence", count, 26)), logits);
    EXPECT_LE(golden.error("T" + std::to_string(count) + ".logits", logits.values()), modelTolerance);
  }
}

/// Runs the image once, then the sentence in one call and word by word.
template <class Handle, class Forward, class Look, class Step>
void expectCaptions(Session<Handle> &&session, std::size_t stateBytes, std::size_t arenaBytes, const std::string &file,
                    std::int64_t places, Forward forward, Look look, Step step) {
  const Golden golden(file);
  const Input pixels(image());
  for (std::int64_t count : {1, 4, 11}) {
    const std::string prefix = "T" + std::to_string(count);
    SCOPED_TRACE(file + " " + prefix);
    const std::vector<std::int32_t> sentence = counterTokens("sentence", count, 26);
    Output<float> allLogits(count * 26), allSeen(count * places);
    session.run(forward, count, pixels, Input(sentence), allLogits, allSeen);
    Written atOnce, written;
    atOnce.add(allLogits, allSeen);
    atOnce.expect(golden, prefix);

    Conversation<Handle> talk(session, 2, stateBytes, arenaBytes);
    Output<float> memory(places * 64), logits(26), seen(places);
    talk.run(look, pixels, memory);
    EXPECT_LE(golden.error(prefix + ".memory", memory.values()), modelTolerance);
    for (std::int32_t word : sentence) {
      const Input<std::int32_t> given({word});
      if constexpr (std::is_invocable_v<Step, const Handle *, const kiln_call_t *, const std::int32_t *, float *,
                                        float *>)
        talk.run(step, given, logits, seen);
      else
        talk.run(step, static_cast<std::int64_t>(written.logits.size() / 26 + 1), given, logits, seen);
      written.add(logits, seen);
    }
    written.expect(golden, prefix);
  }
}

#define EXPECT_CAPTIONS(name, NAME, places)                                                                            \
  expectCaptions(Session<name##_t>(KILN_TEST_LIBRARY(name, NAME##_WEIGHTS)), NAME##_STATE_BYTES,                       \
                 std::max(NAME##_LOOK_ARENA_BYTES(2), NAME##_STEP_ARENA_BYTES(2)), #name ".safetensors", places,       \
                 name##_forward, name##_look, name##_step)

TEST(Captions, RecurrentAgreesWithPyTorch) { EXPECT_CAPTIONS(captions_recurrent, CAPTIONS_RECURRENT, 14 * 14); }
// Hard attention: the same positions are sampled, so the same words follow.
TEST(Captions, RecurrentGlances) {
  const Golden golden("captions_recurrent.safetensors");
  Session<captions_recurrent_t> session(KILN_TEST_LIBRARY(captions_recurrent, CAPTIONS_RECURRENT_WEIGHTS));
  Conversation<captions_recurrent_t> talk(
      session, 2, CAPTIONS_RECURRENT_STATE_BYTES,
      std::max(CAPTIONS_RECURRENT_LOOK_ARENA_BYTES(2), CAPTIONS_RECURRENT_GLANCE_ARENA_BYTES(2)));
  Output<float> memory(196 * 64), logits(26);
  Output<std::int32_t> place(1);
  talk.run(captions_recurrent_look, Input(image()), memory);
  std::vector<float> written;
  std::vector<std::int32_t> places;
  for (std::int32_t word : counterTokens("sentence", 11, 26)) {
    std::vector<float> uniform(196);
    for (std::size_t i = 0; i < uniform.size(); ++i)
      uniform[i] = counter_uniform("uniform", places.size() * uniform.size() + i) / 2 + 0.5f;
    talk.run(captions_recurrent_glance, Input<std::int32_t>({word}), Input(uniform), logits, place);
    written.insert(written.end(), logits.values().begin(), logits.values().end());
    places.push_back(place.values()[0]);
  }
  EXPECT_EQ(places, golden.integers("glance.place"));
  EXPECT_LE(golden.error("glance.logits", written), modelTolerance);
}

TEST(Captions, TransformerAgreesWithPyTorch) { EXPECT_CAPTIONS(captions_transformer, CAPTIONS_TRANSFORMER, 14 * 14); }
TEST(Captions, FromPixelsAgreesWithPyTorch) { EXPECT_CAPTIONS(captions_from_pixels, CAPTIONS_FROM_PIXELS, 8 * 8); }

// The next call continues with the state of the previous one.
TEST(CharLstm, AgreesWithPyTorch) {
  const Golden golden("char_lstm.safetensors");
  Session<char_lstm_t> session(KILN_TEST_LIBRARY(char_lstm, CHAR_LSTM_WEIGHTS));
  const auto characters = static_cast<std::int64_t>(char_gpt::vocabulary.size());
  const std::vector<std::int32_t> text = counterTokens("tokens", 300, static_cast<std::int32_t>(characters));
  Conversation<char_lstm_t> talk(session, 2, CHAR_LSTM_STATE_BYTES, CHAR_LSTM_FORWARD_ARENA_BYTES(2));
  std::vector<float> all;
  std::int64_t done = 0;
  for (std::int64_t part : {1, 37, 256, 1, 5}) {
    Output<float> logits(part * characters);
    talk.run(char_lstm_forward, part, Input(std::vector(text.begin() + done, text.begin() + done + part)), logits);
    all.insert(all.end(), logits.values().begin(), logits.values().end());
    done += part;
  }
  EXPECT_LE(golden.error("T300.logits", all), modelTolerance);
}

} // namespace
} // namespace kiln::testing
