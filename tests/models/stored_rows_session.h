// SPDX-License-Identifier: Apache-2.0
//
// Calls of libraries of stored_rows.cpp.
#pragma once

#include "session.h"
#include "stored_forms.h"
#include <array>

namespace kiln::testing {

inline constexpr std::size_t depth = 128;

/// `count` rows from row `first` on; many_x has at least 33 rows, and one_x is the first row.
struct StoredInputs {
  StoredInputs(std::size_t first, std::size_t count)
      : x(numbers("rows", first * depth, count * depth)),
        many(numbers("rows", count < 33 ? 0 : first * depth, std::max<std::size_t>(count, 33) * depth)),
        one(numbers("rows", first * depth, depth)), image(numbers("pixels", 0, std::size_t{7} * 6 * 16)) {
    for (std::size_t i = first; i < first + count; ++i)
      tokens.push_back(counter_token("tokens", i, 40));
  }

  Floats x, many, one, image;
  std::vector<std::int32_t> tokens;

private:
  static Floats numbers(const char *name, std::size_t first, std::size_t count) {
    Floats values;
    for (std::size_t i = first; i < first + count; ++i)
      values.push_back(counter_uniform(name, i));
    return values;
  }
};

/// In the order of the entry's outputs.
using StoredResults = std::array<Floats, 9>;

template <class Handle>
using StoredForward = kiln_status_t(const Handle *, const kiln_call_t *, std::int64_t, std::int64_t, const float *,
                                    const float *, const float *, const std::int32_t *, const float *, float *, float *,
                                    float *, float *, float *, float *, float *, float *, float *);

template <class Handle>
StoredResults run(Session<Handle> &session, const StoredInputs &in, StoredForward<Handle> *forward) {
  const std::size_t rows = in.x.size() / depth, many = in.many.size() / depth;
  Output<float> half(rows * 51), brain(rows * 130), byte(rows * 51), four(many * 51), zero(many * 70), oneFour(51),
      oneZero(70), table(rows * 33), conv(std::size_t{5} * 4 * 24);
  session.run(forward, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(many), Input(in.x), Input(in.many),
              Input(in.one), Input(in.tokens), Input(in.image), half, brain, byte, four, zero, oneFour, oneZero, table,
              conv);
  StoredResults results;
  std::size_t next = 0;
  for (Output<float> *output : {&half, &brain, &byte, &four, &zero, &oneFour, &oneZero, &table, &conv})
    results[next++].assign(output->values().begin(), output->values().end());
  return results;
}

} // namespace kiln::testing
