// SPDX-License-Identifier: Apache-2.0
// The characters of the King James Bible; a character's position is its token.
#pragma once

#include <string_view>

namespace char_gpt {

inline constexpr std::string_view vocabulary = "\n !'(),-.:;?ABCDEFGHIJKLMNOPQRSTUVWYZabcdefghijklmnopqrstuvwxyz";
static_assert(vocabulary.size() == 63);

} // namespace char_gpt
