// SPDX-License-Identifier: Apache-2.0
//
// Initial weights: the distributions of torch.nn's layers, and the bits that runtime/src/training/initialise.c
// promises, compared with a second implementation of its comment.
#include "compiled.h"
#include "compiler/interpreter/Philox.h"
#include "ops.h"

#include <cmath>

namespace specs {
namespace {

/// A layer of each kind, in a stack where that matters.
struct Block : kiln::Layer<Block> {
  using kiln::Layer<Block>::Layer;
  kiln::LayerNorm<8> norm{"norm"};
  kiln::Linear<8, 8> up{"up"};
  constexpr auto forward(const kiln::tensor auto &x) const { return x + up(norm(x)); }
};

struct Initialised : kiln::Model {
  using Image = kiln::Tensor<f32, 1, 6, 6, 4>;
  kiln::Embedding<200, 8> words{"words"};
  kiln::Stack<2, Block> h{"h"};
  kiln::Conv2d<4, 6, 3, kiln::Conv2dOptions{.groups = 2}> conv{"conv"};
  kiln::ConvTranspose2d<6, 4, 2> back{"back"};
  kiln::BatchNorm2d<4> batch{"batch"};
  kiln::GroupNorm<2, 4> group{"group"};
  kiln::RmsNorm<8> rms{"rms"};
  kiln::Gru<8, 16> gru{"gru"};
  kiln::Linear<300, 300, false, kiln::WeightOrder::in_out> wide{"wide"};

  constexpr auto loss(kiln::Tensor<i32, 5> tokens, Image image, kiln::Tensor<f32, 2, 300> rows) const {
    auto x = rms(h(words(tokens)));
    auto own = kiln::parameter<f32, 8>(x, "own.normal", kiln::Initial::normal(0.02));
    auto shaped = kiln::parameter<f32, 3, 8>(x, "own.shaped");
    auto vector = kiln::parameter<f32, 8>(x, "own.vector");
    auto constant = kiln::parameter<f32, 8>(x, "own.constant", kiln::Initial::constant(0.5));
    auto mixed = kiln::linear(x * own + vector * constant, shaped);
    auto [outputs, last] = gru(kiln::reshape<5, 1, 8>(x));
    return total(mixed) + total(outputs) + total(group(batch(back(conv(image))))) + total(wide(rows));
  }
  static constexpr auto entries() {
    return std::tuple{kiln::train("train", &Initialised::loss, {"tokens", "image", "rows"}, {"loss"}, kiln::Sgd{})};
  }
};

} // namespace
} // namespace specs

namespace kiln::testing {
namespace {

using fuzz::CompiledModel;

class Initialise : public ::testing::Test {
protected:
  void SetUp() override {
    llvm::Error unbound = compiled.bind(model.weights);
    ASSERT_FALSE(unbound) << llvm::toString(std::move(unbound));
    initialise(seed);
  }
  void initialise(std::uint64_t from) {
    llvm::Error failed = compiled.initialise(from);
    ASSERT_FALSE(failed) << llvm::toString(std::move(failed));
  }
  std::vector<double> read(const std::string &name) {
    llvm::Expected<Tensor> tensor = compiled.read(name, model.weights.at(name).shape);
    EXPECT_TRUE(static_cast<bool>(tensor)) << llvm::toString(tensor.takeError());
    return tensor->values;
  }
  /// Expects all elements within the bound, some near it, and the mean and standard deviation of the distribution, to
  /// four standard errors.
  void expectUniform(const std::string &name, double products) {
    const double bound = 1 / std::sqrt(products);
    const std::vector<double> values = read(name);
    double most = 0;
    for (double value : values)
      most = std::max(most, std::abs(value));
    EXPECT_LE(most, static_cast<float>(bound)) << name;
    expectMoments(name, values, bound / std::sqrt(3));
  }
  static void expectMoments(const std::string &name, const std::vector<double> &values, double deviation) {
    double sum = 0, squares = 0;
    for (double value : values)
      sum += value, squares += value * value;
    const auto count = static_cast<double>(values.size());
    EXPECT_NEAR(sum / count, 0, 4 * deviation / std::sqrt(count)) << name;
    EXPECT_NEAR(std::sqrt(squares / count) / deviation, 1, 4 / std::sqrt(count)) << name;
  }
  void expectAll(const std::string &name, double expected) {
    for (double value : read(name))
      EXPECT_EQ(value, expected) << name;
  }

