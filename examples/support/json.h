// SPDX-License-Identifier: Apache-2.0
//
// The subset of JSON in weight files: objects, arrays, strings with only the escapes \" and \\, numbers, literals.
#pragma once

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace support {

struct Json {
  std::string text; // of a string, number or literal
  std::vector<Json> items;
  std::map<std::string, Json> members;

  /// Returns the member; errors name it.
  const Json &at(const std::string &name) const {
    auto found = members.find(name);
    if (found == members.end())
      throw std::runtime_error("a JSON object lacks \"" + name + "\"");
    return found->second;
  }
  std::size_t number() const { return std::strtoull(text.c_str(), nullptr, 10); }
};

inline std::string read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error("cannot read \"" + path + "\"");
  return {std::istreambuf_iterator<char>(file), {}};
}

class JsonReader {
public:
  explicit JsonReader(std::string_view source) : source(source) {}

  Json read() {
    Json value;
    if (++depth > 64) // deeper than any weight file, and less than the stack can hold
      fail();
    if (take('{')) {
      for (bool isMore = !take('}'); isMore; isMore = !end('}')) {
        std::string name = string();
        expect(':');
        value.members[name] = read();
      }
    } else if (take('[')) {
      for (bool isMore = !take(']'); isMore; isMore = !end(']'))
        value.items.push_back(read());
    } else if (skip(); peek() == '"') {
      value.text = string();
    } else {
      while (std::string_view("+-.").find(peek()) != std::string_view::npos ||
             std::isalnum(static_cast<unsigned char>(peek())))
        value.text += source[at++];
      if (value.text.empty())
        fail();
    }
    --depth;
    return value;
  }

private:
  char peek() const { return at < source.size() ? source[at] : '\0'; }
  void skip() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r')
      ++at;
  }
  bool take(char c) {
    skip();
    const bool found = peek() == c;
    at += found;
    return found;
  }
  void expect(char c) {
    if (!take(c))
      fail();
  }
  /// Parses what follows an element: a comma, or the end.
  bool end(char closing) {
    if (take(','))
      return false;
    expect(closing);
    return true;
  }
  std::string string() {
    expect('"');
    std::string result;
    for (; peek() != '"'; ++at) {
      if (peek() == '\\')
        ++at;
      if (at >= source.size())
        fail();
      result += source[at];
    }
    ++at;
    return result;
  }
  [[noreturn]] void fail() const { throw std::runtime_error("no JSON at byte " + std::to_string(at)); }

  std::string_view source;
  std::size_t at = 0;
  int depth = 0;
};

/// Returns the number `name` of a file that is a JSON object.
inline std::size_t read_number(const std::string &path, const std::string &name) {
  const std::string text = read_file(path);
  return JsonReader(text).read().at(name).number();
}

} // namespace support
