// SPDX-License-Identifier: Apache-2.0
// Recurrent layers with the counter's weights compared with PyTorch in f64.
#include "golden.h"
#include "recurrent.h"
#include "session.h"
#include "support.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

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

Input<float> given(const char *name, std::int64_t count) { return Input<float>(counterValues(name, count)); }

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

// A length is between 0 and the steps of the call.
TEST(Recurrent, RefusesLengthsOutOfRange) {
  constexpr std::int64_t steps = 7, batch = 3;
  Input<float> x = given("x", steps * batch * width), h = given("h", 4 * batch * hidden);
  Output<float> y(steps * batch * 2 * hidden), lastH(4 * batch * hidden), lastC(4 * batch * hidden);
  Conversation<recurrent_t> conversation(
      session(), 1, 0,
      std::max({RECURRENT_RNN_PADDED_ARENA_BYTES(1), RECURRENT_RELU_PADDED_ARENA_BYTES(1),
                RECURRENT_LSTM_PADDED_ARENA_BYTES(1), RECURRENT_GRU_PADDED_ARENA_BYTES(1)}));
  using Lengths = std::vector<std::int32_t>;
  const std::pair<Lengths, std::string> cases[] = {
      {{7, 0, 1}, ""},
      {{7, -1, 1}, "expected [0, 7], got -1 at element 1"},
      {{7, 0, 8}, "expected [0, 7], got 8 at element 2"},
      {{INT32_MIN, 0, 1}, "expected [0, 7], got -2147483648 at element 0"},
  };
  for (const auto &[numbers, message] : cases) {
    SCOPED_TRACE(message);
    Input<std::int32_t> lengths(numbers);
    auto expect = [&](const char *name, kiln_status_t status) {
      SCOPED_TRACE(name);
      EXPECT_EQ(status, message.empty() ? KILN_OK : KILN_INDEX_OUT_OF_RANGE) << conversation.error.message;
      EXPECT_NE(std::string(conversation.error.message).find(message), std::string::npos) << conversation.error.message;
      // Outputs are poisoned with NaN before each call.
      EXPECT_EQ(std::isnan(lastH.values()[0]), !message.empty());
    };
    expect("rnn", conversation.call(recurrent_rnn_padded, steps, batch, x, lengths, h, y, lastH));
    expect("relu", conversation.call(recurrent_relu_padded, steps, batch, x, lengths, h, y, lastH));
    expect("lstm", conversation.call(recurrent_lstm_padded, steps, batch, x, lengths, h, h, y, lastH, lastC));
    expect("gru", conversation.call(recurrent_gru_padded, steps, batch, x, lengths, h, y, lastH));
  }
}

} // namespace
} // namespace kiln::testing
