// SPDX-License-Identifier: Apache-2.0
//
// A small Transformer in f16 and in bf16 compared with the interpreter in f64: within the interpreter's bounds, which
// allow each op to round its result once or to leave it in f32, and within a tolerance for the type. Weights of these
// types take 16 bits each.
#include "half_blocks.h"
#include "half_floats.h"
#include "session.h"
#include "specs/half_blocks.h"
#include "support.h"
#include "tests/interpreter/traced.h"

#include <numeric>

namespace kiln::testing {
namespace {

using interpreter::SampledInterpreter;

constexpr std::int64_t vocabulary = 53, most = HALF_BLOCKS_STEP_HALF_CONTEXT_MAX;

Session<half_blocks_t> &session() {
  static Session<half_blocks_t> only(KILN_TEST_LIBRARY(half_blocks, HALF_BLOCKS_WEIGHTS));
  return only;
}

/// An element type, and the tolerance of logits relative to the largest one: at most three times the measured error,
/// 7.0e-4 (M-1060) and 7.2e-3 (M-1061)
struct Type {
  const char *name;
  double tolerance;
  float (*number)(std::uint16_t);
  decltype(&half_blocks_all_half) all;
  decltype(&half_blocks_step_half) step;
};
const Type types[] = {{"half", 2e-3, from_f16, half_blocks_all_half, half_blocks_step_half},
                      {"bfloat", 2e-2, from_bf16, half_blocks_all_bfloat, half_blocks_step_bfloat}};

std::vector<float> numbersOf(const Type &type, std::span<const std::uint16_t> bits) {
  std::vector<float> numbers;
  for (std::uint16_t each : bits)
    numbers.push_back(type.number(each));
  return numbers;
}

/// Returns the largest difference relative to the largest number.
double error(const interpreter::Tensor &expected, const std::vector<float> &actual) {
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    largest = std::max(largest, std::abs(expected.values[i]));
    difference = std::max(difference, std::abs(actual[i] - expected.values[i]));
  }
  return difference / largest;
}

TEST(HalfBlocks, AgreeWithTheInterpreter) {
  interpreter::Traced<SampledInterpreter> oracle(trace<specs::HalfBlocks>());
  for (const Type &type : types)
    for (std::int64_t tokens : {std::int64_t{1}, std::int64_t{7}, most}) {
      SCOPED_TRACE(std::string(type.name) + " " + std::to_string(tokens));
      const Input input(counterTokens("tokens", tokens, vocabulary));
      Output<std::uint16_t> logits(tokens * vocabulary);
      session().run(type.all, tokens, input, logits);
      const interpreter::Tensor expected = oracle.run(std::string("all_") + type.name, {{"tokens", tokens}},
                                                      {interpreter::integers({tokens}, input.values)})[0];
      const std::vector<float> got = numbersOf(type, logits.values());
      const interpreter::Comparison comparison = interpreter::compare(expected, std::span(got));
      EXPECT_TRUE(comparison.isRight) << describe(comparison);
      EXPECT_EQ(comparison.undetermined, 0U);
      EXPECT_LE(error(expected, got), type.tolerance);
    }
}

// Keys and values are states of the 16-bit type, to which each call appends.
TEST(HalfBlocks, GoOnFromCallToCall) {
  for (const Type &type : types) {
    SCOPED_TRACE(type.name);
    const std::vector<std::int32_t> text = counterTokens("text", most, vocabulary);
    Output<std::uint16_t> whole(most * vocabulary);
    session().run(type.all, most, Input(text), whole);
    const std::vector<float> expected = numbersOf(type, whole.values());
    const float largest = *std::max_element(expected.begin(), expected.end());
    Conversation<half_blocks_t> talk(
        session(), 1, HALF_BLOCKS_STATE_BYTES,
        std::max(HALF_BLOCKS_STEP_HALF_ARENA_BYTES(1), HALF_BLOCKS_STEP_BFLOAT_ARENA_BYTES(1)));
    std::int64_t done = 0;
    for (std::int64_t part : {std::int64_t{5}, std::int64_t{1}, std::int64_t{1}, std::int64_t{12}, most - 19}) {
      const Input<std::int32_t> next(std::vector(text.begin() + done, text.begin() + done + part));
      Output<std::uint16_t> logits(part * vocabulary);
      done += part;
      talk.run(type.step, part, done, next, logits);
      const std::vector<float> got = numbersOf(type, logits.values());
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], expected[(done - part) * vocabulary + i], type.tolerance * largest) << done << " " << i;
    }
  }
}

TEST(HalfBlocks, WeightsTakeTwoBytes) {
  std::size_t elements = 0;
  for (const Weight &weight : counterWeights(session().functions().weights)) {
    elements += weight.values.size();
    EXPECT_EQ(weight.type, weight.name.starts_with("half.") ? "f16" : "bf16");
  }
  EXPECT_GE(HALF_BLOCKS_WEIGHT_BYTES, 2 * elements);
  EXPECT_LE(HALF_BLOCKS_WEIGHT_BYTES, 3 * elements) << "tiles are padded, and each weight begins a line";
}

// F32 values of the file are rounded at bind time; a value that is too large for f16 is refused.
TEST(HalfBlocks, WeightsOfF32AreRounded) {
  std::vector<Weight> weights = counterWeights(session().functions().weights);
  for (Weight &weight : weights)
    weight.type = "f32";
  Session<half_blocks_t> rounding(KILN_TEST_LIBRARY(half_blocks, HALF_BLOCKS_WEIGHTS), weights);
  const Input tokens(counterTokens("tokens", 7, vocabulary));
  Output<std::uint16_t> expected(7 * vocabulary), logits(7 * vocabulary);
  session().run(half_blocks_all_half, 7, tokens, expected);
  rounding.run(half_blocks_all_half, 7, tokens, logits);
  EXPECT_TRUE(std::ranges::equal(logits.values(), expected.values()));

  auto half = std::find_if(weights.begin(), weights.end(), [](const Weight &w) { return w.name.starts_with("half."); });
  half->values.back() = 65520;
  const WeightImage large(weights);
  half_blocks_t *model = nullptr;
  kiln_error_t error{};
  ASSERT_EQ(half_blocks_create(nullptr, &model, &error), KILN_OK) << error.message;
  EXPECT_EQ(half_blocks_bind_weights_from_memory(model, large.data(), large.size(), &error), KILN_WEIGHT_VALUE);
  EXPECT_NE(std::string(error.message).find("value does not fit; expected one of F16, got 65520 at"), std::string::npos)
      << error.message;
  half_blocks_destroy(model);
}

} // namespace
} // namespace kiln::testing
