// SPDX-License-Identifier: Apache-2.0
//
// Names of entries, inputs and outputs: they become identifiers of the generated C and C++ headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <tuple>
#include <vector>

namespace kiln {

constexpr bool same_text(const char *a, const char *b) {
  for (; *a && *a == *b; ++a)
    ++b;
  return *a == *b;
}

/// Returns an empty name for a null one; the rules reject empty names.
constexpr const char *or_empty(const char *name) { return name ? name : ""; }

/// Names of an entry's inputs or outputs, or patterns of names, at most 16.
struct Names {
  static constexpr int capacity = 16;
  const char *items[capacity]{};
  int count = 0;

  constexpr Names() = default;
  constexpr Names(std::initializer_list<const char *> names) {
    for (const char *name : names)
      if (count++ < capacity) // the entry reports a surplus of names
        items[count - 1] = or_empty(name);
  }

  /// Makes `outputs(a, b)` work in a function of a model, where `outputs` is the Names member, which hides
  /// kiln::outputs.
  template <class... Results> constexpr auto operator()(const Results &...results) const {
    return std::tuple<Results...>{results...};
  }
};

namespace detail {

// clang-format off
inline constexpr const char *keywords[] = { // keywords of C11 and C++20
  "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
  "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const",
  "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
  "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
  "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
  "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "restrict", "return", "short",
  "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local",
  "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
  "wchar_t", "while", "xor", "xor_eq"};
// clang-format on

/// Whether a name is an identifier in C and in C++. Names with a leading underscore are reserved for the
/// implementation.
constexpr bool is_identifier(const char *name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (!letter(*name))
    return false;
  for (const char *c = name; *c; ++c)
    if (!letter(*c) && *c != '_' && !(*c >= '0' && *c <= '9'))
      return false;
  for (const char *keyword : keywords)
    if (same_text(keyword, name))
      return false;
  return true;
}

/// Whether a name is valid in a weight file, the manifest and a string of the headers; braces are reserved for a
/// stack's index.
constexpr bool is_printable(const char *name) {
  for (const char *c = name; *c; ++c)
    if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\' || *c == '{' || *c == '}')
      return false;
  return true;
}

constexpr bool has_dot(const char *name) {
  for (; *name; ++name)
    if (*name == '.')
      return true;
  return false;
}

/// Whether a name matches a pattern, in which each * stands for any characters.
constexpr bool matches(const char *pattern, const char *name) {
  if (*pattern == '*')
    return matches(pattern + 1, name) || (*name && matches(pattern, name + 1));
  return *pattern == *name && (!*name || matches(pattern + 1, name + 1));
}

/// Edit distance: the number of characters to change, add or remove so that the name matches the pattern.
constexpr int distance(const char *pattern, const char *name) {
  std::vector<int> least{0}; // indexed by the length of the name's prefix
  for (const char *c = name; *c; ++c)
    least.push_back(least.back() + 1);
  for (; *pattern; ++pattern) {
    int diagonal = least[0];
    if (*pattern != '*')
      ++least[0];
    for (std::size_t i = 1; i < least.size(); ++i) {
      const int above = least[i];
      if (*pattern == '*')
        least[i] = above < least[i - 1] ? above : least[i - 1];
      else {
        const int changed = diagonal + (*pattern != name[i - 1]),
                  other = (above < least[i - 1] ? above : least[i - 1]) + 1;
        least[i] = changed < other ? changed : other;
      }
      diagonal = above;
    }
  }
  return least.back();
}

/// Continues an FNV-1a hash with a character or a text.
constexpr std::uint64_t hashed(std::uint64_t hash, char character) {
  return (hash ^ static_cast<unsigned char>(character)) * 1099511628211u;
}
constexpr std::uint64_t hashed(std::uint64_t hash, const char *text) {
  for (; *text; ++text)
    hash = hashed(hash, *text);
  return hash;
}

/// Whether a text of the hash `owner` followed by `name` consists of a prefix and a digit after it, and whatever
/// follows. `prefixes`: the hashes of the prefixes. The digit is in `name`.
constexpr bool continues_with_digit(std::uint64_t owner, const char *name, const std::vector<std::uint64_t> &prefixes) {
  for (std::uint64_t hash = owner; *name; hash = hashed(hash, *name++))
    if (*name >= '0' && *name <= '9')
      for (std::uint64_t prefix : prefixes)
        if (prefix == hash)
          return true;
  return false;
}

} // namespace detail
} // namespace kiln
