// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/CompilerOutput.h"

#include <cctype>
#include <cstdlib>
#include <filesystem>

namespace fs = std::filesystem;

namespace kiln::diagnose {
namespace {

bool isDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  return text;
}

/// Parses a line "FILE:LINE:" or "FILE:LINE:COLUMN:", followed by a text.
std::optional<Remark> readRemark(std::string_view line) {
  for (std::size_t colon = line.find(':'); colon != std::string_view::npos; colon = line.find(':', colon + 1)) {
    std::size_t end = colon + 1;
    while (end < line.size() && isDigit(line[end]))
      ++end;
    if (colon == 0 || end == colon + 1 || end >= line.size() || line[end] != ':')
      continue;
    Remark remark{{std::string(line.substr(0, colon)), std::atoi(line.data() + colon + 1)}, {}};
    std::size_t column = end + 1;
    while (column < line.size() && isDigit(line[column]))
      ++column;
    if (column > end + 1 && column < line.size() && line[column] == ':')
      end = column;
    remark.text = trimmed(line.substr(end + 1));
    return remark;
  }
  return std::nullopt;
}

/// Returns the text after one of the prefixes.
std::optional<std::string> after(const std::string &text, std::initializer_list<const char *> prefixes) {
  for (std::string_view prefix : prefixes)
    if (text.starts_with(prefix))
      return text.substr(prefix.size());
  return std::nullopt;
}

bool isInclusion(std::string_view line) {
  return line.starts_with("In file included from") || trimmed(line).starts_with("from ");
}

/// Returns a string literal's content, up to its closing quote. g++ prints a byte above 127 as an octal number, of a
/// char that is sign-extended to an int: \37777777703.
std::string unescaped(std::string_view literal) {
  std::string text;
  for (std::size_t i = 0; i < literal.size() && literal[i] != '"'; ++i) {
    if (literal[i] == '\\' && i + 1 < literal.size())
      ++i;
    const bool isEscaped = i > 0 && literal[i - 1] == '\\' && literal[i] >= '0' && literal[i] <= '7';
    const std::size_t most = isEscaped ? (literal.substr(i).starts_with("37777777") ? 11 : 3) : 0;
    unsigned long value = 0;
    std::size_t end = i;
    for (; end < literal.size() && end - i < most && literal[end] >= '0' && literal[end] <= '7'; ++end)
      value = value * 8 + static_cast<unsigned long>(literal[end] - '0');
    if (isEscaped)
      text += static_cast<char>(value & 0xff), i = end - 1;
    else
      text += literal[i];
  }
  return text;
}

/// Returns the string that character literals such as 'a', 'b', '\'', '\xC3'> spell.
std::string spelled(std::string_view letters) {
  std::string text;
  for (std::size_t i = 0; i < letters.size() && letters[i] != '>';) {
    if (letters[i] != '\'') {
      ++i;
      continue;
    }
    ++i;
    if (i < letters.size() && letters[i] == '\\')
      ++i;
    if (letters.substr(i).starts_with("x") && i + 3 < letters.size() && letters[i + 3] == '\'') {
      text += static_cast<char>(std::strtol(std::string(letters.substr(i + 1, 2)).c_str(), nullptr, 16));
      i += 2;
    } else if (i < letters.size()) {
      text += letters[i];
    }
    i += 2;
  }
  return text;
}

/// Returns the position at which the brace, parenthesis or angle bracket at `open` is closed; npos if it is not.
std::size_t findClosing(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '<' || text[i] == '(')
      ++depth;
    if (text[i] == '}' || text[i] == '>' || text[i] == ')')
      if (--depth == 0)
        return i;
  }
  return std::string_view::npos;
}

/// Returns the first name in a Dim: g++ prints "batch\000", clang {98, 97, 116, 99, 104, 0, 0, 0}.
std::string nameIn(std::string_view dim) {
  if (const std::size_t quote = dim.find('"'); quote != std::string_view::npos) {
    const std::size_t end = dim.find_first_of("\\\"", quote + 1);
    return std::string(dim.substr(quote + 1, end - quote - 1));
  }
  std::string name;
  std::size_t at = dim.find("{{{");
  for (at = at == std::string_view::npos ? dim.size() : at + 3; at < dim.size() && dim[at] != '}'; ++at)
    if (isDigit(dim[at]) && !isDigit(dim[at - 1]))
      if (const int letter = std::atoi(dim.data() + at); letter != 0)
        name += static_cast<char>(letter);
  return name;
}

/// Returns "Dim{OFFSET, FACTOR, ...}" as "768", "tokens" or "2*tokens+1".
std::string shortDim(std::string_view dim) {
  const std::size_t open = dim.find('{');
  if (open == std::string_view::npos)
    return "?";
  char *end = nullptr;
  const long offset = std::strtol(dim.data() + open + 1, &end, 10);
  const long factor = *end == ',' ? std::strtol(end + 1, nullptr, 10) : 0;
  if (factor == 0)
    return std::to_string(offset);
  std::string text = (factor == 1 ? "" : std::to_string(factor) + "*") + nameIn(dim);
  return offset == 0 ? text : text + (offset > 0 ? "+" : "") + std::to_string(offset);
}

/// Returns a short form of the template arguments of a Tensor.
std::string shortTensor(std::string_view arguments) {
  std::size_t comma = arguments.find(',');
  std::string_view element = arguments.substr(0, comma);
  if (const std::size_t colon = element.rfind(':'); colon != std::string_view::npos)
    element.remove_prefix(colon + 1);
  std::string text = std::string(element) + "[";
  while (comma != std::string_view::npos) {
    const std::size_t open = arguments.find('{', comma);
    const std::size_t close = open == std::string_view::npos ? open : findClosing(arguments, open);
    if (close == std::string_view::npos)
      break;
    text += (text.back() == '[' ? "" : ", ") + shortDim(arguments.substr(comma + 1, close - comma));
    comma = arguments.find(',', close);
  }
  return text + "]";
}

} // namespace

