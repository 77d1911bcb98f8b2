// SPDX-License-Identifier: Apache-2.0
//
// Runs two stages of Swin with random weights on a synthetic image, and prints the time.
#include "swin_two_stages.hpp"

#include "support/random_weights.h"
#include "support/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

int main() {
  constexpr std::size_t side = 56;
  support::Session session(SWIN_TWO_STAGES_FORWARD_ARENA_BYTES(1));
  swin_two_stages::Model model;
  session.check(model.bind(support::random_weights({SWIN_TWO_STAGES_WEIGHTS(SUPPORT_WEIGHT)}, 1), &session.error));
  std::vector<float> image(3 * side * side), logits(10), features(7 * 7 * 48);
  for (std::size_t i = 0; i < image.size(); ++i)
    image[i] =
        static_cast<float>(std::sin(0.05 * static_cast<double>(i % side) + 0.03 * static_cast<double>(i / side)));
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    session.check(model.forward(session.call, {image.data(), 1}, {logits.data(), 1}, {features.data(), 1}));
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::printf("class %td of %zu, %.1f ms an image on one thread; %lld parameters\n",
              std::max_element(logits.begin(), logits.end()) - logits.begin(), logits.size(), best * 1e3,
              static_cast<long long>(SWIN_TWO_STAGES_PARAMETERS));
}
