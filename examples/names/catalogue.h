// SPDX-License-Identifier: Apache-2.0
//
// English and French names from the compiled catalogues of Debian's iso-codes (gettext's MO files), in the selection of
// count.py.
#pragma once

#include "names.h"
#include "support/json.h"

#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>
#include <zlib.h>

namespace names {

inline constexpr const char *catalogues = "/usr/share/locale/fr/LC_MESSAGES";
inline constexpr const char *kinds[] = {"place", "language", "currency", "script"};

struct Pair {
  int kind;
  std::string english, french;
};

/// Returns the code points of a text in UTF-8; nothing if one is no token, or if there are too many.
inline std::vector<std::int32_t> tokens_of(const std::string &text) {
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    std::int32_t token = byte;
    if (byte >= 0xC0 && byte < 0xE0 && i + 1 < text.size())
      token = (byte & 0x1F) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3F);
    else if (byte >= 0x80)
      return {};
    if (token >= vocabulary || tokens.size() == longest)
      return {};
    tokens.push_back(token);
  }
  return tokens;
}

/// Returns the entries' input for a name.
inline std::vector<std::int32_t> source_of(int kind, const std::string &english) {
  std::vector<std::int32_t> source = tokens_of(english);
  source.insert(source.begin(), first_kind + kind);
  source.push_back(end);
  return source;
}

inline std::string text_of(std::int32_t token) {
  if (token < 0x80)
    return {static_cast<char>(token)};
  return {static_cast<char>(0xC0 | token >> 6), static_cast<char>(0x80 | (token & 0x3F))};
}

/// Returns the pairs (message, translation) of a catalogue.
inline std::vector<std::pair<std::string, std::string>> read_catalogue(const std::string &path) {
  const std::string data = support::read_file(path);
  auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    if (at + sizeof value > data.size())
      throw std::runtime_error("\"" + path + "\" ends too early for a catalogue");
    std::memcpy(&value, data.data() + at, sizeof value);
    return value;
  };
  if (number(0) != 0x950412de)
    throw std::runtime_error("\"" + path + "\" is no catalogue of this machine's byte order");
  auto text = [&](std::size_t table, std::size_t i) {
    const std::size_t length = number(table + 8 * i), at = number(table + 8 * i + 4);
    if (at + length > data.size())
      throw std::runtime_error("\"" + path + "\" ends too early for a catalogue");
    const std::string all = data.substr(at, length);
    return all.substr(all.rfind('\4') + 1); // after the context
  };
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::size_t i = 0; i < number(8); ++i)
    pairs.emplace_back(text(number(12), i), text(number(16), i));
  return pairs;
}

/// A tenth of all pairs is the test set, selected by the CRC-32 of the English name.
struct Pairs {
  std::vector<Pair> training, test;
};

/// Returns no pairs if the catalogues do not exist.
inline Pairs read_pairs(const std::string &folder) {
  const std::vector<std::vector<std::string>> parts = {
      {"3166-1", "3166-2", "3166-3"}, {"639-2", "639-3", "639-5"}, {"4217"}, {"15924"}};
  Pairs pairs;
  if (!std::filesystem::exists(folder + "/iso_3166-1.mo"))
    return pairs;
  for (int kind = 0; kind < static_cast<int>(parts.size()); ++kind) {
    std::set<std::string> seen;
    for (const std::string &part : parts[static_cast<std::size_t>(kind)])
      for (const auto &[english, french] : read_catalogue(folder + "/iso_" + part + ".mo")) {
        if (tokens_of(english).empty() || tokens_of(french).empty() || !seen.insert(english).second)
          continue;
        const auto *bytes = reinterpret_cast<const unsigned char *>(english.data());
        const bool is_test = crc32(0, bytes, static_cast<uInt>(english.size())) % 10 == 0;
        (is_test ? pairs.test : pairs.training).push_back({kind, english, french});
      }
  }
  return pairs;
}

} // namespace names
