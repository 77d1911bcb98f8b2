// SPDX-License-Identifier: Apache-2.0
// Recurrent layers with the counter's weights compared with PyTorch in f64.
#include "golden.h"
#include "recurrent.h"
#include "session.h"
#include "support.h"

namespace kiln::testing {
namespace {

/// The tolerance relative to the f64 oracle: at most three times the measured error, 3.8e-7.
constexpr double modelTolerance = 1.1e-6;

constexpr std::int64_t width = 5, hidden = 7;

Session<recurrent_t> &session() {
  static Session<recurrent_t> only(KILN_TEST_LIBRARY(recurrent, RECURRENT_WEIGHTS));
  return only;
}

const Golden &golden() {
  static const Golden only("recurrent.safetensors");
  return only;
}

Input<float> given(const char *name, std::int64_t count) {
  std::vector<float> values(count);
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = counter_uniform(name, i);
  return Input<float>(std::move(values));
}

/// A layer's two entries, and its passes: layers times directions.
template <class Whole, class Padded> struct Layer {
  const char *name;
  Whole whole;
  Padded padded;
  std::int64_t directions, passes;
  bool hasCell = false;
};

/// Runs both entries for every size, and compares outputs and states.
template <class Whole, class Padded> void check(const Layer<Whole, Padded> &layer) {
  for (auto [steps, batch] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {7, 3}, {33, 1}, {33, 3}}) {
    const std::string size = "T" + std::to_string(steps) + "B" + std::to_string(batch);
    SCOPED_TRACE(layer.name + ("." + size));
    const std::int64_t states = layer.passes * batch * hidden;
    Input<float> x = given("x", steps * batch * width), h = given("h", states), c = given("c", states);
    Input<std::int32_t> lengths(golden().integers(size + ".lengths"));
    Output<float> y(steps * batch * layer.directions * hidden), lastH(states), lastC(states);
    auto compare = [&](const std::string &prefix) {
      EXPECT_LE(relativeError(y.values(), golden().floats(prefix + ".y")), modelTolerance);
      EXPECT_LE(relativeError(lastH.values(), golden().floats(prefix + ".h")), modelTolerance);
      if (layer.hasCell) {
        EXPECT_LE(relativeError(lastC.values(), golden().floats(prefix + ".c")), modelTolerance);
      }
    };
    if constexpr (std::is_same_v<Whole, decltype(&recurrent_lstm)>) {
      session().run(layer.whole, steps, batch, x, y, lastH, lastC);
      compare(layer.name + ("." + size));
      session().run(layer.padded, steps, batch, x, lengths, h, c, y, lastH, lastC);
    } else {
      session().run(layer.whole, steps, batch, x, y, lastH);
      compare(layer.name + ("." + size));
      session().run(layer.padded, steps, batch, x, lengths, h, y, lastH);
    }
    compare(layer.name + ("_padded." + size));
  }
}

TEST(Recurrent, RnnAgreesWithPyTorch) { check(Layer{"rnn", recurrent_rnn, recurrent_rnn_padded, 1, 1}); }
TEST(Recurrent, RectifiedRnnAgreesWithPyTorch) { check(Layer{"relu", recurrent_relu, recurrent_relu_padded, 1, 2}); }
TEST(Recurrent, LstmAgreesWithPyTorch) { check(Layer{"lstm", recurrent_lstm, recurrent_lstm_padded, 2, 4, true}); }
TEST(Recurrent, GruAgreesWithPyTorch) { check(Layer{"gru", recurrent_gru, recurrent_gru_padded, 2, 2}); }

// Many to one, for a sequence without a batch dimension.
TEST(Recurrent, LastStateOfOneSequence) {
  Input<float> x = given("x", 33 * width);
  Output<float> last(4 * hidden);
  session().run(recurrent_last, 33, x, last);
  EXPECT_LE(relativeError(last.values(), golden().floats("lstm.T33B1.h")), modelTolerance);
}

} // namespace
} // namespace kiln::testing
