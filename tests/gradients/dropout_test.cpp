// SPDX-License-Identifier: Apache-2.0
//
// Dropout in training entries compared with loops in f64, which share only the random numbers; these are compared with
// the published ones. Also stopped and truncated gradients.
#include "compiled.h"
#include "compiler/interpreter/Philox.h"
#include "dropped.h"
#include "tests/targets/RunnableTargets.h"

namespace kiln::testing {
namespace {

using interpreter::DropoutPlace;
using interpreter::philox;

/// The test vectors that the authors publish with their code (kat_vectors).
TEST(Philox, KnownAnswers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

/// Returns x, then step and seed for entries with dropout.
std::vector<Tensor> inputsOf(Differentiated &model, const Entry &entry, std::int64_t rows) {
  const std::string name = entry.name;
  auto ones = [](std::vector<std::int64_t> shape, std::size_t count) {
    return Tensor::of(ElementType::f32, std::move(shape), std::vector<double>(count, 1));
  };
  std::vector<Tensor> inputs{name == "ones"    ? ones({64, 64}, 4096)
                             : name == "twice" ? ones({2, 64, 64}, 8192)
                                               : draw({rows, 4}, model.random)};
  if (name == "dropped" || name == "recomputed" || name == "rounded" || name == "ones" || name == "twice") {
    inputs.push_back(integers({}, {17}));
    inputs.push_back(integers({}, {-123456789}));
  }
  return inputs;
}

using Row = std::array<double, 4>;

/// Dropped::loss, with a dropout mask that depends on the element's index, a stream and an iteration.
class Reference {
public:
  Reference(const Differentiated &model, const std::vector<Tensor> &inputs)
      : model(model), x(inputs[0]), step(bitsOf(inputs[1])), seed(bitsOf(inputs[2])) {}

  double loss() const {
    const std::int64_t rows = x.shape[0];
    Row state{};
    double sum = 0;
    for (std::int64_t r = 0; r < rows; ++r)
      for (int c = 0; c < 4; ++c) {
        const double once = dropped(x.values[r * 4 + c], r * 4 + c, 0, 0, 0.5) * weight("scale", c);
        state[c] += once;
        sum += dropped(once, r * 4 + c, 3, 0, 0.5);
      }
    for (int layer = 0; layer < 3; ++layer) {
      const std::string prefix = "h." + std::to_string(layer) + ".";
      Row last = product(prefix + "in.weight", state);
      for (int c = 0; c < 4; ++c)
        last[c] += weight(prefix + "in.bias", c);
      for (std::int64_t t = 0; t < rows; ++t) {
        last = product(prefix + "weight", last);
        for (int c = 0; c < 4; ++c)
          last[c] = dropped(last[c], c, 1, layer * rows + t, 0.25) + x.values[t * 4 + c];
      }
      for (int c = 0; c < 4; ++c)
        state[c] += dropped(std::tanh(last[c]), c, 2, layer, 0.4);
    }
    for (double value : state)
      sum += std::tanh(value);
    return sum;
  }

private:
  static std::uint32_t bitsOf(const Tensor &number) {
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(number.values[0]));
  }
  double weight(const std::string &name, std::int64_t at) const { return model.weights.at(name).values[at]; }
  Row product(const std::string &name, const Row &row) const {
    Row result{};
    for (int o = 0; o < 4; ++o)
      for (int i = 0; i < 4; ++i)
        result[o] += weight(name, o * 4 + i) * row[i];
    return result;
  }
  double dropped(double value, std::int64_t element, std::uint32_t stream, std::int64_t iteration, double p) const {
    const DropoutPlace place{seed, step, stream, static_cast<std::uint32_t>(iteration)};
    return place.drops(static_cast<std::uint32_t>(element), p) ? 0 : value / (1 - p);
  }

  const Differentiated &model;
  const Tensor &x;
  const std::uint32_t step, seed;
};

TEST(Dropout, DropsAndDifferentiates) {
  Differentiated model(trace<specs::Dropped>(), 4);
  ASSERT_TRUE(model.module);
  for (const char *name : {"dropped", "recomputed"})
    for (std::int64_t rows : {1, 5}) {
      SCOPED_TRACE(name);
      const Entry &entry = entryOf(model.graph, name);
      const std::vector<Tensor> inputs = inputsOf(model, entry, rows);
      const std::vector<verify::SharedTensor> results = model.run(entry, {{"rows", rows}}, inputs);
      const Reference reference(model, inputs);
      EXPECT_NEAR(results[0]->values[0], reference.loss(), 1e-9);
      for (unsigned result = 1; result < results.size(); ++result)
        for (const Parameter &parameter : model.graph.parameters) {
          if (gradient_name(model.graph.name(parameter)) != model.resultName(entry, result))
            continue;
          std::size_t at = 0;
          for (std::int64_t copy = 0; copy < model.graph.copies(parameter.scope); ++copy)
            for (double &value : model.weights.at(model.nameOf(parameter, copy)).values) {
              const double own = value, h = 1e-6;
              value = own + h;
              const double above = reference.loss();
              value = own - h;
              const double below = reference.loss();
              value = own;
              const double expected = (above - below) / (2 * h);
              EXPECT_NEAR(results[result]->values.at(at++), expected, 1e-6 * std::max(1.0, std::abs(expected)))
                  << model.resultName(entry, result) << " " << at;
            }
        }
    }
}

/// Activations that loops save for the backward pass have eight bits.
TEST(Activations, AreRounded) {
  Differentiated model(trace<specs::Dropped>(), 4);
  const Entry &exact = entryOf(model.graph, "dropped"), &rounded = entryOf(model.graph, "rounded");
  const std::vector<Tensor> inputs = inputsOf(model, exact, 5);
  const auto expected = model.run(exact, {{"rows", 5}}, inputs), got = model.run(rounded, {{"rows", 5}}, inputs);
  EXPECT_EQ(got[0]->values[0], expected[0]->values[0]) << "the loss";
  bool isRounded = false;
  for (std::size_t result = 1; result < expected.size(); ++result) {
    double size = 0;
    for (double value : expected[result]->values)
      size = std::max(size, std::abs(value));
    for (std::size_t i = 0; i < expected[result]->values.size(); ++i) {
      EXPECT_NEAR(got[result]->values[i], expected[result]->values[i], 0x1p-6 * size);
      isRounded |= got[result]->values[i] != expected[result]->values[i];
    }
  }
  EXPECT_TRUE(isRounded);
}

TEST(Dropout, IsTheIdentityElsewhere) {
  Differentiated model(trace<specs::Dropped>(), 4);
  const Entry &entry = entryOf(model.graph, "kept");
  const std::vector<Tensor> inputs = inputsOf(model, entry, 3);
  const auto number = static_cast<std::size_t>(&entry - model.graph.entries.data());
  EXPECT_NEAR(model.run(entry, {{"rows", 3}}, inputs)[0]->values[0], model.loss(number, {{"rows", 3}}, inputs), 1e-9);
}

TEST(Dropout, DropsItsPart) {
  Differentiated model(trace<specs::Dropped>(), 4);
  model.weights.at("one").values = {1};
  const Entry &entry = entryOf(model.graph, "ones");
  std::vector<Tensor> inputs = inputsOf(model, entry, 1);
  std::vector<std::vector<double>> seen;
  for (auto [step, seed] : {std::pair{1.0, 1.0}, {2.0, 1.0}, {1.0, 2.0}}) {
    inputs[1].values = {step};
    inputs[2].values = {seed};
    const std::vector<verify::SharedTensor> results = model.run(entry, {{"rows", 1}}, inputs);
    const std::vector<double> &y = results[1]->values;
    const auto kept = static_cast<double>(std::ranges::count_if(y, [](double value) { return value != 0; }));
    // Five standard deviations for 4096 elements.
    EXPECT_NEAR(kept / 4096, 0.7, 5 * std::sqrt(0.21 / 4096));
    for (double value : y)
      EXPECT_TRUE(value == 0 || std::abs(value - 1 / 0.7) < 1e-6) << value;
    EXPECT_NEAR(results[2]->values[0], kept / 0.7, 1e-3); // the gradient
    for (const std::vector<double> &other : seen) {
      const double both = std::inner_product(y.begin(), y.end(), other.begin(), 0.0) * 0.49;
      EXPECT_NEAR(both / 4096, 0.49, 5 * std::sqrt(0.49 * 0.51 / 4096)) << "not independent";
    }
    seen.push_back(y);
  }
}

/// Micro-batch i of step t has the dropout mask of step 2 t + i.
TEST(Dropout, DiffersByMicroBatch) {
  Differentiated model(trace<specs::Dropped>(), 4);
  std::vector<Tensor> inputs = inputsOf(model, entryOf(model.graph, "ones"), 1), both = inputs;
  both[0] = Tensor::of(ElementType::f32, {2, 64, 64}, std::vector<double>(8192, 1));
  const auto together = model.run(entryOf(model.graph, "twice"), {{"rows", 1}}, both);
  double loss = 0, gradient = 0;
  for (int i = 0; i < 2; ++i) {
    inputs[1].values = {both[1].values[0] * 2 + i};
    const auto alone = model.run(entryOf(model.graph, "ones"), {{"rows", 1}}, inputs);
    EXPECT_TRUE(std::equal(alone[1]->values.begin(), alone[1]->values.end(), together[1]->values.begin() + i * 4096));
    loss += alone[0]->values[0] / 2;
    gradient += alone[2]->values[0] / 2;
  }
  EXPECT_NEAR(together[0]->values[0], loss, 1e-9 * std::abs(loss));
  EXPECT_NEAR(together[2]->values[0], gradient, 1e-9 * std::abs(gradient));
}

TEST(Dropout, Compiled) {
  for (const std::string &target : runnableTargets())
    expectCompiled(trace<specs::Dropped>(), target, inputsOf);
}

TEST(StopGradient, GradientsSeeAConstant) {
  Differentiated model(trace<specs::Dropped>(), 4);
  const Entry &entry = entryOf(model.graph, "stopped");
  const std::vector<Tensor> inputs = inputsOf(model, entry, 2);
  const std::vector<verify::SharedTensor> results = model.run(entry, {{"rows", 2}}, inputs);
  double loss = 0;
  for (int c = 0; c < 4; ++c) {
    const double x = inputs[0].values[c] + inputs[0].values[4 + c], w = model.weights.at("scale").values[c];
    loss += x * (w + 2 * w * w);
    EXPECT_NEAR(results[1]->values[c], x * (1 + w), 1e-9);
  }
  EXPECT_NEAR(results[0]->values[0], loss, 1e-9);
}

/// h = tanh(W h + x) over some steps, the sum of all h, and its backpropagation in plain loops; every `cut` steps the
/// state is treated as a constant.
struct ThroughTime {
  double loss = 0;
  Row last{};
  std::vector<double> ofWeight = std::vector<double>(16);

