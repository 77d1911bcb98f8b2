// SPDX-License-Identifier: Apache-2.0
//
// A server that plays for many clients: one model for all threads, a state for each client, and one call for all
// clients with pending samples.
#pragma once

#include "amp.hpp"
#include <algorithm>
#include <vector>

/// The server's data of a client. A copy of `states` forks the session.
struct Session {
  alignas(KILN_ARENA_ALIGNMENT) std::byte states[AMP_STATE_BYTES]{};
  std::vector<float> waiting, played;
};

/// Each thread of the server has one. Two of them must not serve the same session concurrently.
class Server {
public:
  explicit Server(const amp::Model &model) : model(model) {}

  /// Processes waiting samples of at most AMP_PLAY_BATCH_SEQUENCES_MAX sessions. On failure nothing changes.
  kiln_status_t serve(kiln::Span<Session *const> sessions, kiln_error_t *error) {
    std::vector<std::int64_t> samples;
    std::vector<kiln_sequence_t> sequences;
    std::vector<float> clean;
    samples.reserve(sessions.size()); // sequences point there
    for (Session *session : sessions) {
      const std::size_t share = std::min(session->waiting.size(), AMP_PLAY_BATCH_ROWS_MAX / sessions.size());
      clean.insert(clean.end(), session->waiting.begin(), session->waiting.begin() + share);
      samples.push_back(static_cast<std::int64_t>(share));
      sequences.push_back({session->states, &samples.back()});
    }
    std::vector<float> driven(clean.size());
    const kiln_call_t call{arena, sizeof arena, nullptr, error};
    const kiln_status_t status = model.play_batch(call, sequences, clean, driven);
    if (status != KILN_OK)
      return status;
    auto from = driven.begin();
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      Session &session = *sessions[i];
      session.played.insert(session.played.end(), from, from + samples[i]);
      session.waiting.erase(session.waiting.begin(), session.waiting.begin() + samples[i]);
      from += samples[i];
    }
    return KILN_OK;
  }

private:
  const amp::Model &model;
  alignas(KILN_ARENA_ALIGNMENT) std::byte arena[AMP_PLAY_BATCH_ARENA_BYTES(1)];
};
