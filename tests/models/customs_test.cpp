// SPDX-License-Identifier: Apache-2.0
// Functions of the program in batched entries give each sequence the bits of a separate call; gradients through a
// function with a derivative are those of f64.
#include "../seed.h"
#include "customs.h"
#include "session.h"

#include <cmath>
#include <cstring>
#include <random>

namespace {

constexpr std::int64_t width = 4;

float *filled(void *workspace, std::int64_t samples) {
  return static_cast<float *>(std::memset(workspace, 0xA5, static_cast<std::size_t>(16 * samples)));
}

} // namespace

void customs_custom_smooth(std::int64_t samples, const float *x, const float *memory, float *y, float *next,
                           void *workspace) {
  float *all = filled(workspace, samples);
  for (std::int64_t i = 0; i < samples * width; ++i)
    all[i] = 0.75f * (i < width ? memory[i] : all[i - width]) + 0.25f * x[i];
  std::copy_n(all, samples * width, y);
  std::copy_n(all + (samples - 1) * width, width, next);
}

/// y = sin(x) * scale + index / 8.
void customs_custom_warp(std::int64_t samples, const float *x, const float *scale, const std::int32_t *indices,
                         float *y, std::int32_t *count, void *workspace) {
  filled(workspace, samples);
  *count = 0;
  for (std::int64_t i = 0; i < samples * width; ++i) {
    y[i] = std::sin(x[i]) * scale[i % width] + static_cast<float>(indices[i / width]) / 8;
    *count += x[i] > 0;
  }
}

void customs_custom_warp_gradient(std::int64_t samples, const float *x, const float *scale, const std::int32_t *,
                                  const float *dy, float *dx, float *dscale, void *workspace) {
  filled(workspace, samples);
  std::fill_n(dscale, width, 0.0f);
  for (std::int64_t i = 0; i < samples * width; ++i) {
    dx[i] = std::cos(x[i]) * scale[i % width] * dy[i];
    dscale[i % width] += std::sin(x[i]) * dy[i];
  }
}

namespace kiln::testing {
namespace {

Session<customs_t> &session() {
  static Session<customs_t> only(KILN_TEST_LIBRARY(customs, CUSTOMS_WEIGHTS));
  return only;
}

std::vector<double> weight(const std::string &name) {
  for (const Weight &each : counterWeights(session().functions().weights))
    if (each.name == name)
      return {each.values.begin(), each.values.end()};
  ADD_FAILURE() << "no weight " << name;
  return {};
}

std::vector<float> randomValues(std::mt19937 &random, std::int64_t count) {
  std::uniform_real_distribution<float> values(-2, 2);
  std::vector<float> all(static_cast<std::size_t>(count));
  std::ranges::generate(all, [&] { return values(random); });
  return all;
}

struct alignas(KILN_ARENA_ALIGNMENT) States {
  std::byte bytes[CUSTOMS_STATE_BYTES]{};
};

TEST(Customs, BatchedSequencesHaveTheBitsOfSingleCalls) {
  std::mt19937 random(testSeed());
  alignas(KILN_ARENA_ALIGNMENT) static std::byte arena[CUSTOMS_SMOOTH_ARENA_BYTES(1)],
      batchArena[CUSTOMS_SMOOTH_BATCH_ARENA_BYTES(1)];
  kiln_error_t error{};
  constexpr std::size_t count = 3;
  States alone[count], together[count];
  for (int turn = 0; turn < 20; ++turn) {
    std::int64_t samples[count];
    kiln_sequence_t sequences[count];
    std::vector<float> x, y, last, allY, allLast;
    for (std::size_t i = 0; i < count; ++i) {
      samples[i] = 1 + static_cast<std::int64_t>(random() % 13);
      sequences[i] = {together[i].bytes, &samples[i]};
      const std::vector<float> own = randomValues(random, samples[i] * width);
      std::vector<float> ownY(own.size()), ownLast(width);
      std::memcpy(arena, alone[i].bytes, sizeof(States));
      const kiln_call_t call{.arena = arena, .arena_bytes = sizeof arena, .executor = nullptr, .error = &error};
      ASSERT_EQ(customs_smooth(session().get(), &call, samples[i], own.data(), ownY.data(), ownLast.data()), KILN_OK)
          << error.message;
      std::memcpy(alone[i].bytes, arena, sizeof(States));
      x.insert(x.end(), own.begin(), own.end());
      y.insert(y.end(), ownY.begin(), ownY.end());
      last.insert(last.end(), ownLast.begin(), ownLast.end());
    }
    allY.resize(y.size());
    allLast.resize(last.size());
    std::memset(batchArena, 0x5A, sizeof batchArena);
    const kiln_call_t call{.arena = batchArena, .arena_bytes = sizeof batchArena, .executor = nullptr, .error = &error};
    ASSERT_EQ(customs_smooth_batch(session().get(), &call, count, sequences, x.data(), allY.data(), allLast.data()),
              KILN_OK)
        << error.message;
    EXPECT_EQ(allY, y) << "seed " << testSeed();
    EXPECT_EQ(allLast, last);
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_EQ(std::memcmp(alone[i].bytes, together[i].bytes, sizeof(States)), 0);
  }
}

/// The loss and its gradients for one micro-batch, added to the sums.
struct Gradients {
  double loss = 0;
  std::vector<double> weight = std::vector<double>(width * width), bias = std::vector<double>(width),
                      scale = std::vector<double>(width);

