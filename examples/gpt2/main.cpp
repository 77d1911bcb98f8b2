// SPDX-License-Identifier: Apache-2.0
//
// Continues a row of tokens with GPT-2 small, the likeliest token each time:
// gpt2_demo [CHECKPOINT [TOKEN ...]]. Without a checkpoint the weights are random; a tokenizer is not part of
// it.
#include "checkpoint.h"
#include "gpt2_small.hpp"
#include "support/random_weights.h"
#include "support/session.h"

#include <algorithm>
#include <chrono>

int main(int argc, char **argv) try {
  constexpr std::size_t vocabulary = 50257, wanted = 8;
  support::Session session(GPT2_SMALL_FORWARD_ARENA_BYTES(1));
  gpt2_small::Model model;
  session.check(model.bind(argc > 1 ? support::load_checkpoint(argv[1], specs::gpt2_checkpoint)
                                    : support::random_weights({GPT2_SMALL_WEIGHTS(SUPPORT_WEIGHT)}, 1),
                           &session.error));
  std::vector<std::int32_t> tokens;
  for (int i = 2; i < argc; ++i)
    tokens.push_back(static_cast<std::int32_t>(std::strtol(argv[i], nullptr, 10)));
  if (tokens.empty())
    tokens = {464, 7850, 286, 4881, 318}; // "The capital of France is"

  const std::size_t first = tokens.size();
  std::vector<float> logits((first + wanted) * vocabulary);
  const auto start = std::chrono::steady_clock::now();
  while (tokens.size() < first + wanted) {
    const std::size_t n = tokens.size();
    session.check(model.forward(session.call, {tokens.data(), n}, {logits.data(), n}));
    const float *last = &logits[(n - 1) * vocabulary];
    tokens.push_back(static_cast<std::int32_t>(std::max_element(last, last + vocabulary) - last));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  for (std::int32_t token : tokens)
    std::printf("%d ", token);
  std::printf("\n%.1f tokens per second, each a pass over all of them; %lld parameters\n", wanted / seconds.count(),
              static_cast<long long>(GPT2_SMALL_PARAMETERS));
} catch (const std::exception &error) {
  support::stop(error.what());
}
