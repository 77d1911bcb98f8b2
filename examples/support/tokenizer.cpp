// SPDX-License-Identifier: Apache-2.0
#include "tokenizer.h"
#include "config.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace support {

namespace {

constexpr std::string_view spaces = " \t\n\r\f\v";

} // namespace

Tokenizer::Tokenizer(Parts all) : parts(std::move(all)) {
  std::stable_sort(parts.added.begin(), parts.added.end(),
                   [](const Added &a, const Added &b) { return a.name.size() > b.name.size(); });
}

std::vector<Token> Tokenizer::encode(std::string_view text, Specials specials, bool isFirst) const {
  std::vector<Token> tokens;
  auto encode_plain = [&](std::string_view plain) {
    if (!plain.empty())
      parts.encode(plain, isFirst, tokens);
    isFirst = false;
  };
  if (specials == Specials::text) {
    encode_plain(text);
    return tokens;
  }
  std::string firsts;
  for (const Added &added : parts.added)
    firsts += added.name.substr(0, 1);
  std::size_t begin = 0, at = 0; // begin and end of the plain text before the next added token
  while ((at = text.find_first_of(firsts, at)) != text.npos) {
    const auto fits = [&](const Added &added) { return text.substr(at).starts_with(added.name); };
    const auto found = std::find_if(parts.added.begin(), parts.added.end(), fits);
    if (found == parts.added.end()) {
      ++at;
      continue;
    }
    std::string_view plain = text.substr(begin, at - begin);
    if (found->takes_space_before)
      plain = plain.substr(0, plain.find_last_not_of(spaces) + 1);
    if (!plain.empty())
      encode_plain(plain);
    isFirst = false;
    tokens.push_back(found->token);
    at += found->name.size();
    if (found->takes_space_after)
      at = std::min(text.find_first_not_of(spaces, at), text.size());
    begin = at;
  }
  encode_plain(text.substr(begin));
  return tokens;
}

std::optional<Token> Tokenizer::find(const std::string &name) const {
  const auto found = parts.names.find(name);
  return found == parts.names.end() ? std::nullopt : std::optional(found->second);
}

std::string_view Tokenizer::bytes(Token token) const {
  return token >= 0 && static_cast<std::size_t>(token) < size() ? std::string_view(parts.bytes[token])
                                                                : std::string_view();
}

std::string TextStream::push(Token token) {
  std::string_view bytes = tokenizer.bytes(token);
  if (bytes.empty())
    return {};
  if (isFirst && bytes[0] == ' ')
    bytes.remove_prefix(1);
  isFirst = false;
  return stream.push(bytes);
}

std::string decode(const Tokenizer &tokenizer, const std::vector<Token> &tokens) {
  std::string text;
  for (Token token : tokens)
    text += tokenizer.bytes(token);
  return tokenizer.drops_first_space() && text.starts_with(' ') ? text.substr(1) : text;
}

Tokenizer load_tokenizer(const std::string &folder) {
  auto path = [&](const char *file) { return folder + "/" + file; };
  auto has = [&](const char *file) { return std::filesystem::exists(path(file)); };
  if (has("tokenizer.json"))
    return tokenizer_of_json(read_whole_file(path("tokenizer.json")));
  if (has("vocab.json") && has("merges.txt"))
    return tokenizer_of_merges(read_whole_file(path("vocab.json")), read_whole_file(path("merges.txt")));
  if (has("vocab.txt")) {
    const bool isStated = has("tokenizer_config.json");
    return tokenizer_of_pieces(read_whole_file(path("vocab.txt")),
                               !isStated || Config::read(path("tokenizer_config.json")).boolean("do_lower_case", true));
  }
  for (const char *file : {"tokenizer.model", "spiece.model"})
    if (has(file))
      return tokenizer_of_sentencepiece(path(file));
  throw std::runtime_error("\"" + folder +
                           "\" has no tokenizer.json, no vocab.json with merges.txt, no vocab.txt, no tokenizer.model");
}

} // namespace support
