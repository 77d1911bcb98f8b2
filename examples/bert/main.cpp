// SPDX-License-Identifier: Apache-2.0
//
// Predicts a masked word, with random weights, by itself and in a batch with a longer sequence: padding has no effect.
#include "bert_words.hpp"
#include "support/random_weights.h"
#include "support/session.h"

#include <algorithm>
#include <cmath>

int main() {
  constexpr std::int32_t vocabulary = 601, mask = 103;
  constexpr std::size_t words = 6, longest = 9, masked = 3;
  support::Session session(BERT_WORDS_FORWARD_ARENA_BYTES(1));
  bert_words::Model model;
  session.check(model.bind(support::random_weights({BERT_WORDS_WEIGHTS(SUPPORT_WEIGHT)}, 1), &session.error));

  const std::vector<std::int32_t> alone{101, 7, 300, mask, 42, 102};
  std::vector<std::int32_t> both{101, 9, 8, 7, 6, 5, 4, 3, 102}; // a longer sequence, then the same one padded
  both.insert(both.end(), alone.begin(), alone.end());
  both.resize(2 * longest, 0);
  const std::vector<std::int32_t> segments(both.size(), 0);
  const std::int32_t one[] = {words}, two[] = {longest, words};

  std::vector<float> logits(words * vocabulary), padded(2 * longest * vocabulary);
  session.check(model.forward(session.call, {alone.data(), 1, words}, {segments.data(), 1, words}, {one, 1},
                              {logits.data(), 1, words}));
  session.check(model.forward(session.call, {both.data(), 2, longest}, {segments.data(), 2, longest}, {two, 2},
                              {padded.data(), 2, longest}));

  std::vector<std::int32_t> order(vocabulary);
  for (std::int32_t i = 0; i < vocabulary; ++i)
    order[i] = i;
  const float *at = &logits[masked * vocabulary];
  std::partial_sort(order.begin(), order.begin() + 5, order.end(), [&](auto a, auto b) { return at[a] > at[b]; });
  for (int i = 0; i < 5; ++i)
    std::printf("word %3d: %.4f\n", order[i], static_cast<double>(at[order[i]]));
  float difference = 0;
  for (std::size_t i = 0; i < words * vocabulary; ++i)
    difference = std::max(difference, std::fabs(logits[i] - padded[longest * vocabulary + i]));
  std::printf("alone and padded in a batch differ by %.1e\n", static_cast<double>(difference));
  return difference < 1e-5f ? 0 : 1;
}
