// SPDX-License-Identifier: Apache-2.0
//
// A call of a generated library that an input's bytes make: what is given, what is wrong with it, and so which statuses
// the call may have. What is right is between pages that nobody may touch.
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

/// The bytes of an input, one after the other; zeros behind them, which stand for what is right.
class Choices {
public:
  Choices(const uint8_t *data, size_t size) : data(data), end(data + size) {}
  uint8_t next() { return data == end ? 0 : *data++; }
  /// One of the first `count` numbers.
  uint32_t below(uint32_t count) { return next() % count; }
  /// One input in sixteen has something wrong here.
  bool isWrong() { return next() % 16 == 15; }

private:
  const uint8_t *data, *end;
};

/// What entries have in common: an arena, an executor, a place for words.
class Call {
public:
  /// arenaBytes: for so many workers.
  Call(Choices &choices, size_t (*arenaBytes)(size_t workers));

  /// An extent within its bounds, or not.
  int64_t extent(int64_t min, int64_t max);
  /// A pointer, or null.
  template <class T> T *pointer(T *right) {
    if (!choices.isWrong())
      return right;
    allow(KILN_NULL_ARGUMENT);
    return nullptr;
  }
  /// Indices from `first` up to `limit`, one of which may be wrong.
  void fillIndices(int32_t *values, size_t count, int32_t first, int32_t limit);
  /// Something is wrong, of which this is the status.
  void allow(kiln_status_t status) { statuses.insert(status); }
  bool isRight() const { return statuses.empty(); }
  /// The status of the call, and what it wrote: nothing, or the same as each time for a key, which says what was given.
  void check(kiln_status_t status, const std::vector<const GuardedMemory *> &outputs, std::vector<int64_t> key = {});

  Choices &choices;
  Guard guard;
  /// What an entry is given; null for a call that is null.
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
