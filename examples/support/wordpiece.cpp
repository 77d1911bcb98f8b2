// SPDX-License-Identifier: Apache-2.0
#include "wordpiece.h"

#include <stdexcept>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

namespace support {

namespace {

bool is_space(UChar32 c) { return c == '\t' || c == '\n' || c == '\r' || u_charType(c) == U_SPACE_SEPARATOR; }

/// Whether a character is NUL, U+FFFD or in Unicode's categories of other characters.
bool is_control(UChar32 c) {
  if (c == 0 || c == 0xFFFD)
    return true;
  const auto type = u_charType(c);
  return !is_space(c) && (type == U_CONTROL_CHAR || type == U_FORMAT_CHAR || type == U_SURROGATE ||
                          type == U_PRIVATE_USE_CHAR || type == U_UNASSIGNED);
}

bool is_punctuation(UChar32 c) {
  const bool isAscii = (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  return isAscii || u_ispunct(c);
}

/// Whether a character is in the blocks of ideographs, which exclude Japanese and Korean letters.
bool is_chinese(UChar32 c) {
  constexpr struct {
    UChar32 first, last;
  } blocks[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  for (const auto &block : blocks)
    if (c >= block.first && c <= block.last)
      return true;
  return false;
}

icu::UnicodeString decomposed(const icu::UnicodeString &text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2 *form = icu::Normalizer2::getNFDInstance(status);
  icu::UnicodeString result = U_SUCCESS(status) ? form->normalize(text, status) : text;
  if (U_FAILURE(status))
    throw std::runtime_error(std::string("ICU cannot decompose the text: ") + u_errorName(status));
  return result;
}

std::string utf8(UChar32 c) {
  std::string bytes;
  return icu::UnicodeString(c).toUTF8String(bytes);
}

} // namespace

void WordPiece::encode(std::string_view text, std::vector<Token> &out) const {
  icu::UnicodeString characters = icu::UnicodeString::fromUTF8({text.data(), static_cast<std::int32_t>(text.size())});
  if (options.strips_accents)
    characters = decomposed(characters);
  std::vector<std::string> word;
  auto end_word = [&] {
    if (!word.empty())
      encode_word(word, out);
    word.clear();
  };
  for (std::int32_t at = 0; at < characters.length(); at = characters.moveIndex32(at, 1)) {
    UChar32 c = characters.char32At(at);
    if ((options.cleans && is_control(c)) || (options.strips_accents && u_charType(c) == U_NON_SPACING_MARK))
      continue;
    if (is_space(c) || u_isUWhiteSpace(c)) {
      end_word();
      continue;
    }
    c = options.lowers ? u_tolower(c) : c;
    const bool isAlone = is_punctuation(c) || (options.parts_chinese && is_chinese(c));
    if (isAlone)
      end_word();
    word.push_back(utf8(c));
    if (isAlone)
      end_word();
  }
  end_word();
}

void WordPiece::encode_word(const std::vector<std::string> &characters, std::vector<Token> &out) const {
  const std::size_t count = out.size();
  std::size_t begin = 0;
  while (begin < characters.size() && characters.size() <= options.longest) {
    std::string piece = begin ? options.inner : "";
    std::size_t end = begin;
    Token token = -1;
    for (std::size_t i = begin; i < characters.size(); ++i) {
      piece += characters[i];
      if (const auto found = tokens.find(piece); found != tokens.end()) {
        token = found->second;
        end = i + 1;
      }
    }
    if (end == begin)
      break;
    out.push_back(token);
    begin = end;
  }
  if (begin == characters.size())
    return;
  out.resize(count);
  out.push_back(options.unknown);
}

} // namespace support
