// SPDX-License-Identifier: Apache-2.0
//
// The results of the two small models of these tests for constant inputs.
#pragma once

#include "pair.h"
#include "session.h"
#include "small.h"

#include <cmath>
#include <vector>

namespace kiln::testing {

inline std::vector<float> codes(Session<pair_t> &session, std::int64_t rows) {
  std::vector<float> x(rows * 6);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(static_cast<float>(i));
  Output<float> code(rows * 10);
  session.run(pair_encode, rows, Input<float>(x), code);
  return {code.values().begin(), code.values().end()};
}

inline std::vector<float> logits(Session<small_t> &session, std::int64_t tokens) {
  std::vector<std::int32_t> words(tokens);
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = static_cast<std::int32_t>(i * 7 % 11);
  Output<float> result(tokens * 11);
  session.run(small_forward, std::int64_t{1}, tokens, Input(words),
              Input<std::int32_t>({static_cast<std::int32_t>(tokens)}), result);
  return {result.values().begin(), result.values().end()};
}

} // namespace kiln::testing
