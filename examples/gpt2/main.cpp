// SPDX-License-Identifier: Apache-2.0
//
// Continues a row of tokens with GPT-2 small, the likeliest token each time:
// gpt2_demo [CHECKPOINT [TOKEN ...]]. Without a checkpoint the weights are random; a tokenizer is not part of
// it.
#include "checkpoint.h"
#include "gpt2_writer.hpp"
#include "support/random_weights.h"
#include "support/session.h"

#include <algorithm>
#include <chrono>

namespace {

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace

int main(int argc, char **argv) try {
  constexpr std::size_t wanted = 32;
  support::Session session(std::max(GPT2_WRITER_PREFILL_ARENA_BYTES(1), GPT2_WRITER_DECODE_ARENA_BYTES(1)));
  gpt2_writer::Model model;
  session.check(model.bind(argc > 1 ? support::load_checkpoint(argv[1], specs::gpt2_checkpoint)
                                    : support::random_weights({GPT2_WRITER_WEIGHTS(SUPPORT_WEIGHT)}, 1),
                           &session.error));
  std::vector<std::int32_t> tokens;
  for (int i = 2; i < argc; ++i)
    tokens.push_back(static_cast<std::int32_t>(std::strtol(argv[i], nullptr, 10)));
  if (tokens.empty())
    tokens = {464, 7850, 286, 4881, 318}; // "The capital of France is"

  std::vector<float> logits(50257);
  auto likeliest = [&] {
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  };
  const std::int64_t first = static_cast<std::int64_t>(tokens.size());
  auto start = std::chrono::steady_clock::now();
  session.check(model.prefill(session.call, first, {tokens.data(), first}, logits.data()));
  const double prefill = secondsSince(start);
  start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < wanted; ++i) {
    tokens.push_back(likeliest());
    session.check(model.decode(session.call, static_cast<std::int64_t>(tokens.size()), &tokens.back(), logits.data()));
  }
  const double decode = secondsSince(start);
  for (std::int32_t token : tokens)
    std::printf("%d ", token);
  std::printf(
      "\n%lld tokens read in %.1f ms, then %.1f tokens per second; %lld parameters, %.0f kB of keys and values a "
      "token\n",
      static_cast<long long>(first), prefill * 1e3, wanted / decode, static_cast<long long>(GPT2_WRITER_PARAMETERS),
      GPT2_WRITER_STATE_BYTES_PER_ROW / 1e3);
} catch (const std::exception &error) {
  support::stop(error.what());
}