std::vector<Error> readErrors(std::string_view output) {
  std::vector<Error> errors;
  std::vector<Remark> before; // remarks that precede the next error or note
  for (std::size_t begin = 0; begin < output.size();) {
    std::size_t end = output.find('\n', begin);
    end = end == std::string_view::npos ? output.size() : end;
    const std::string_view line = output.substr(begin, end - begin);
    begin = end + 1;
    if (isInclusion(line))
      continue;
    std::optional<Remark> remark = readRemark(line);
    if (!remark) {
      // A line such as "refusal.h: In instantiation of 'struct Refusal<Message<...>>':" has the text, and no line
      // number.
      if (line.find(": In ") != std::string_view::npos)
        before.push_back({{}, std::string(line)});
      continue;
    }
    if (auto text = after(remark->text, {"error: ", "fatal error: "})) {
      remark->text = std::move(*text);
      errors.push_back({std::move(*remark), std::move(before)});
      before.clear();
    } else if (after(remark->text, {"note: ", "warning: "})) {
      if (!errors.empty() && remark->text.starts_with("note: ")) {
        before.push_back(std::move(*remark));
        std::vector<Remark> &around = errors.back().around;
        around.insert(around.end(), std::make_move_iterator(before.begin()), std::make_move_iterator(before.end()));
      }
      before.clear();
    } else if (after(remark->text, {"required", "recursively required", "in 'constexpr'", "substitution of"})) {
      before.push_back(std::move(*remark));
    }
  }
  return errors;
}

bool isUsers(const std::string &file) {
  if (file.empty() || file.front() == '<')
    return false;
  for (const char *folder : {"/usr/include/", "/usr/lib/"})
    if (file.starts_with(folder))
      return false;
  for (const char *part : {"/include/c++/", "/lib/gcc/", "/lib/clang/"})
    if (file.find(part) != std::string::npos)
      return false;
  const fs::path folder = fs::path(file).parent_path();
  std::error_code error;
  return folder.filename() != "kiln" ||
         !(fs::exists(folder / "rules.h", error) || fs::exists(folder / "generator.h", error));
}

std::optional<std::string> findLanguageText(const Error &error) {
  const std::string &said = error.said.text;
  const std::size_t quoted = said.find("kiln: the model breaks a rule");
  if (quoted != std::string::npos) {
    for (const Remark &remark : error.around) {
      if (const std::size_t at = remark.text.find("Message<"); at != std::string::npos)
        if (const std::size_t open = remark.text.find("{\"", at); open != std::string::npos)
          return unescaped(std::string_view(remark.text).substr(open + 2));
      if (const std::size_t at = remark.text.find("Spelled<"); at != std::string::npos)
        return spelled(std::string_view(remark.text).substr(at + 8));
    }
    return std::nullopt;
  }
  if (said.find("none<") != std::string::npos || said.find("Message<") != std::string::npos)
    // The requirement before the text has the message as a string, as a shortened one, or as numbers, by its length:
    // none<Message<2>{"ab"}>', none<Message<128>{{97, 98, ...}}>'.
    if (const std::size_t at = said.find("}>': "); at != std::string::npos)
      return said.substr(at + 5);
  if (const std::size_t at = said.find("kiln: "); at != std::string::npos && said.starts_with("static"))
    return said.substr(at + 6);
  for (std::string_view begin : {"\"kiln: ", "#error \"kiln: "}) // clang, g++
    if (said.starts_with(begin))
      return said.substr(begin.size(), said.rfind('"') - begin.size());
  // g++ prints a computed message, which it has in C++26, after these words.
  if (constexpr std::string_view failed = "static assertion failed: "; said.starts_with(failed))
    for (const Remark &remark : error.around)
      if (remark.text.find("error::Refusal<") != std::string::npos)
        return said.substr(failed.size());
  // Some functions are named after a rule, because calling one makes an expression not constant:
  // flops_value_missing_or_out_of_bounds_flops_c1.
  if (const std::size_t at = said.find("kiln::error::"); at != std::string::npos) {
    std::size_t end = at + 13;
    while (end < said.size() && (std::isalnum(static_cast<unsigned char>(said[end])) != 0 || said[end] == '_'))
      ++end;
    std::string name = said.substr(at + 13, end - at - 13);
    const std::size_t number = name.rfind("_c"), label = name.rfind('_', number == 0 ? 0 : number - 1);
    if (const std::size_t thing = name.find('_'); number != std::string::npos && thing < label) {
      std::string text = name.substr(0, label) + " [" + name.substr(label + 1) + "]";
      for (std::size_t i = 0; i < label; ++i)
        text[i] = text[i] == '_' ? ' ' : text[i];
      return text.insert(thing, ":");
    }
  }
  return std::nullopt;
}

std::string shorten(std::string text) {
  for (const char *tail : {" [with ", " [-W"})
    if (const std::size_t at = text.find(tail); at != std::string::npos)
      text.resize(at);
  constexpr std::string_view begin = "kiln::Tensor<";
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    const std::size_t open = at + begin.size() - 1, close = findClosing(text, open);
    if (close == std::string::npos)
      break;
    const std::string tensor = shortTensor(std::string_view(text).substr(open + 1, close - open - 1));
    text.replace(at, close + 1 - at, tensor);
  }
  constexpr std::size_t most = 400;
  if (text.size() > most)
    text = text.substr(0, most) + " ...";
  return text;
}

} // namespace kiln::diagnose
