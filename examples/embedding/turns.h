// SPDX-License-Identifier: Apache-2.0
//
// A game with many amplifiers, of which each frame plays one in turn, on the game's own threads.
#pragma once

#include "amp.hpp"
#include <memory>
#include <vector>

/// Jobs is the game's job system: threads() returns its number of threads, run(count, job) calls job(index, thread) for
/// each index below count and returns when all are done. Concurrent jobs have different thread numbers.
template <class Jobs> class Turns {
public:
  Turns(const amp::Model &model, Jobs &jobs, std::size_t players)
      : model(model), executor{&jobs, jobs.threads(), runTasks},
        arena(AMP_PLAY_BATCH_ARENA_BYTES(jobs.threads()) + KILN_ARENA_ALIGNMENT - 1), states(players) {
    void *begin = arena.data();
    std::size_t bytes = arena.size();
    call.arena = std::align(KILN_ARENA_ALIGNMENT, AMP_PLAY_BATCH_ARENA_BYTES(jobs.threads()), begin, bytes);
    call.arena_bytes = bytes;
    call.executor = &executor;
  }
  Turns(const Turns &) = delete;

  /// Runs the model for one player. All players share one arena, since each player has separate states.
  kiln_status_t frame(kiln::Span<const float> clean, kiln::Span<float> driven) {
    const auto samples = static_cast<std::int64_t>(clean.size());
    const kiln_sequence_t player{states[turn].bytes, &samples};
    turn = (turn + 1) % states.size();
    return model.play_batch(call, {&player, 1}, clean, driven);
  }

private:
  static void runTasks(void *jobs, std::uint32_t count, void (*task)(void *, std::uint32_t, std::uint32_t),
                       void *context) {
    static_cast<Jobs *>(jobs)->run(count,
                                   [=](std::uint32_t index, std::uint32_t thread) { task(context, index, thread); });
  }
  struct alignas(KILN_ARENA_ALIGNMENT) States {
    std::byte bytes[AMP_STATE_BYTES]{};
  };

  const amp::Model &model;
  const kiln_executor_t executor;
  std::vector<std::byte> arena;
  std::vector<States> states;
  std::size_t turn = 0;
  kiln_call_t call{};
};
