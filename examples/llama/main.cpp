// SPDX-License-Identifier: Apache-2.0
//
// Continues a row of tokens with random weights, and takes the likeliest token each time: llama_demo [TOKENS [SEED]].
#include "llama.hpp"
#include "support/random_weights.h"
#include "support/session.h"

#include <algorithm>
#include <chrono>

int main(int argc, char **argv) {
  constexpr std::size_t vocabulary = 512, context = LLAMA_FORWARD_TOKENS_MAX;
  const std::size_t wanted = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 64;
  const unsigned long seed = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1;
  if (wanted < 1 || wanted > context - 4)
    support::stop("llama_demo makes 1 to " + std::to_string(context - 4) + " tokens");

  support::Session session(LLAMA_FORWARD_ARENA_BYTES(1));
  llama::Model model;
  session.check(model.bind(support::random_weights({LLAMA_WEIGHTS(SUPPORT_WEIGHT)}, seed), &session.error));
  std::vector<std::int32_t> tokens{1, 2, 3, 4};
  std::vector<float> logits(context * vocabulary);
  const auto start = std::chrono::steady_clock::now();
  while (tokens.size() < wanted + 4) {
    const std::size_t n = tokens.size();
    session.check(model.forward(session.call, {tokens.data(), 1, n}, {logits.data(), 1, n}));
    const float *last = &logits[(n - 1) * vocabulary];
    tokens.push_back(static_cast<std::int32_t>(std::max_element(last, last + vocabulary) - last));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  for (std::int32_t token : tokens)
    std::printf("%d ", token);
  std::printf("\n%.0f tokens per second, each a pass over all of them; %lld parameters\n",
              static_cast<double>(wanted) / seconds.count(), static_cast<long long>(LLAMA_PARAMETERS));
}
