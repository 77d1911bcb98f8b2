// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/SpecPlaces.h"
#include "tools/kiln/Words.h"

#include <algorithm>
#include <fstream>
#include <set>

namespace fs = std::filesystem;

namespace kiln::diagnose {
namespace {

/// Returns the model that the spec passes to KILN_MODEL, without its template arguments.
std::string modelName(const std::vector<Source> &sources) {
  for (const Source &source : sources)
    for (const std::string &line : source.lines)
      if (const std::size_t at = findWord(line, "KILN_MODEL"); at != std::string::npos)
        if (const std::size_t comma = line.find(',', at); comma != std::string::npos) {
          std::size_t end = line.find_first_of("<)", comma);
          std::string name = line.substr(comma + 1, end == std::string::npos ? end : end - comma - 1);
          name.erase(0, std::min(name.size(), name.find_first_not_of(' ')));
          const std::size_t colon = name.rfind(':');
          return colon == std::string::npos ? name : name.substr(colon + 1);
        }
  return "";
}

/// Returns the line that declares the model.
Found findModel(const std::vector<Source> &sources) {
  const std::string name = modelName(sources);
  for (const Source &source : sources)
    for (std::size_t i = 0; !name.empty() && i < source.lines.size(); ++i)
      for (const char *word : {"struct", "class"})
        if (const std::size_t at = findWord(source.lines[i], word); at != std::string::npos)
          if (const std::size_t named = findWord(source.lines[i], name, at);
              named != std::string::npos && source.lines[i].find(';', named) == std::string::npos)
            return {&source, i};
  return {};
}

/// Returns the first line at or after the model's that contains the word, followed by a parenthesis if it is a
/// function.
Found findInModel(const std::vector<Source> &sources, std::string_view word, bool isFunction, int skipped = 0) {
  Found model = findModel(sources);
  if (!model)
    return {};
  for (std::size_t i = model.line; i < model.source->lines.size(); ++i) {
    const std::string &line = model.source->lines[i];
    const std::size_t at = findWord(line, word);
    if (at == std::string::npos || at > line.find("//"))
      continue;
    std::size_t end = at + word.size();
    while (end < line.size() && line[end] == ' ')
      ++end;
    if ((!isFunction || (end < line.size() && line[end] == '(')) && skipped-- == 0)
      return {model.source, i};
  }
  return {};
}

/// Returns the fault of the model's function, for a rule that names several possible faults.
std::string faultOf(const std::vector<Source> &sources, const Found &forward) {
  const std::string &line = forward.text();
  const bool isTemplate = contains(line, "auto &") || contains(line, "auto x") || containsWord(line, "template") ||
                          (forward.line > 0 && contains(forward.source->lines[forward.line - 1], "template"));
  if (isTemplate)
    return "its forward is a template; expected a function of kiln::Tensor parameters, or entries";
  if (findInModel(sources, "forward", true, 1))
    return "it may have several functions of this name, or forward is private; expected one public forward, or entries";
  return "its forward is private; expected a public one";
}

} // namespace

Found findText(const std::vector<Source> &sources, const std::string &text, bool isLast) {
  Found found;
  for (const Source &source : sources)
    for (std::size_t i = 0; i < source.lines.size(); ++i)
      if (contains(source.lines[i], text) && (!found || isLast))
        found = {&source, i};
  return found;
}

Found placeOfModelRule(Told &told, const std::vector<Source> &sources) {
  const std::string &label = told.label;
  if (label == "model_c11" || label == "model_c12")
    return findModel(sources);
  if (label == "model_c17") {
    for (const Source &source : sources)
      for (std::size_t i = 0; i < source.lines.size(); ++i)
        if (const std::size_t at = findWord(source.lines[i], "mutable");
            at != std::string::npos && (at == 0 || source.lines[i].find(')') > at))
          return {&source, i};
    return {};
  }
  if (label == "model_c19")
    return findInModel(sources, "entries", true);
  if (label == "model_c1" || label == "model_c2" || label == "model_c3" || label == "model_c4" || label == "model_c5") {
    if (const std::size_t space = told.got.find(' '); space == std::string::npos && !told.got.empty())
      if (Found quoted = findText(sources, '"' + told.got + '"'))
        return quoted;
    if (Found names = findInModel(sources, "Names", false))
      return names;
    return findInModel(sources, "entry", true);
  }
  if (label.starts_with("dim_c") && told.place.line == 0) {
    std::size_t end = 0;
    while (end < told.got.size() && (isLetter(told.got[end]) || (label == "dim_c8")))
      ++end;
    return findText(sources, '"' + told.got.substr(0, end) + '"', label == "dim_c5");
  }
  for (const char *each : {"model_c6", "model_c7", "model_c8", "model_c9", "model_c10", "model_c13", "model_c18"})
    if (label == each) {
      if (Found entries = findInModel(sources, "entries", true))
        return entries;
      Found forward = findInModel(sources, "forward", true);
      if (forward && label == "model_c18")
        told.rule = "model: " + faultOf(sources, forward);
      return forward;
    }
  return {};
}

std::string lineAt(const Place &place, const std::vector<Source> &sources) {
  for (const Source &source : sources)
    if (source.path == place.file && place.line >= 1 && place.line <= static_cast<int>(source.lines.size()))
      return source.lines[static_cast<std::size_t>(place.line) - 1];
  return "";
}

std::vector<Source> readSources(const fs::path &spec, const std::vector<std::string> &includeFolders) {
  std::vector<Source> sources;
  std::set<std::string> known;
  std::vector<fs::path> open{spec};
  constexpr std::size_t most = 200;
  for (std::size_t i = 0; i < open.size() && i < most; ++i) {
    std::error_code error;
    std::ifstream file(open[i]);
    if (!file || !known.insert(fs::weakly_canonical(open[i], error).string()).second || !isUsers(open[i].string()))
      continue;
    Source source{open[i].string(), {}};
    for (std::string line; std::getline(file, line);) {
      const std::size_t hash = line.find("#include \""),
                        close = line.find('"', hash == std::string::npos ? 0 : hash + 10);
      if (hash != std::string::npos && close != std::string::npos) {
        const std::string name = line.substr(hash + 10, close - hash - 10);
        open.push_back(open[i].parent_path() / name);
        for (const std::string &folder : includeFolders)
          open.push_back(fs::path(folder) / name);
      }
      source.lines.push_back(std::move(line));
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

} // namespace kiln::diagnose
