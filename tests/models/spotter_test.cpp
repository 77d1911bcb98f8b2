// SPDX-License-Identifier: Apache-2.0
// The keyword spotter with the counter's weights: PyTorch's results for any division of a recording into calls; how
// many kernels a call runs; and that a convolution with one result row is a matrix-vector product.
#include "../seed.h"
#include "golden.h"
#include "session.h"
#include "spotter.h"
#include "support.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

namespace kiln::testing {
namespace {

/// The tolerance relative to the f64 oracle: at most three times the measured error.
constexpr double modelTolerance = 6e-7;

constexpr std::int64_t frames = 120, bins = 40, words = 12, most = 16;

Session<spotter_t> &session() {
  static Session<spotter_t> only(KILN_TEST_LIBRARY(spotter, SPOTTER_WEIGHTS));
  return only;
}

std::vector<float> melOf(std::int64_t first, std::int64_t count) {
  std::vector<float> mel;
  for (std::int64_t i = first * bins; i < (first + count) * bins; ++i)
    mel.push_back(2 * counter_uniform("mel", i));
  return mel;
}

/// Returns the logits of the recording, in calls of so many frames.
template <class Count> std::vector<float> listen(Count count) {
  Conversation<spotter_t> conversation(session(), 1, SPOTTER_STATE_BYTES, SPOTTER_LISTEN_ARENA_BYTES(1));
  std::vector<float> logits;
  for (std::int64_t at = 0; at < frames;) {
    const std::int64_t now = std::min<std::int64_t>(count(), frames - at);
    Output<float> own(now * words);
    conversation.run(spotter_listen, now, Input(melOf(at, now)), own);
    logits.insert(logits.end(), own.values().begin(), own.values().end());
    at += now;
  }
  return logits;
}

TEST(Spotter, AgreesWithPyTorch) {
  const Golden golden("spotter.safetensors");
  for (std::int64_t count : {1, 3, 16})
    EXPECT_LE(golden.error("T120.logits", listen([=] { return count; })), modelTolerance) << count << " frames a call";
  std::mt19937 random(testSeed());
  std::uniform_int_distribution<std::int64_t> any(1, most);
  EXPECT_LE(golden.error("T120.logits", listen([&] { return any(random); })), modelTolerance);
}

/// Returns the symbols of the kernels that a call of so many frames runs.
std::vector<std::string> kernelsOf(std::int64_t count) {
  std::vector<std::string> kernels;
  const kiln_trace_t trace{&kernels,
                           [](void *self, const kiln_event_t *event) {
                             if (event->task < 0)
                               static_cast<std::vector<std::string> *>(self)->push_back(event->kernel);
                           },
                           [](void *, const kiln_event_t *) {}};
  Arena<spotter_t> arena(session().functions(), session().get(), SPOTTER_LISTEN_ARENA_BYTES(1), Guard::back);
  arena.zero(SPOTTER_STATE_BYTES);
  const std::vector<float> mel = melOf(0, count);
  std::vector<float> logits(count * words);
  kiln_error_t error{};
  kiln_call_t call{.arena = arena.data(), .arena_bytes = arena.size(), .executor = nullptr, .error = &error};
  call.trace = &trace;
  EXPECT_EQ(spotter_listen(session().get(), &call, count, mel.data(), logits.data()), KILN_OK) << error.message;
  return kernels;
}

TEST(Spotter, RunsFewKernels) {
  const std::vector<std::string> ofOne = kernelsOf(1), ofMost = kernelsOf(most);
  EXPECT_GE(ofOne.size(), 12u);
  EXPECT_LE(ofOne.size(), 25u) << ::testing::PrintToString(ofOne);
  EXPECT_LE(ofMost.size(), 25u + 2 * (most - 1)) << "more than two kernels in a step of the GRU";
}

TEST(Spotter, ConvolutionsOfOneRowAreMatrixVectorProducts) {
  std::ifstream file(SPOTTER_MANIFEST);
  const nlohmann::json manifest = nlohmann::json::parse(file);
  std::size_t found = 0;
  for (const std::string &symbol : kernelsOf(1))
    for (const auto &target : manifest["targets"])
      for (const auto &kernel : target["kernels"])
        if (kernel["symbol"] == symbol && (symbol.find("stem") != symbol.npos || symbol.find("head") != symbol.npos)) {
          EXPECT_EQ(kernel["strategy"], "skinny_gemm") << symbol;
          // A block of rows is a parameter of products of several rows only.
          EXPECT_EQ((" " + kernel["schedule"].get<std::string>()).find(" m="), std::string::npos) << kernel["schedule"];
          ++found;
        }
  EXPECT_EQ(found, 2u) << "the stem, a convolution, and the head, a linear layer";
}

} // namespace
} // namespace kiln::testing
