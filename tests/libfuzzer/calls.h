// SPDX-License-Identifier: Apache-2.0
//
// A call of a generated library that an input's bytes determine: its arguments, the errors in them, and so the
// permitted statuses of the call. Correct buffers are between guard pages.
#pragma once

#include "buffers.h"
#include "kiln/runtime.h"
#include "require.h"

#include <algorithm>
#include <array>
#include <climits>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace kiln_fuzz {

using kiln::testing::Guard;
using kiln::testing::GuardedMemory;

/// The bytes of an input, one after the other, followed by zeros, which select correct arguments.
class Choices {
public:
  Choices(const uint8_t *data, size_t size) : data(data), end(data + size) {}
  uint8_t next() { return data == end ? 0 : *data++; }
  /// Returns one of the first `count` numbers.
  uint32_t below(uint32_t count) { return next() % count; }
  /// Whether to make an error here: one input in sixteen does.
  bool isWrong() { return next() % 16 == 15; }

private:
  const uint8_t *data, *end;
};

/// The common arguments of entries: an arena, an executor, an error buffer.
class Call {
public:
  /// arenaBytes: returns the arena's size for a number of workers.
  Call(Choices &choices, size_t (*arenaBytes)(size_t workers));

  /// Returns a dimension within its bounds, or an incorrect one.
  int64_t extent(int64_t min, int64_t max);
  /// Returns the pointer, or null.
  template <class T> T *pointer(T *right) {
    if (!choices.isWrong())
      return right;
    allow(KILN_NULL_ARGUMENT);
    return nullptr;
  }
  /// Fills in indices from `first` up to `limit`, one of which may be out of range.
  void fillIndices(int32_t *values, size_t count, int32_t first, int32_t limit);
  /// Records an error in the arguments, and its status.
  void allow(kiln_status_t status) { statuses.insert(status); }
  bool isRight() const { return statuses.empty(); }
  /// Checks the call's status and outputs: nothing is written, or the same as for each call with the same key, which
  /// identifies the arguments.
  void check(kiln_status_t status, const std::vector<const GuardedMemory *> &outputs, std::vector<int64_t> key = {});

  Choices &choices;
  Guard guard;
  /// Returns the call argument of an entry, which may be null.
  const kiln_call_t *given() const { return isNull ? nullptr : &call; }

private:
  std::set<kiln_status_t> statuses;
  kiln_error_t error = {KILN_INTERNAL_ERROR, "untouched"};
  kiln_executor_t executor = {};
  kiln_call_t call = {};
  bool isNull;
  std::optional<GuardedMemory> arena;
};

} // namespace kiln_fuzz
