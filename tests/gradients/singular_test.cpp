// SPDX-License-Identifier: Apache-2.0
//
// Gradients at poles, kinks and ties of functions compared with PyTorch's (singular_points.py); zeros and NaN in
// embedding lookups; and training steps that must not change a weight.
#include "differentiated.h"
#include "singular.h"
#include "tests/fuzz/CompiledModel.h"
#include "tests/targets/RunnableTargets.h"

#include <cmath>
#include <limits>

namespace kiln::testing {
namespace {

using fuzz::CompiledModel;

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

/// An operation at one of its points: the gradient of its result, and those of its operands.
struct Point {
  double a, b, dy, da, db;
};
struct Case {
  std::string name;
  bool isBinary = false;
  std::vector<std::int64_t> shape{specs::SingularPoints::points};
  std::vector<Point> points = {};
};

const std::vector<Case> &allCases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> all;
    auto add = [&](const char *name, bool isBinary, const Point &point) {
      if (all.empty() || all.back().name != name)
        all.push_back({name, isBinary});
      all.back().points.push_back(point);
    };
    auto addRows = [&](const char *name, const std::vector<double> &x, const std::vector<double> &dy,
                       const std::vector<double> &dx) {
      all.push_back({name, false, {3, 4}});
      for (std::size_t i = 0; i < x.size(); ++i)
        all.back().points.push_back({x[i], 0, dy[i], dx[i], 0});
    };
#define KILN_UNARY(name, a, dy, da) add(#name, false, {a, 0, dy, da, 0});
#define KILN_BINARY(name, a, b, dy, da, db) add(#name, true, {a, b, dy, da, db});
#define KILN_ROWS(name, ...) addRows(#name, __VA_ARGS__);
#define KILN_LOOK_UP(...)
#include "singular_points.inc"
#undef KILN_UNARY
#undef KILN_BINARY
#undef KILN_ROWS
#undef KILN_LOOK_UP
    return all;
  }();
  return cases;
}

std::size_t placeOf(const Graph &graph, const std::string &name) {
  for (std::size_t i = 0; i < graph.entries.size(); ++i)
    if (graph.entries[i].name == name)
      return i;
  throw std::runtime_error("no entry " + name);
}

/// Returns a member of each point, followed by ones.
Tensor tensorOf(const Case &given, double Point::*member) {
  Tensor tensor = Tensor::zeros(ElementType::f32, given.shape);
  for (std::size_t i = 0; i < tensor.values.size(); ++i)
    tensor.values[i] = i < given.points.size() ? given.points[i].*member : 1;
  return tensor;
}

void setWeights(Differentiated &model) {
  for (const Case &each : allCases()) {
    model.weights.at(each.name + "_a") = tensorOf(each, &Point::a);
    if (each.isBinary)
      model.weights.at(each.name + "_b") = tensorOf(each, &Point::b);
  }
  model.weights.at("batch_norm.weight").values.assign(4, 1);
  model.weights.at("batch_norm.bias").values.assign(4, 0);
}

/// Returns the number of the result of an operation's entry that is the gradient of its operand a or b.
unsigned gradientOf(Differentiated &model, const Case &given, const char *operand) {
  const Entry &entry = entryOf(model.graph, "at_" + given.name);
  auto function = model.module->lookupSymbol<mlir::func::FuncOp>(entry.name);
  for (unsigned result = 1; result < function.getNumResults(); ++result)
    if (model.resultName(entry, result) == gradient_name(given.name + "_" + operand))
      return result;
  throw std::runtime_error("no gradient of " + given.name + "_" + operand);
}