  void add(const float *x, const float *target, std::int64_t samples, double share) {
    const std::vector<double> w = testing::weight("fc.weight"), b = testing::weight("fc.bias"),
                              s = testing::weight("scale");
    const double count = static_cast<double>(samples * width);
    for (std::int64_t t = 0; t < samples; ++t)
      for (std::int64_t o = 0; o < width; ++o) {
        double z = b[o];
        for (std::int64_t i = 0; i < width; ++i)
          z += w[o * width + i] * x[t * width + i];
        const double difference = std::sin(z) * s[o] + static_cast<double>(t) / 8 - target[t * width + o];
        loss += share * difference * difference / count;
        const double dy = share * 2 * difference / count, dz = dy * std::cos(z) * s[o];
        scale[o] += dy * std::sin(z);
        bias[o] += dz;
        for (std::int64_t i = 0; i < width; ++i)
          weight[o * width + i] += dz * x[t * width + i];
      }
  }
};

void expectNear(const std::vector<float> &got, const std::vector<double> &expected, const char *what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 2e-5 * (1 + std::abs(expected[i]))) << what << " " << i << ", seed " << testSeed();
}

TEST(Customs, GradientsAreThoseOfTheDerivative) {
  std::mt19937 random(testSeed());
  alignas(KILN_ARENA_ALIGNMENT) static std::byte arena[CUSTOMS_LEARN_ARENA_BYTES(1)];
  kiln_error_t error{};
  const kiln_call_t call{.arena = arena, .arena_bytes = sizeof arena, .executor = nullptr, .error = &error};
  for (std::int64_t samples : {1, 2, 7, 17, 40}) {
    const std::vector<float> x = randomValues(random, 2 * samples * width),
                             target = randomValues(random, 2 * samples * width);
    std::vector<float> weight(width * width), bias(width), scale(width);
    float loss = 0;
    std::int32_t counts[2];
    std::memset(arena, 0, sizeof arena);
    ASSERT_EQ(customs_learn(session().get(), &call, samples, x.data(), target.data(), &loss, counts, weight.data(),
                            bias.data(), scale.data()),
              KILN_OK)
        << error.message;
    Gradients expected;
    for (std::int64_t batch = 0; batch < 2; ++batch)
      expected.add(x.data() + batch * samples * width, target.data() + batch * samples * width, samples, 0.5);
    EXPECT_NEAR(loss, expected.loss, 1e-5 * (1 + expected.loss));
    expectNear(weight, expected.weight, "fc.weight");
    expectNear(bias, expected.bias, "fc.bias");
    expectNear(scale, expected.scale, "scale");
    for (std::int32_t count : counts)
      EXPECT_TRUE(count >= 0 && count <= samples * width);
  }
}

} // namespace
} // namespace kiln::testing
