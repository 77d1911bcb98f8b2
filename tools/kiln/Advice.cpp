// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/Advice.h"
#include "tools/kiln/SpecPlaces.h"
#include "tools/kiln/Words.h"

#include <algorithm>

namespace kiln::diagnose {
namespace {

/// Returns the layer's own type in `struct Block : kiln::Layer<Block<W>>` at or above a line.
std::string layerAbove(const Place &place, const std::vector<Source> &sources) {
  for (const Source &source : sources)
    if (source.path == place.file)
      for (int i = std::min(place.line, static_cast<int>(source.lines.size())); i > 0; --i) {
        const std::string &line = source.lines[static_cast<std::size_t>(i) - 1];
        const std::size_t at = line.find(": kiln::Layer<") != std::string::npos ? line.find(": kiln::Layer<") + 2
                                                                                : line.find("public kiln::Layer<");
        if (at != std::string::npos && line.rfind('>') != std::string::npos)
          return line.substr(line.find("kiln::Layer<"), line.rfind('>') + 1 - line.find("kiln::Layer<"));
      }
  return "kiln::Layer<Self>";
}

/// Explains a layer that is used without access to its base.
std::optional<Mistake> privateBase(const std::string &text, const std::vector<Source> &sources) {
  if (!contains(text, "kiln::Layer<") ||
      !containsOne(text, {"is inaccessible within this context", "is a private member of", "is a protected member of",
                          "is not an accessible base", "private base class", "protected base class"}))
    return std::nullopt;
  for (const Source &source : sources)
    for (std::size_t i = 0; i < source.lines.size(); ++i) {
      const std::string &line = source.lines[i];
      const std::size_t base = line.find("kiln::Layer<"), word = findWord(line, "class");
      const std::size_t end = base == std::string::npos ? base : line.rfind('>');
      if (end == std::string::npos || end < base || contains(line, "public kiln::Layer<") || word > base)
        continue;
      const std::string layer = line.substr(base, end + 1 - base), self = layer.substr(12, layer.size() - 13);
      const std::string name = self.substr(0, self.find('<'));
      if (!containsWord(text, name))
        continue;
      std::string words = name;
      words.append(": its base ").append(layer).append(" is private; expected a struct, or `class ").append(name);
      words.append(" : public ").append(layer).append("` with a public forward");
      return Mistake{{source.path, static_cast<int>(i) + 1}, std::move(words)};
    }
  return std::nullopt;
}

/// Explains a function whose result type is used before its end.
std::optional<std::string> calledTooEarly(const std::string &text) {
  if (!containsOne(text, {"before deduction of 'auto'", "deduced return type cannot be used before it is defined"}))
    return std::nullopt;
  if (containsOne(text, {"kiln::Layer<", "function 'operator()"}))
    return "layer: it calls itself; expected a forward that calls other layers, since a model is traced while it is "
           "compiled";
  return functionName(quotedIn(text)) + ": its result is used before its end; expected a function that is defined "
                                        "above this line and does not call itself";
}

/// Explains a second `main`: KILN_MODEL defines one.
std::optional<std::string> secondMain(const Place &place, const std::string &text, const std::vector<Source> &sources) {
  if (!containsOne(text, {"redefinition of 'int main", "redefinition of 'main'", "conflicting types for 'main'",
                          "conflicting declaration of C function 'int main"}))
    return std::nullopt;
  if (containsWord(lineAt(place, sources), "KILN_MODEL"))
    return "KILN_MODEL: the spec has a main already; expected one KILN_MODEL and no main, since it defines the main of "
           "the generator";
  return "main: KILN_MODEL defines it; expected no other in a spec";
}

} // namespace

std::string quotedIn(const std::string &text, std::size_t from) {
  const std::size_t open = text.find('\'', from), close = open == std::string::npos ? open : text.find('\'', open + 1);
  return close == std::string::npos ? "" : text.substr(open + 1, close - open - 1);
}

std::string functionName(std::string text) {
  text.resize(std::min({text.size(), text.find('('), text.find('<')}));
  const std::size_t space = text.rfind(' ');
  return space == std::string::npos ? text : text.substr(space + 1);
}

std::optional<std::string> adviceOnStd(const std::string &line, const std::string &text) {
  constexpr const char *names[][2] = {{"max", "maximum"}, {"min", "minimum"}, {"fmax", "maximum"}, {"fmin", "minimum"},
                                      {"clamp", "clamp"}, {"abs", "abs"},     {"fabs", "abs"},     {"exp", "exp"},
                                      {"log", "log"},     {"sqrt", "sqrt"},   {"pow", "pow"},      {"tanh", "tanh"}};
  std::optional<std::string> advice;
  for (const auto &[theirs, ours] : names) {
    const std::string name = "std::" + std::string(theirs);
    const std::size_t at = findWord(line, name);
    if (at == std::string::npos || !line.substr(at + name.size()).starts_with("("))
      continue;
    if (!advice || containsWord(text, theirs))
      advice = name + ": it takes numbers, and a tensor has none while the model is traced; expected kiln::" + ours;
  }
  return advice;
}

namespace {

/// Explains a layer without the constructor that takes its name.
std::optional<std::string> missingConstructor(const std::string &line, const std::string &text,
                                              const std::vector<Source> &sources) {
  if (!containsOne(text, {"could not convert", "no matching constructor", "no matching function for call to",
                          "no viable conversion"}))
    return std::nullopt;
  for (std::size_t quote = text.find('\''); quote != std::string::npos; quote = text.find('\'', quote + 1)) {
    std::string type = quotedIn(text, quote);
    type = type.substr(0, type.find('<'));
    if (!type.empty() && std::all_of(type.begin(), type.end(), isLetter) && contains(line, type) &&
        findText(sources, "kiln::Layer<" + type))
      return type + ": it has no constructor that takes its name; expected `using Layer::Layer;` in it [layer_c7]";
  }
  return std::nullopt;
}

/// Returns the words for an error at a place in the sources.
std::string advisedText(const Place &place, const std::string &text, const std::vector<Source> &sources) {
  const std::string line = lineAt(place, sources);
  if (containsOne(text, {"'Layer' has not been declared", "undeclared identifier 'Layer'"}) ||
      (contains(text, "'Layer'") && contains(line, "using Layer::Layer")))
    return "using Layer::Layer: a template does not know the name; expected `using " + layerAbove(place, sources) +
           "::Layer;` [layer_c7]";
  if (std::optional<std::string> found = secondMain(place, text, sources))
    return *found;
  if (containsWord(line, "KILN_MODEL") && !findText(sources, "kiln/generator.h"))
    return "KILN_MODEL: it is not declared; expected #include <kiln/generator.h>";
  if (std::optional<std::string> found = missingConstructor(line, text, sources))
    return *found;
  if (std::optional<std::string> found = calledTooEarly(text))
    return *found;
  if (containsOne(text,
                  {"no matching function for call to", "is not a member of 'std'", "in namespace 'std'", "call to '",
                   "to function return type 'bool'"})) // libc++: std::max compares by a function object
    if (std::optional<std::string> found = adviceOnStd(line, text))
      return *found;
  std::string result = shorten(text);
  if (contains(result, "kiln::Recurrence<"))
    result += "; a recurrent layer gives the outputs and the last state: auto [outputs, last] = gru(x)";
  return result;
}

} // namespace

Mistake advised(const Place &place, const std::string &text, const std::vector<Source> &sources) {
  if (std::optional<Mistake> found = privateBase(text, sources))
    return *found;
  return {place, advisedText(place, text, sources)};
}

} // namespace kiln::diagnose
