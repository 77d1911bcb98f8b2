// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

namespace kiln_fuzz {

/// Runs each task with another worker number, one after the other.
static void runInTurns(void *self, uint32_t count, void (*task)(void *, uint32_t, uint32_t), void *context) {
  const uint32_t workers = static_cast<const kiln_executor_t *>(self)->workers;
  for (uint32_t i = 0; i < count; ++i)
    task(context, i, i % workers);
}

Call::Call(Choices &choices, size_t (*arenaBytes)(size_t workers))
    : choices(choices), guard(choices.below(2) ? Guard::front : Guard::back), isNull(choices.isWrong()) {
  const uint32_t workers = 1 + choices.below(3);
  executor = {&executor, workers, runInTurns};
  call.executor = workers > 1 || choices.below(2) ? &executor : nullptr;
  call.error = choices.below(4) < 3 ? &error : nullptr;
  size_t bytes = arenaBytes(workers), shift = 0;
  if (isNull)
    allow(KILN_NULL_ARGUMENT);
  if (choices.isWrong()) {
    allow(KILN_ARENA_TOO_SMALL);
    bytes -= std::array<size_t, 4>{1, 64, bytes / 2, bytes}[choices.below(4)];
  }
  if (choices.isWrong()) {
    allow(KILN_ARENA_MISALIGNED);
    shift = 1 + choices.below(KILN_ARENA_ALIGNMENT - 1);
  }
  // Bytes after the end would let an arena that is too small pass.
  const size_t rounded = (bytes + shift + KILN_ARENA_ALIGNMENT - 1) / KILN_ARENA_ALIGNMENT * KILN_ARENA_ALIGNMENT;
  arena.emplace(rounded, guard);
  call.arena = pointer(arena->data() + shift);
  call.arena_bytes = bytes;
  if (choices.isWrong() && call.executor) {
    if (choices.below(2)) {
      allow(KILN_NULL_ARGUMENT);
      executor.parallel_for = nullptr;
    } else {
      allow(KILN_INVALID_ARGUMENT);
      executor.workers = 0;
    }
  }
  if (choices.isWrong()) {
    static constexpr kiln_trace_t withoutFunctions = {};
    const uint32_t field = choices.below(4);
    allow(field == 0 ? KILN_NULL_ARGUMENT : KILN_INVALID_ARGUMENT);
    if (field == 0)
      call.trace = &withoutFunctions;
    else if (field == 1)
      call.reserved[0] = &call;
    else if (field == 2)
      call.stream = &call;
    else
      call.memory = choices.next() + 1;
  }
}

int64_t Call::extent(int64_t min, int64_t max) {
  if (!choices.isWrong())
    return min + choices.below(static_cast<uint32_t>(max - min + 1));
  allow(KILN_EXTENT_OUT_OF_RANGE);
  const int64_t wrong[] = {min - 1, max + 1, -1, INT64_MIN, INT64_MAX, (int64_t{1} << 32) + min, INT32_MIN};
  return wrong[choices.below(std::size(wrong))];
}

void Call::fillIndices(int32_t *values, size_t count, int32_t first, int32_t limit) {
  for (size_t i = 0; i < count; ++i)
    values[i] = first + static_cast<int32_t>(i * 7 % static_cast<size_t>(limit - first));
  if (!choices.isWrong())
    return;
  allow(KILN_INDEX_OUT_OF_RANGE);
  const int32_t wrong[] = {first - 1, limit, INT32_MIN, INT32_MAX};
  values[choices.next() % count] = wrong[choices.below(std::size(wrong))];
}

void Call::check(kiln_status_t status, const std::vector<const GuardedMemory *> &outputs, std::vector<int64_t> key) {
  require(isRight() ? status == KILN_OK : statuses.contains(status), "a status for what is wrong");
  require(arena->isIntact(), "an arena outside of which nothing is written");
  std::vector<unsigned char> written;
  for (const GuardedMemory *output : outputs) {
    require(output->isIntact(), "outputs outside of which nothing is written");
    written.insert(written.end(), output->data(), output->data() + output->size());
  }
  if (!isNull && call.error)
    require(error.status == status && (*error.message != 0) == (status != KILN_OK),
            "words with a failure, and no others");
  if (!isRight()) {
    const auto isPoison = [](unsigned char byte) { return byte == GuardedMemory::poison; };
    require(std::all_of(written.begin(), written.end(), isPoison), "outputs of a refused call as they were");
    return;
  }
  static std::map<std::vector<int64_t>, std::vector<unsigned char>> known;
  require(known.try_emplace(std::move(key), written).first->second == written, "the same bits for the same input");
}

} // namespace kiln_fuzz
