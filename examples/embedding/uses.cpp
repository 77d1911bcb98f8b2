// SPDX-License-Identifier: Apache-2.0
//
// The amplifier in an audio plug-in, a game and a server: each plays the tone of program.c and prints its loudness.
#include "effect.h"
#include "sessions.h"
#include "turns.h"
#include <cmath>
#include <cstdio>
#include <memory>
#include <thread>

namespace {

constexpr std::size_t length = 1024;

std::vector<float> tone() {
  std::vector<float> samples(length);
  for (std::size_t i = 0; i < length; ++i)
    samples[i] = static_cast<float>(i % 100) / 100 - 0.5F;
  return samples;
}

void sayLoudness(const std::vector<float> &samples) {
  double squares = 0;
  for (const double sample : samples)
    squares += sample * sample;
  std::printf("loudness %.5f\n", std::sqrt(squares / length));
}

kiln_status_t playEffect(const char *weights, kiln_error_t *error) {
  const auto effect = std::make_unique<Effect>();
  if (const kiln_status_t status = effect->prepare(weights, error); status != KILN_OK)
    return status;
  std::vector<float> samples = tone();
  for (std::size_t i = 0, block = 1; i < length; i += block, ++block) // blocks of all sizes
    effect->process(samples.data() + i, std::min(block, length - i));
  sayLoudness(samples);
  return KILN_OK;
}

/// Two threads of a game.
struct Jobs {
  static std::uint32_t threads() { return 2; }
  template <class Job> void run(std::uint32_t count, const Job &job) {
    std::thread other([&] {
      for (std::uint32_t i = 1; i < count; i += 2)
        job(i, 1);
    });
    for (std::uint32_t i = 0; i < count; i += 2)
      job(i, 0);
    other.join();
  }
};

kiln_status_t playTurns(const amp::Model &model) {
  Jobs jobs;
  Turns turns(model, jobs, 3);
  const std::vector<float> samples = tone();
  std::vector<float> driven[3];
  for (auto &player : driven)
    player.resize(length);
  constexpr std::size_t block = 64;
  for (std::size_t i = 0; i < length; i += block)
    for (auto &player : driven)
      if (const kiln_status_t status = turns.frame({samples.data() + i, block}, {player.data() + i, block});
          status != KILN_OK)
        return status;
  sayLoudness(driven[2]);
  return KILN_OK;
}

/// Clients that join one after another: the first plays by itself for a while.
kiln_status_t playSessions(const amp::Model &model, kiln_error_t *error) {
  const auto server = std::make_unique<Server>(model);
  Session sessions[3];
  std::vector<Session *> clients;
  const auto serve = [&] {
    std::vector<Session *> ready;
    std::copy_if(clients.begin(), clients.end(), std::back_inserter(ready),
                 [](Session *client) { return !client->waiting.empty(); });
    return ready.empty() ? KILN_OK : server->serve(ready, error);
  };
  for (int round = 0; round < 32; ++round) {
    if (round < 3) {
      sessions[round].waiting = tone();
      clients.push_back(&sessions[round]);
    }
    if (const kiln_status_t status = serve(); status != KILN_OK)
      return status;
  }
  sayLoudness(sessions[2].played);
  return KILN_OK;
}

} // namespace

int main(int count, char **arguments) {
  const char *weights = count > 1 ? arguments[1] : "amp.safetensors";
  kiln_error_t error{};
  amp::Model model;
  kiln_status_t status = playEffect(weights, &error);
  if (status == KILN_OK)
    status = model.bind(weights, &error);
  if (status == KILN_OK)
    status = playTurns(model);
  if (status == KILN_OK)
    status = playSessions(model, &error);
  if (status != KILN_OK)
    std::fprintf(stderr, "%s: %s\n", error.message, amp_status_text(status));
  return status == KILN_OK ? 0 : 1;
}
