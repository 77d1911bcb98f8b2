// SPDX-License-Identifier: Apache-2.0
//
// Converts bytes that arrive in pieces to valid UTF-8: an incomplete character is held back until it is complete, and
// invalid bytes become U+FFFD, one for each maximal prefix of a character (Unicode, section 3.9, "substitution of
// maximal subparts").
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace support {

namespace detail {

struct Utf8 {
  std::size_t bytes;             // of the character, or of the longest prefix of one, at least 1
  enum { whole, cut, bad } kind; // `cut`: the text ends within it
};

/// Classifies the beginning of `text`, which is not empty.
inline Utf8 first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0)
    return {1, Utf8::bad};
  // The second byte excludes overlong encodings, surrogates, and code points above U+10FFFF.
  const unsigned low = lead == 0xE0   ? 0xA0
                       : lead == 0xF0 ? 0x90
                                      : 0x80,
                 high = lead == 0xED   ? 0x9F
                        : lead == 0xF4 ? 0x8F
                                       : 0xBF;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size())
      return {i, Utf8::cut};
    if (byte(i) < (i == 1 ? low : 0x80) || byte(i) > (i == 1 ? high : 0xBF))
      return {i, Utf8::bad};
  }
  return {length, Utf8::whole};
}

} // namespace detail

/// Returns the bytes of the first character of a text that is not empty; 1 if it is invalid.
inline std::size_t character_bytes(std::string_view text) {
  const detail::Utf8 first = detail::first_character(text);
  return first.kind == detail::Utf8::whole ? first.bytes : 1;
}

class Utf8Stream {
public:
  /// Returns the text that can be written now.
  std::string push(std::string_view bytes) {
    held += bytes;
    return take(false);
  }
  /// Returns the rest, at the end of the text.
  std::string finish() { return take(true); }

private:
  std::string take(bool isEnd) {
    std::string result;
    std::size_t at = 0;
    while (at < held.size()) {
      const std::string_view rest = std::string_view(held).substr(at);
      const detail::Utf8 first = detail::first_character(rest);
      if (first.kind == detail::Utf8::cut && !isEnd)
        break;
      result += first.kind == detail::Utf8::whole ? rest.substr(0, first.bytes) : "\xEF\xBF\xBD";
      at += first.bytes;
    }
    held.erase(0, at);
    return result;
  }

  std::string held;
};

} // namespace support
