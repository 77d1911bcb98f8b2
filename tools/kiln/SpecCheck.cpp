// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/SpecCheck.h"
#include "tools/kiln/Diagnose.h"
#include "tools/kiln/Words.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <optional>

namespace fs = std::filesystem;

namespace kiln {
namespace {

using diagnose::Source;

/// Whether a name is that of a file that g++ and clang++ compile as C++.
bool isCxxSource(const fs::path &path) {
  const std::string end = path.extension().string();
  for (const char *known : {".cpp", ".cc", ".cxx", ".c++", ".cp", ".C", ".CPP", ".c", ".ii"})
    if (end == known)
      return true;
  return false;
}

/// Returns the name in `#include <NAME>` or `#include "NAME"`, with its opening character; empty for other lines.
std::string includedName(std::string_view line) {
  if (!line.starts_with("#"))
    return "";
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t", 1)));
  if (!line.starts_with("include"))
    return "";
  const std::size_t open = line.find_first_of("<\"");
  const std::size_t close = open == std::string_view::npos ? open : line.find(line[open] == '<' ? '>' : '"', open + 1);
  return close == std::string_view::npos ? "" : std::string(line.substr(open, close - open));
}

bool isLanguage(const std::string &name) { return name.ends_with("kiln/generator.h") || name.ends_with("kiln/dsl.h"); }

std::string_view withoutIndent(std::string_view line) {
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t")));
  return line;
}

/// Whether the first text of a file is an inclusion of the language; nothing if the file only has other inclusions.
std::optional<bool> isLanguageFirst(const Source &file, const std::vector<Source> &sources, int depth) {
  bool isComment = false;
  for (const std::string &whole : file.lines) {
    const std::string_view line = withoutIndent(whole);
    isComment = isComment || line.starts_with("/*");
    if (isComment || line.empty() || line.starts_with("//") || line.starts_with("#pragma once")) {
      isComment = isComment && !diagnose::contains(line, "*/");
      continue;
    }
    const std::string name = includedName(line);
    if (name.empty())
      return false;
    if (isLanguage(name))
      return true;
    if (name.front() == '<')
      continue;
    const auto header = std::find_if(sources.begin(), sources.end(), [&](const Source &each) {
      return each.path.ends_with("/" + name.substr(1)) || each.path == name.substr(1);
    });
    if (header != sources.end() && depth < 20)
      if (std::optional<bool> found = isLanguageFirst(*header, sources, depth + 1))
        return found;
  }
  return std::nullopt;
}

/// Whether a program compiles C: gcc, clang-22, x86_64-linux-gnu-gcc-12, cc.
bool isCCompiler(std::string name) {
  while (!name.empty() && (std::isdigit(static_cast<unsigned char>(name.back())) != 0 || name.back() == '.'))
    name.pop_back();
  if (name.ends_with("-"))
    name.pop_back();
  name = name.substr(name.rfind('-') + 1);
  return name == "gcc" || name == "clang" || name == "cc";
}

} // namespace

std::string checkSpec(const std::string &subcommand, const fs::path &spec, const std::vector<std::string> &words) {
  std::error_code error;
  if (fs::is_directory(spec, error))
    return fmt::format("spec \"{}\": a folder; expected a C++ source file, such as {}", spec.string(),
                       (spec / "spec.cpp").string());
  if (!fs::is_regular_file(spec, error))
    return fmt::format("spec \"{}\": not found; expected a C++ source file", spec.string());
  if (isCxxSource(spec))
    return "";
  for (const std::string &word : words)
    if (isCxxSource(word) && fs::is_regular_file(word, error))
      return fmt::format("spec \"{0}\": no C++ source file; expected kiln {1} {2} {0}", spec.string(), subcommand,
                         word);
  return fmt::format("spec \"{}\": no C++ source file; expected a name that ends in .cpp, .cc or .cxx", spec.string());
}

std::string checkFlags(const std::string &subcommand, const std::vector<std::string> &words) {
  for (const std::string &word : words)
    for (const char *flag : {"-I", "-D", "-U", "-L", "-l", "-W", "-f", "-m", "-O", "-g", "-std=", "-isystem", "-iquote",
                             "-include", "-pthread"})
      if (word.starts_with(flag))
        return fmt::format("option \"{0}\": a flag of the C++ compiler; expected it after \"--\": kiln {1} SPEC -- {0}",
                           word, subcommand);
  return "";
}

std::string checkCompiler(const std::vector<std::string> &compiler) {
  for (const std::string &word : compiler)
    if (word.starts_with("-"))
      break;
    else if (isCCompiler(fs::path(word).filename().string()))
      return fmt::format("CXX \"{}\": a C compiler, which links no C++ program; expected a C++ compiler, such as g++",
                         word);
  return "";
}

bool beginsWithLanguage(const fs::path &spec, const std::vector<std::string> &flags) {
  const std::vector<Source> sources = diagnose::readSources(spec, diagnose::includeFolders(flags));
  bool includesGenerator = false;
  for (const Source &source : sources)
    for (const std::string &line : source.lines)
      includesGenerator |= includedName(withoutIndent(line)).ends_with("kiln/generator.h");
  return includesGenerator && isLanguageFirst(sources.front(), sources, 0).value_or(false);
}

} // namespace kiln
