// SPDX-License-Identifier: Apache-2.0
//
// The tokens of names: code points below 384 are their own tokens; a source is a token for its kind, the name, the end;
// a target begins with the start.
#pragma once

#include <cstdint>

namespace names {

inline constexpr std::int64_t vocabulary = 384, longest = 40, source_tokens = longest + 2, target_tokens = longest + 1;
inline constexpr std::int64_t batch = 128; // in training
inline constexpr std::int32_t start = 1, end = 2, first_kind = 3;

} // namespace names
