// SPDX-License-Identifier: Apache-2.0
#include "equal_ranks.h"

#include <cstdio>
#include <cstring>

namespace kiln::realtime {

/// Sums `size` equal inputs.
template <class Number> static void addUp(void *to, const void *from, uint64_t elements, uint32_t size) {
  for (uint64_t i = 0; i < elements; ++i) {
    Number value;
    std::memcpy(&value, static_cast<const char *>(from) + i * sizeof value, sizeof value);
    value *= static_cast<Number>(size);
    std::memcpy(static_cast<char *>(to) + i * sizeof value, &value, sizeof value);
  }
}

kiln_status_t EqualRanks::begin(void *self, const kiln_collective_t *what, kiln_error_t *error) {
  const auto &[own, rank, size, ignoredBegin, ignoredFinish, ignoredPoll] =
      static_cast<const EqualRanks *>(self)->communicator;
  static constexpr uint64_t sizes[] = {4, 2, 2, 4, 1, 1};
  const uint64_t bytes = what->elements * sizes[what->element];
  const auto *from = static_cast<const char *>(what->kind == KILN_ALL_REDUCE ? what->to : what->from);
  if (what->kind == KILN_REDUCE_SCATTER || what->kind == KILN_EXCHANGE)
    from += rank * bytes; // the part that each of the others has for this rank
  switch (what->kind) {
  case KILN_ALL_REDUCE:
  case KILN_REDUCE_SCATTER:
    if (what->element == KILN_F32)
      return addUp<float>(what->to, from, what->elements, size), KILN_OK;
    if (what->element == KILN_I32)
      return addUp<int32_t>(what->to, from, what->elements, size), KILN_OK;
    break;
  case KILN_ALL_GATHER:
  case KILN_EXCHANGE:
    for (uint32_t other = 0; other < size; ++other)
      std::memmove(static_cast<char *>(what->to) + other * bytes, from, bytes);
    return KILN_OK;
  case KILN_SEND:
    return KILN_OK;
  case KILN_RECEIVE:
    std::memset(what->to, 0, bytes);
    return KILN_OK;
  default:
    break;
  }
  std::snprintf(error->message, sizeof error->message, "equal ranks do not know collective %d of element type %u",
                static_cast<int>(what->kind), what->element);
  return KILN_INVALID_ARGUMENT;
}

kiln_status_t EqualRanks::finish(void *, kiln_error_t *) { return KILN_OK; }

} // namespace kiln::realtime
