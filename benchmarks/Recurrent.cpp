// SPDX-License-Identifier: Apache-2.0
//
// An LSTM layer of width 256 over 128 steps: the projections of all steps are one GEMM, then each step reads a weight
// of 1 MiB. And a GRU of width 16 whose input was a tone and then silent until its states decayed, compared with the
// same GRU whose input is still a tone: the ratio is the time for the tone over that for silence. It is small where
// states become subnormal, as those that the program keeps do.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "amplifier.hpp"
#include "lstm.hpp"

#include "tests/models/specs/lstm.h"

#include <algorithm>
#include <cmath>

namespace kiln::bench {

static constexpr int steps = 128, width = 256;

static void run(benchmark::State &state, const Threads &threads, int batch) {
  std::vector<float> x = makeInput("x", std::size_t{steps} * batch * width), y(x.size());
  std::vector<float> h(std::size_t{width} * batch), c(h.size());
  static const auto model = makeModel<lstm::Model>({LSTM_WEIGHTS(KILN_BENCH_WEIGHT)});

  std::vector<Contender> contenders;
  contenders.push_back(ours(threads, LSTM_FORWARD_ARENA_BYTES(threads.count()), y, [&](const kiln_call_t &call) {
    return lstm_forward(model->get(), &call, steps, batch, x.data(), y.data(), h.data(), c.data());
  }));
  auto peers = installedPeers();
  for (const auto &peer : peers) {
    peer->setThreads(threads.count());
    for (Contender &way : peer->model(
             {"lstm_" + std::to_string(batch), {{"x", {steps, batch, width}, {}, x}}, {"y", {steps, batch, width}}}))
      contenders.push_back(std::move(way));
  }
  auto work = static_cast<double>(flops<specs::Lstm256>({{"steps", steps}, {"batch", batch}}));
  compare(state, threads, {Unit::Milliseconds, 0, work}, std::move(contenders));
}

/// Without biases, so that silent input gives silent output, except that of the update gate, which makes the decay
/// slow.
static std::shared_ptr<amplifier::Model> makeAmplifier() {
  std::vector<testing::Weight> weights = testing::counterWeights({AMPLIFIER_WEIGHTS(KILN_BENCH_WEIGHT)});
  for (testing::Weight &weight : weights)
    if (weight.name.find("bias") != std::string::npos)
      for (std::size_t i = 0; i < weight.values.size(); ++i)
        weight.values[i] = weight.name.find("ih") != std::string::npos && i >= 16 && i < 32 ? 3.0f : 0.0f;
  return makeModel<amplifier::Model>(testing::WeightImage(weights));
}

/// isStored: the states are the model's, which stores no subnormal numbers. Otherwise the program keeps them.
static void runSilence(benchmark::State &state, const Threads &threads, bool isStored) {
  constexpr int block = 256, blocksUntilSilent = 600;
  static const auto model = makeAmplifier();
  std::vector<float> tone(block), driven(block);
  for (int i = 0; i < block; ++i)
    tone[i] = std::sin(0.1f * static_cast<float>(i));
  std::vector<float> fading = tone;
  auto playing = [&](const std::vector<float> &input) {
    if (isStored)
      return ours(threads, AMPLIFIER_PLAY_ARENA_BYTES(threads.count()), {}, [&](const kiln_call_t &call) {
        return amplifier_play(model->get(), &call, block, input.data(), driven.data());
      });
    auto heard = std::make_shared<std::vector<float>>(16), last = std::make_shared<std::vector<float>>(16);
    return ours(threads, AMPLIFIER_PLAY_FROM_ARENA_BYTES(threads.count()), {},
                [&, heard, last](const kiln_call_t &call) {
                  heard->swap(*last);
                  return amplifier_play_from(model->get(), &call, block, input.data(), heard->data(), driven.data(),
                                             last->data());
                });
  };
  Contender silent = playing(fading), loud = playing(tone);
  loud.name = "tone";
  silent.run(); // states that are 0 from the start would not decay
  std::ranges::fill(fading, 0.0f);
  for (int i = 0; i < blocksUntilSilent; ++i)
    silent.run();
  compare(state, threads, {Unit::Milliseconds, 0}, {silent, loud});
}

void registerAll() {
  for (bool isStored : {true, false})
    add(std::string("recurrent/gru 16, 256 samples of silence") + (isStored ? "" : ", states of the program"), 1, 15,
        [=](benchmark::State &state, const Threads &pool) { runSilence(state, pool, isStored); });
  for (int threads : {1, 2})
    for (int batch : {1, 8})
      add("recurrent/lstm 256, 128 steps, batch " + std::to_string(batch), threads, 15,
          [=](benchmark::State &state, const Threads &pool) { run(state, pool, batch); });
}

} // namespace kiln::bench