  static constexpr std::uint64_t seed = 0x123456789abcdef;
  Differentiated model{trace<specs::Initialised>(), 1};
  CompiledModel &compiled = libraryOf<specs::Initialised>();
};

TEST_F(Initialise, ByTheRulesOfPyTorchsLayers) {
  const std::string names[] = {"h.0.", "h.1."};
  for (const std::string &layer : names) {
    expectUniform(layer + "up.weight", 8);
    expectUniform(layer + "up.bias", 8);
    expectAll(layer + "norm.weight", 1);
    expectAll(layer + "norm.bias", 0);
  }
  EXPECT_NE(read("h.0.up.weight"), read("h.1.up.weight"));
  expectUniform("conv.weight", 2 * 3 * 3);
  expectUniform("conv.bias", 2 * 3 * 3);
  expectUniform("back.weight", 4 * 2 * 2);
  expectUniform("wide.weight", 300);
  for (const char *name : {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"})
    expectUniform(std::string("gru.") + name, 16);
  expectMoments("words.weight", read("words.weight"), 1);
  for (const char *name : {"batch.weight", "batch.running_var", "group.weight", "rms.weight"})
    expectAll(name, 1);
  for (const char *name : {"batch.bias", "batch.running_mean", "group.bias", "own.vector"})
    expectAll(name, 0);
  expectUniform("own.shaped", 8);
  expectMoments("own.normal", read("own.normal"), 0.02);
  expectAll("own.constant", 0.5);
}

/// Returns the two numbers in (-1, 1) for an element's random words.
std::array<double, 2> numbersOf(const std::string &name, std::uint64_t index, std::uint32_t attempt,
                                std::uint64_t seed) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (unsigned char letter : name)
    digest = (digest ^ letter) * 0x100000001b3;
  const auto words = interpreter::philox({static_cast<std::uint32_t>(index), attempt << 24,
                                          static_cast<std::uint32_t>(digest), static_cast<std::uint32_t>(digest >> 32)},
                                         {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  auto number = [](std::uint32_t word) { return (2.0 * (word >> 8) + 1) / 0x1p24 - 1; };
  return {number(words[0]), number(words[1])};
}

TEST_F(Initialise, FollowsFromSeedAndNames) {
  const std::vector<double> uniform = read("h.1.up.weight"), normal = read("words.weight");
  const float bound = 1 / std::sqrt(8.0);
  for (std::size_t i = 0; i < uniform.size(); ++i)
    EXPECT_EQ(uniform[i], static_cast<float>(double(bound) * numbersOf("h.1.up.weight", i, 0, seed)[0])) << i;
  for (std::size_t i = 0; i < normal.size(); ++i) {
    std::array<double, 2> at{};
    double square = 1;
    for (std::uint32_t attempt = 0; square >= 1; ++attempt) {
      at = numbersOf("words.weight", i, attempt, seed);
      square = at[0] * at[0] + at[1] * at[1];
    }
    // Square roots and logarithms of the C library may differ in the last bits of f64, far below the precision of f32.
    const double expected = at[0] * std::sqrt(-2 * std::log(square) / square);
    EXPECT_NEAR(normal[i], expected, std::abs(expected) * 0x1p-24 + 1e-30) << i;
  }
  initialise(seed + 1);
  EXPECT_NE(read("words.weight"), normal);
  initialise(seed);
  EXPECT_EQ(read("words.weight"), normal);
}

} // namespace
} // namespace kiln::testing
