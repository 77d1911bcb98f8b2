// SPDX-License-Identifier: Apache-2.0
//
// Series to forecast: a wave with a trend and noise, about an eighth of whose values is missing. They depend only on
// the given random numbers, so that a training step has the same series whenever it is run.
#pragma once

#include "support/first_weights.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

struct Batch {
  static constexpr int count = 32, patches = 15, length = 8 * patches + 8, horizon = 24;
  std::vector<float> values, future;
  std::vector<std::uint8_t> known;
};

inline Batch draw_batch(random_t random) {
  Batch batch;
  for (int i = 0; i < Batch::count; ++i) {
    const double level = 3 * random_uniform(&random), height = 1 + random_uniform(&random);
    const double speed = 0.1 + 0.4 * random_uniform(&random), phase = 6 * random_uniform(&random);
    const double slope = 0.01 * random_uniform(&random);
    for (int t = 0; t < Batch::length + Batch::horizon; ++t) {
      const double value = level + height * std::sin(speed * t + phase) + slope * t + 0.1 * random_normal(&random);
      if (t >= Batch::length) {
        batch.future.push_back(static_cast<float>(value));
        continue;
      }
      // The older half of every other series is unknown, so that whole patches are.
      const bool is_known = random_uniform(&random) > 0.125 && (i % 2 == 0 || t >= Batch::length / 2);
      batch.known.push_back(is_known);
      batch.values.push_back(is_known ? static_cast<float>(value) : std::numeric_limits<float>::quiet_NaN());
    }
  }
  return batch;
}
