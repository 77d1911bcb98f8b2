// SPDX-License-Identifier: Apache-2.0
//
// What every example needs for a call: an exit with a message if it fails, and memory for an arena.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#ifndef KILN_RUNTIME_H
#error "session.h: no generated library; expected its header to be included first"
#endif

namespace support {

[[noreturn]] inline void stop(const std::string &message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

/// What a call needs in addition to the model, on one thread: `check(model.forward(session.call, ...))`. The arena is
/// zero-initialised, which resets the states of a model.
class Session {
public:
  explicit Session(std::size_t arenaBytes) {
    const std::size_t bytes = (arenaBytes + KILN_ARENA_ALIGNMENT - 1) / KILN_ARENA_ALIGNMENT * KILN_ARENA_ALIGNMENT;
    arena.reset(std::aligned_alloc(KILN_ARENA_ALIGNMENT, bytes));
    if (!arena)
      stop("no memory for an arena of " + std::to_string(bytes) + " bytes");
    std::memset(arena.get(), 0, bytes);
    call = {arena.get(), bytes, nullptr, &error};
  }
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  /// Stops the program if the status is a failure.
  void check(kiln_status_t status) const {
    if (status != KILN_OK)
      stop(error.message);
  }

  kiln_error_t error{};
  kiln_call_t call{};

private:
  struct Free {
    void operator()(void *memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> arena;
};

} // namespace support
