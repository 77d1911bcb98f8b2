// SPDX-License-Identifier: Apache-2.0
// Traces of calls: all kernels in order, with the work that the language counts, and the tasks that workers share.
#include "../levels.h"
#include "char_gpt.h"
#include "model.h"
#include "session.h"
#include "support.h"

#include "kiln/chrome_trace.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

namespace kiln::testing {
namespace {

constexpr std::int64_t tokens = 16;

Library<char_gpt_t> library() { return KILN_TEST_LIBRARY(char_gpt, CHAR_GPT_WEIGHTS); }

struct Moment {
  kiln_event_t event;
  bool isEnd;
};

/// Records all events in the order in which they arrive.
class Recorder {
public:
  const kiln_trace_t *trace() const { return &functions; }
  std::vector<Moment> moments;

private:
  static void note(void *self, const kiln_event_t *event, bool isEnd) {
    auto *recorder = static_cast<Recorder *>(self);
    const std::lock_guard lock(recorder->mutex);
    recorder->moments.push_back({*event, isEnd});
  }

  std::mutex mutex;
  kiln_trace_t functions{this, [](void *self, const kiln_event_t *event) { note(self, event, false); },
                         [](void *self, const kiln_event_t *event) { note(self, event, true); }};
};

std::vector<float> forward(Session<char_gpt_t> &session, const kiln_trace_t *trace, std::uint32_t workers) {
  std::vector<std::int32_t> text(tokens);
  std::iota(text.begin(), text.end(), 1);
  std::vector<float> logits(tokens * char_gpt::vocabulary.size());
  kiln_error_t error{};
  Arena<char_gpt_t> arena(session.functions(), session.get(), CHAR_GPT_FORWARD_ARENA_BYTES(workers), Guard::back);
  kiln_call_t call{
      .arena = arena.data(), .arena_bytes = arena.size(), .executor = session.executor(workers), .error = &error};
  call.trace = trace;
  EXPECT_EQ(char_gpt_forward(session.get(), &call, tokens, text.data(), logits.data()), KILN_OK) << error.message;
  return logits;
}

TEST(Trace, HasAllKernelsWithTheirWork) {
  Session<char_gpt_t> session(library());
  Recorder recorder;
  EXPECT_EQ(forward(session, recorder.trace(), 1), forward(session, nullptr, 1));
  std::uint64_t flops = 0, bytes = 0;
  std::map<std::int64_t, std::vector<std::string>> kernels; // by layer
  ASSERT_EQ(recorder.moments.size() % 2, 0u);
  for (std::size_t i = 0; i < recorder.moments.size(); i += 2) {
    const kiln_event_t &begin = recorder.moments[i].event, &end = recorder.moments[i + 1].event;
    EXPECT_FALSE(recorder.moments[i].isEnd);
    EXPECT_TRUE(recorder.moments[i + 1].isEnd);
    EXPECT_STREQ(begin.kernel, end.kernel);
    EXPECT_STREQ(begin.entry, "forward");
    EXPECT_EQ(begin.task, -1);
    EXPECT_EQ(begin.worker, 0u);
    EXPECT_TRUE(std::string(begin.kernel).starts_with("char_gpt_" KILN_ARCHITECTURE_SYMBOL "_")) << begin.kernel;
    EXPECT_EQ(begin.number >= 0, std::string(begin.layer).starts_with("h.{}")) << begin.layer;
    kernels[begin.number].push_back(begin.kernel);
    flops += begin.flops;
    bytes += begin.bytes;
  }
  using Model = CharGpt<4, 128, 4>;
  EXPECT_EQ(flops, static_cast<std::uint64_t>(kiln::flops<Model>({{"tokens", tokens}})));
  // Each weight is read once, except for the rows of the position and word tables that no token uses.
  const auto weights = 4 * static_cast<std::uint64_t>(kiln::parameters<Model>());
  EXPECT_GT(bytes, weights - 4 * 256 * 128);
  EXPECT_LT(bytes, 3 * weights);
  ASSERT_EQ(kernels.size(), 5u);
  for (std::int64_t layer = 1; layer < 4; ++layer)
    EXPECT_EQ(kernels[layer], kernels[0]);
}

TEST(Trace, HasTheTasksOfWorkers) {
  Session<char_gpt_t> session(library());
  Recorder recorder;
  EXPECT_EQ(forward(session, recorder.trace(), 3), forward(session, nullptr, 1));
  std::string kernel;
  std::set<std::int64_t> running, done;
  std::size_t tasks = 0;
  for (const auto &[event, isEnd] : recorder.moments) {
    if (event.task < 0) {
      EXPECT_TRUE(running.empty());
      // The tasks of each loop are numbered from 0.
      kernel = isEnd ? "" : event.kernel;
      continue;
    }
    EXPECT_EQ(event.kernel, kernel);
    EXPECT_LT(event.worker, 3u);
    EXPECT_EQ(running.count(event.task), isEnd ? 1u : 0u);
    isEnd ? running.erase(event.task) : running.insert(event.task).second;
    tasks += isEnd;
  }
  EXPECT_GT(tasks, 10u);
}

TEST(Trace, RequiresItsFunctions) {
  Session<char_gpt_t> session(library());
  Recorder recorder;
  kiln_trace_t trace = *recorder.trace();
  trace.end = nullptr;
  Arena<char_gpt_t> arena(session.functions(), session.get(), CHAR_GPT_DECODE_ARENA_BYTES(1), Guard::back);
  kiln_error_t error{};
  kiln_call_t call{.arena = arena.data(), .arena_bytes = arena.size(), .executor = nullptr, .error = &error};
  call.trace = &trace;
  const std::int32_t token = 1;
  std::vector<float> logits(char_gpt::vocabulary.size());
  EXPECT_EQ(char_gpt_decode(session.get(), &call, 1, &token, logits.data()), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "decode: null given; expected a trace with begin and end");
  EXPECT_TRUE(recorder.moments.empty());
}

nlohmann::json written(const kiln_chrome_trace_t &trace) {
  const std::string path = ::testing::TempDir() + "kiln_trace.json";
  EXPECT_EQ(kiln_chrome_trace_write(&trace, path.c_str()), 0);
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

TEST(Trace, IsAFileThatChromeReads) {
  Session<char_gpt_t> session(library());
  std::vector<kiln_chrome_moment_t> moments(4096);
  kiln_chrome_trace_t trace;
  kiln_chrome_trace_begin(&trace, moments.data(), moments.size());
  forward(session, &trace.trace, 2);
  const nlohmann::json file = written(trace);
  EXPECT_EQ(file["otherData"]["left out"], 0);
  std::map<int, int> depth;
  std::set<std::string> names;
  double last = 0;
  for (const nlohmann::json &event : file["traceEvents"]) {
    int &own = depth[event["tid"]];
    own += event["ph"] == "B" ? 1 : -1;
    EXPECT_TRUE(own >= 0 && own <= 2) << event;
    last = std::max(last, event["ts"].get<double>());
    if (event["ph"] == "B")
      names.insert(event["name"]);
  }
  for (const auto &[track, open] : depth)
    EXPECT_EQ(open, 0) << "track " << track;
  EXPECT_EQ(file["traceEvents"].size(), trace.count);
  EXPECT_EQ(names.count("h.3.mlp.fc1"), 1u);
  EXPECT_GT(last, 0);

  kiln_chrome_trace_begin(&trace, moments.data(), 5);
  forward(session, &trace.trace, 1);
  const nlohmann::json cut = written(trace);
  EXPECT_EQ(cut["traceEvents"].size(), 5u);
  EXPECT_EQ(cut["otherData"]["left out"], trace.count - 5);
  EXPECT_EQ(kiln_chrome_trace_write(&trace, "/nowhere/trace.json"), -1);
}

} // namespace
} // namespace kiln::testing
