// SPDX-License-Identifier: Apache-2.0
//
// Runs a small MViT with random weights on a synthetic image, and prints its time.
#include "mvit.hpp"

#include "support/random_weights.h"
#include "support/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

int main() {
  constexpr std::size_t side = 56;
  support::Session session(MVIT_FORWARD_ARENA_BYTES(1));
  mvit::Model model;
  session.check(model.bind(support::random_weights({MVIT_WEIGHTS(SUPPORT_WEIGHT)}, 1), &session.error));
  std::vector<float> image(side * side * 3), logits(10), features(7 * 7 * 64);
  for (std::size_t i = 0; i < image.size(); ++i)
    image[i] =
        static_cast<float>(std::sin(0.05 * static_cast<double>(i % side) + 0.03 * static_cast<double>(i / side)));
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    session.check(model.forward(session.call, {image.data(), 1}, {logits.data(), 1}, {features.data(), 1}));
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::printf("class %td of %zu, %.2f ms an image on one thread; %lld parameters\n",
              std::max_element(logits.begin(), logits.end()) - logits.begin(), logits.size(), best * 1e3,
              static_cast<long long>(MVIT_PARAMETERS));
}