/// The tolerance is 1e-6, since constants of a spec, such as 1e-5, are rounded to f32, while PyTorch has them in f64.
bool isAlike(double got, double expected, double tolerance) {
  return got == expected || (std::isnan(got) && std::isnan(expected)) ||
         std::abs(got - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

TEST(SingularPoints, AreThoseOfPyTorch) {
  Differentiated model(trace<specs::SingularPoints>(), 1);
  ASSERT_TRUE(model.module);
  setWeights(model);
  ASSERT_EQ(allCases().size(), model.graph.entries.size());
  for (const Case &each : allCases()) {
    const Entry &entry = entryOf(model.graph, "at_" + each.name);
    const auto results = model.run(entry, {}, {tensorOf(each, &Point::dy)});
    const std::vector<double> &da = results[gradientOf(model, each, "a")]->values;
    for (std::size_t i = 0; i < each.points.size(); ++i) {
      const Point &point = each.points[i];
      EXPECT_TRUE(isAlike(da[i], point.da, 1e-6)) << each.name << " at " << point.a << ", " << point.b << " with dy "
                                                  << point.dy << ": expected " << point.da << ", got " << da[i];
    }
    if (!each.isBinary)
      continue;
    const std::vector<double> &db = results[gradientOf(model, each, "b")]->values;
    for (std::size_t i = 0; i < each.points.size(); ++i) {
      const Point &point = each.points[i];
      EXPECT_TRUE(isAlike(db[i], point.db, 1e-6)) << each.name << " of " << point.a << " at " << point.b << " with dy "
                                                  << point.dy << ": expected " << point.db << ", got " << db[i];
    }
  }
}

std::vector<float> floatsOf(const std::vector<char> &bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// Compiled gradients are compared where they are not NaN and, except those of powers, where operands are finite: NaN
/// may cancel (dsl/SPEC.md).
TEST(SingularPoints, AreNumbersWhereCompiled) {
  Differentiated model(trace<specs::SingularPoints>(), 1);
  setWeights(model);
  llvm::Expected<CompiledModel> compiled = CompiledModel::compile(model.graph, runnableTargets().front());
  ASSERT_TRUE(static_cast<bool>(compiled)) << llvm::toString(compiled.takeError());
  llvm::Error unbound = compiled->bind(model.weights);
  ASSERT_FALSE(unbound) << llvm::toString(std::move(unbound));
  CompiledModel::Session session(*compiled, {});
  for (const Case &each : allCases()) {
    llvm::Expected<CompiledModel::Buffers> results =
        session.call(placeOf(model.graph, "at_" + each.name), {}, {fuzz::toBytes(tensorOf(each, &Point::dy))});
    ASSERT_TRUE(static_cast<bool>(results)) << llvm::toString(results.takeError());
    const std::vector<float> da = floatsOf(results->at(gradientOf(model, each, "a")));
    for (std::size_t i = 0; i < each.points.size(); ++i) {
      const Point &point = each.points[i];
      if (!std::isnan(point.da) && (std::isfinite(point.a) || each.name.starts_with("pow")))
        EXPECT_TRUE(isAlike(da[i], point.da, 2e-4)) << each.name << " at " << point.a << ", " << point.b << " with dy "
                                                    << point.dy << ": expected " << point.da << ", got " << da[i];
    }
  }
}

/// The gradient goes to the first two of equal elements, which are those that topk returns, interpreted and compiled.
TEST(SingularPoints, TopkGivesAllToWhatItReturned) {
  Differentiated model(trace<specs::Ties>(), 1);
  model.weights.at("a") =
      Tensor::of(ElementType::f32, {4, 4}, {1, 1, 1, 1, 0, 2, 2, 2, 3, 0, 5, 3, 5, -inf, -inf, -inf});
  const Tensor dy = Tensor::of(ElementType::f32, {4, 2}, {10, 20, 30, 40, 50, 60, 70, 80});
  const std::vector<double> expected{10, 20, 0, 0, 0, 30, 40, 0, 60, 0, 50, 0, 70, 80, 0, 0};
  EXPECT_EQ(model.run(entryOf(model.graph, "topk"), {}, {dy})[1]->values, expected);
  for (const std::string &target : runnableTargets()) {
    SCOPED_TRACE(target);
    llvm::Expected<CompiledModel> compiled = CompiledModel::compile(model.graph, target);
    ASSERT_TRUE(static_cast<bool>(compiled)) << llvm::toString(compiled.takeError());
    llvm::Error unbound = compiled->bind(model.weights);
    ASSERT_FALSE(unbound) << llvm::toString(std::move(unbound));
    CompiledModel::Session session(*compiled, {});
    llvm::Expected<CompiledModel::Buffers> results = session.call(0, {}, {fuzz::toBytes(dy)});
    ASSERT_TRUE(static_cast<bool>(results)) << llvm::toString(results.takeError());
    const std::vector<float> got = floatsOf(results->at(1));
    EXPECT_EQ(std::vector<double>(got.begin(), got.end()), expected);
  }
}

/// Sums rows one after another in f32, as the library does.
std::vector<float> addRows(const std::vector<double> &indices, const std::vector<float> &rows, std::int64_t height) {
  std::vector<float> table(static_cast<std::size_t>(height * 3));
  for (std::size_t r = 0; r < indices.size(); ++r)
    for (std::size_t c = 0; c < 3; ++c)
      table[static_cast<std::size_t>(indices[r]) * 3 + c] += rows[r * 3 + c];
  return table;
}

/// Repeated indices, unused rows, and a NaN, which stays in its row: bit-identical on all targets and for any number of
/// workers.
TEST(LookUps, AddRowsUpInOrder) {
  const Graph graph = trace<specs::LookedUp>();
  std::mt19937 random(17);
  for (const std::string &target : runnableTargets()) {
    Differentiated model(graph, 3);
    llvm::Expected<CompiledModel> compiled = CompiledModel::compile(graph, target);
    ASSERT_TRUE(static_cast<bool>(compiled)) << llvm::toString(compiled.takeError());
    llvm::Error unbound = compiled->bind(model.weights);
    ASSERT_FALSE(unbound) << llvm::toString(std::move(unbound));
    for (std::int64_t count : {1, 7, 40})
      for (const auto &[name, height] :
           std::initializer_list<std::pair<const char *, int>>{{"small", 5}, {"large", 300}, {"columns", 7}}) {
        SCOPED_TRACE(target + " " + name + " " + std::to_string(count));
        std::vector<double> indices;
        std::vector<float> rows;
        for (std::int64_t r = 0; r < count; ++r) {
          indices.push_back(r % 3 == 1 ? 2 : std::uniform_int_distribution<int>(0, height - 2)(random));
          for (int c = 0; c < 3; ++c)
            rows.push_back(std::uniform_real_distribution<float>(-1, 1)(random));
        }
        rows.back() = std::numeric_limits<float>::quiet_NaN();
        std::vector<float> expected = addRows(indices, rows, height);
        const Tensor dy = Tensor::of(ElementType::f32, {count, 3}, {rows.begin(), rows.end()});
        const Tensor places = integers({count}, indices);
        const interpreter::Extents extents{{"rows", count}};
        // With the interpreter.
        const Entry &entry = entryOf(graph, name);
        const auto evaluated = model.run(entry, extents, {places, dy});
        auto at = [&](std::size_t i) { // columns are transposed
          return std::string_view(name) == "columns" ? expected[i % 7 * 3 + i / 7] : expected[i];
        };
        ASSERT_EQ(evaluated[1]->values.size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i)
          EXPECT_TRUE(isAlike(evaluated[1]->values[i], at(i), 1e-5)) << i;
        for (unsigned workers : {1u, 3u}) {
          CompiledModel::Session session(
              *compiled,
              {.order = workers > 1 ? fuzz::TaskOrder::Threads : fuzz::TaskOrder::Serial, .workers = workers});
          llvm::Expected<CompiledModel::Buffers> results =
              session.call(placeOf(graph, name), extents, {fuzz::toBytes(places), fuzz::toBytes(dy)});
          ASSERT_TRUE(static_cast<bool>(results)) << llvm::toString(results.takeError());
          const std::vector<float> got = floatsOf(results->at(1));
          ASSERT_EQ(got.size(), expected.size());
          for (std::size_t i = 0; i < got.size(); ++i)
            EXPECT_TRUE(got[i] == at(i) || (std::isnan(got[i]) && std::isnan(at(i))))
                << i << ": expected " << at(i) << ", got " << got[i];
        }
      }
  }
}

/// A table whose row of zeros is normalised; the gradients of its elements; and the table after three steps of AdamW.
const std::vector<std::vector<double>> &normalizedLookUp() {
#define KILN_UNARY(...)
#define KILN_BINARY(...)
#define KILN_ROWS(...)
#define KILN_LOOK_UP(...)                                                                                              \
  {                                                                                                                    \
    __VA_ARGS__                                                                                                        \
  }
  static const std::vector<std::vector<double>> all
#include "singular_points.inc"
      ;
#undef KILN_UNARY
#undef KILN_BINARY
#undef KILN_ROWS
#undef KILN_LOOK_UP
  return all;
}

/// The zeros have large gradients, all others have those of their own rows, and steps without clipping leave numbers.
TEST(LookUps, OfZerosLeaveNumbers) {
  const std::vector<double> &before = normalizedLookUp()[0], &gradients = normalizedLookUp()[1],
                            &after = normalizedLookUp()[2];
  const Tensor places = integers({3}, {1, 2, 4});
  const Tensor target = Tensor::of(ElementType::f32, {3, 4}, std::vector<double>(12, 0.5));
  Differentiated model(trace<specs::NormalizedLookUp>(), 1);
  model.weights.at("table.weight") = Tensor::of(ElementType::f32, {5, 4}, before);
  const auto evaluated = model.run(entryOf(model.graph, "gradients"), {}, {places, target});
  for (std::size_t i = 0; i < gradients.size(); ++i)
    EXPECT_TRUE(isAlike(evaluated[1]->values[i], gradients[i], 1e-6)) << i << ": " << evaluated[1]->values[i];
  for (const std::string &cpu : runnableTargets()) {
    SCOPED_TRACE(cpu);
    llvm::Expected<CompiledModel> compiled = CompiledModel::compile(model.graph, cpu);
    ASSERT_TRUE(static_cast<bool>(compiled)) << llvm::toString(compiled.takeError());
    llvm::Error unbound = compiled->bind(model.weights);
    ASSERT_FALSE(unbound) << llvm::toString(std::move(unbound));
    CompiledModel::Session session(*compiled, {});
    llvm::Error notBegun = session.beginTraining();
    ASSERT_FALSE(notBegun) << llvm::toString(std::move(notBegun));
    CompiledModel::Buffers bytes{fuzz::toBytes(places), fuzz::toBytes(target)};
    llvm::Expected<CompiledModel::Buffers> results = session.call(placeOf(model.graph, "gradients"), {}, bytes);
    ASSERT_TRUE(static_cast<bool>(results)) << llvm::toString(results.takeError());
    const std::vector<float> got = floatsOf(results->at(1));
    for (std::size_t i = 0; i < gradients.size(); ++i)
      EXPECT_TRUE(isAlike(got[i], gradients[i], 1e-5)) << i << ": expected " << gradients[i] << ", got " << got[i];
    for (int step = 1; step <= 3; ++step) {
      bytes.resize(2);
      bytes.push_back(fuzz::toBytes(Tensor::of(ElementType::f32, {}, {1e-3})));
      bytes.push_back(fuzz::toBytes(integers({}, {static_cast<double>(step)})));
      llvm::Expected<CompiledModel::Buffers> loss = session.call(placeOf(model.graph, "train"), {}, bytes);
      ASSERT_TRUE(static_cast<bool>(loss)) << llvm::toString(loss.takeError());
    }
    llvm::Expected<Tensor> weights = compiled->read("table.weight", {5, 4});
    ASSERT_TRUE(static_cast<bool>(weights)) << llvm::toString(weights.takeError());
    for (std::size_t i = 0; i < after.size(); ++i)
      EXPECT_NEAR(weights->values[i], after[i], 1e-6) << i;
  }
}

/// Runs a step of each optimiser, which must be refused and leave weights and states unchanged.
void expectRefused(CompiledModel &compiled, const Differentiated &model, double rate, int step) {
  const Tensor x = Tensor::of(ElementType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const CompiledModel::Buffers bytes{fuzz::toBytes(x), fuzz::toBytes(Tensor::of(ElementType::f32, {}, {rate})),
                                     fuzz::toBytes(integers({}, {static_cast<double>(step)}))};
  CompiledModel::Session session(compiled, {});
  llvm::Error notBegun = session.beginTraining();
  ASSERT_FALSE(notBegun) << llvm::toString(std::move(notBegun));
  for (std::size_t number = 0; number < model.graph.entries.size(); ++number) {
    const std::string name = model.graph.entries[number].name;
    SCOPED_TRACE(name);
    if (step < 1 && (name == "descend" || name == "roll"))
      continue; // these do not depend on the step
    const std::vector<char> before = session.states();
    llvm::Expected<CompiledModel::Buffers> results = session.call(number, {}, bytes);
    ASSERT_FALSE(static_cast<bool>(results)) << "the step was made";
    const std::string words = llvm::toString(results.takeError());
    // The runtime refuses an invalid step number itself, before the entry runs.
    EXPECT_NE(words.find(step < 1 ? "\"step\" out of range; expected [1," : "no weight changed"), std::string::npos)
        << words;
    EXPECT_EQ(session.states(), before);
    for (const auto &[weight, expected] : model.weights) {
      llvm::Expected<Tensor> got = compiled.read(weight, expected.shape);
      ASSERT_TRUE(static_cast<bool>(got)) << llvm::toString(got.takeError());
      EXPECT_EQ(got->values, expected.values) << weight;
    }
  }
}

TEST(UnfinishedSteps, ChangeNothing) {
  for (const std::string &target : {runnableTargets().front(), runnableTargets().back()}) {
    SCOPED_TRACE(target);
    Differentiated model(trace<specs::Unfinished>(), 5);
    llvm::Expected<CompiledModel> compiled = CompiledModel::compile(model.graph, target);
    ASSERT_TRUE(static_cast<bool>(compiled)) << llvm::toString(compiled.takeError());
    auto bind = [&] {
      llvm::Error unbound = compiled->bind(model.weights);
      ASSERT_FALSE(unbound) << llvm::toString(std::move(unbound));
    };
    model.weights.at("scale").values = {1, 2, 3};
    bind();
    for (double rate : {nan, inf, -inf}) {
      SCOPED_TRACE(rate);
      expectRefused(*compiled, model, rate, 1);
    }
    for (int step : {0, -1}) {
      SCOPED_TRACE(step);
      expectRefused(*compiled, model, 0.1, step);
    }
    model.weights.at("scale").values[1] = 0; // its gradient is NaN, while the loss is finite
    bind();
    expectRefused(*compiled, model, 0.1, 1);
  }
}

} // namespace
} // namespace kiln::testing