  ThroughTime(const std::vector<double> &w, const Tensor &x, Row initial, std::int64_t cut) {
    const std::int64_t steps = x.shape[0];
    std::vector<Row> states(steps + 1);
    states[0] = initial;
    for (std::int64_t t = 0; t < steps; ++t)
      for (int o = 0; o < 4; ++o) {
        double sum = x.values[t * 4 + o];
        for (int i = 0; i < 4; ++i)
          sum += w[o * 4 + i] * states[t][i];
        loss += states[t + 1][o] = std::tanh(sum);
      }
    last = states[steps];
    Row ofState{};
    for (std::int64_t t = steps; t-- > 0;) {
      Row before{};
      for (int o = 0; o < 4; ++o) {
        const double y = states[t + 1][o], own = (ofState[o] + 1) * (1 - y * y);
        for (int i = 0; i < 4; ++i) {
          ofWeight[o * 4 + i] += own * states[t][i];
          before[i] += own * w[o * 4 + i];
        }
      }
      ofState = t % cut == 0 ? Row{} : before;
    }
  }
};

TEST(StopGradient, TruncatesThroughTime) {
  constexpr std::int64_t steps = 8;
  Differentiated model(trace<specs::Dropped>(), 4);
  const Entry &entry = entryOf(model.graph, "truncated");
  const std::vector<Tensor> inputs = inputsOf(model, entry, steps);
  const ThroughTime expected(model.weights.at("w").values, inputs[0], {}, 3);
  const std::vector<verify::SharedTensor> results = model.run(entry, {{"rows", steps}}, inputs);
  EXPECT_NEAR(results[0]->values[0], expected.loss, 1e-9);
  for (int i = 0; i < 16; ++i)
    EXPECT_NEAR(results[1]->values[i], expected.ofWeight[i], 1e-9) << i;
}

TEST(StopGradient, StatesAreTakenAsGiven) {
  constexpr std::int64_t steps = 5;
  Differentiated model(trace<specs::Dropped>(), 4);
  const Entry &entry = entryOf(model.graph, "carried");
  llvm::Expected<fuzz::CompiledModel> compiled = fuzz::CompiledModel::compile(model.graph, runnableTargets().front());
  ASSERT_TRUE(static_cast<bool>(compiled)) << llvm::toString(compiled.takeError());
  llvm::Error unbound = compiled->bind(model.weights);
  ASSERT_FALSE(unbound) << llvm::toString(std::move(unbound));
  fuzz::CompiledModel::Session session(*compiled, {});
  Row state{};
  for (int call = 0; call < 3; ++call) {
    const std::vector<Tensor> inputs = inputsOf(model, entry, steps);
    const ThroughTime expected(model.weights.at("w").values, inputs[0], state, steps);
    state = expected.last;
    llvm::Expected<fuzz::CompiledModel::Buffers> results = session.call(
        static_cast<std::size_t>(&entry - model.graph.entries.data()), {{"rows", steps}}, {fuzz::toBytes(inputs[0])});
    ASSERT_TRUE(static_cast<bool>(results)) << llvm::toString(results.takeError());
    std::array<float, 16> ofWeight;
    ASSERT_EQ((*results)[1].size(), sizeof ofWeight);
    std::memcpy(ofWeight.data(), (*results)[1].data(), sizeof ofWeight);
    for (int i = 0; i < 16; ++i)
      EXPECT_NEAR(ofWeight[i], expected.ofWeight[i], 1e-5) << i << " of call " << call;
  }
}

} // namespace
} // namespace kiln::testing
