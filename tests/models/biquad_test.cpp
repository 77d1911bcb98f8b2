// SPDX-License-Identifier: Apache-2.0
// The example with a function of the program: a stream that is cut into blocks of any size is filtered as a whole
// stream in f64 is.
#include "../seed.h"
#include "tone.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace kiln::testing {
namespace {

constexpr int channels = 2;

/// A stable filter: two poles at radius r and angle w.
std::vector<float> coefficients(double r, double w) {
  return {0.2f, 0.35f, -0.1f, static_cast<float>(-2 * r * std::cos(w)), static_cast<float>(r * r)};
}

/// The difference equation y[n] = b0 x[n] + b1 x[n - 1] + b2 x[n - 2] - a1 y[n - 1] - a2 y[n - 2], then the rest of the
/// model.
std::vector<double> reference(const std::vector<float> &audio, const std::vector<float> &k) {
  std::vector<double> filtered(audio.size()), out;
  auto before = [](const auto &values, std::size_t i, std::size_t steps) {
    return i >= steps * channels ? static_cast<double>(values[i - steps * channels]) : 0.0;
  };
  for (std::size_t i = 0; i < audio.size(); ++i) {
    filtered[i] = k[0] * static_cast<double>(audio[i]) + k[1] * before(audio, i, 1) + k[2] * before(audio, i, 2) -
                  k[3] * before(filtered, i, 1) - k[4] * before(filtered, i, 2);
    out.push_back(std::tanh(1.5 * filtered[i]));
  }
  return out;
}

TEST(Biquad, FiltersBlocksAsOneStream) {
  std::mt19937 random(testSeed());
  std::uniform_real_distribution<float> sample(-1, 1);
  tone::Model model;
  kiln_error_t error{};
  constexpr std::string_view noWeights("\x02\0\0\0\0\0\0\0{}", 10); // a safetensors file
  ASSERT_EQ(model.bind(std::as_bytes(std::span(noWeights)), &error), KILN_OK) << error.message;
  tone::Session session;
  for (const auto &[r, w] : {std::pair(0.9, 0.3), std::pair(0.5, 2.0), std::pair(0.97, 1.2)}) {
    const std::vector<float> k = coefficients(r, w);
    std::vector<float> audio(channels * 3000), out(audio.size());
    std::ranges::generate(audio, [&] { return sample(random); });
    kiln_call_t options{};
    options.error = &error;
    ASSERT_EQ(session.begin(model, options), KILN_OK) << error.message;
    for (std::size_t at = 0, size; at < audio.size(); at += size) {
      const std::size_t most = std::min<std::size_t>(audio.size() / channels - at / channels, TONE_PLAY_SAMPLES_MAX);
      size = channels * (1 + random() % most);
      ASSERT_EQ(session.play(std::span(audio).subspan(at, size), k, std::span(out).subspan(at, size)), KILN_OK)
          << error.message;
    }
    const std::vector<double> expected = reference(audio, k);
    for (std::size_t i = 0; i < audio.size(); ++i)
      ASSERT_NEAR(out[i], expected[i], 5e-6) << "seed " << testSeed() << ", element " << i << ", radius " << r;
  }
}

} // namespace
} // namespace kiln::testing
