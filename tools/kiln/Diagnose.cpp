// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/Diagnose.h"
#include "tools/kiln/Advice.h"
#include "tools/kiln/SpecPlaces.h"
#include "tools/kiln/Words.h"

#include <algorithm>

namespace fs = std::filesystem;

namespace kiln::diagnose {
namespace {

/// Returns the path of a file that a message names without its folder.
std::string pathOf(const std::string &name, const std::vector<Source> &sources, const Error &error) {
  for (const Source &source : sources)
    if (fs::path(source.path).filename() == name)
      return source.path;
  for (const Remark &remark : error.around)
    if (fs::path(remark.place.file).filename() == name)
      return remark.place.file;
  return name;
}

/// Returns the innermost location of an error in the user's files.
Place usersPlace(const Error &error) {
  if (isUsers(error.said.place.file))
    return error.said.place;
  for (const Remark &remark : error.around) {
    if (!isUsers(remark.place.file))
      continue;
    // Here an evaluation of the model began, whose calls g++ lists from the outermost on.
    if (remark.text == "required from here")
      for (auto call = error.around.rbegin(); call != error.around.rend(); ++call)
        if (call->text.starts_with("in 'constexpr' expansion") && isUsers(call->place.file))
          return call->place;
    return remark.place;
  }
  return {};
}

/// Explains a trace that is not a constant expression, because of a function or another part of it.
std::optional<Mistake> notConstant(const Error &error) {
  const std::string &said = error.said.text;
  std::vector<Remark> all{error.said};
  all.insert(all.end(), error.around.begin(), error.around.end());
  const bool isAboutConstants = contains(said, "constant expression") || contains(said, "non-'constexpr' function") ||
                                contains(said, "called in a constant expression") ||
                                contains(said, "evaluation depth exceeds maximum");
  if (!isAboutConstants)
    return std::nullopt;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string &text = all[i].text;
    const bool isFunction =
        contains(text, "non-constexpr function '") || contains(text, "call to non-'constexpr' function");
    const bool isOther =
        contains(text, "not valid in a constant expression") || contains(text, "not allowed in a constant expression");
    const bool isDeep = containsOne(text, {"evaluation depth exceeds maximum", "exceeded maximum depth of"});
    if (isDeep)
      return Mistake{isUsers(all[i].place.file) ? all[i].place : usersPlace(error),
                     "model: its functions call one another without end, or too deep; expected functions that do not "
                     "call themselves"};
    if (!isFunction && !isOther)
      continue;
    if (isOther)
      return Mistake{isUsers(all[i].place.file) ? all[i].place : usersPlace(error),
                     "model: " + shorten(text.substr(text.find(':') == 4 ? 6 : 0)) +
                         "; expected a forward that the compiler can evaluate"};
    const std::size_t quote = text.find("constexpr' function ");
    const std::string name = functionName(quotedIn(text, quote == std::string::npos ? 0 : quote + 19));
    // Prefer the function's location, if it is the user's, to the call's.
    Place place = isUsers(all[i].place.file) ? all[i].place : Place();
    for (const Remark &remark : error.around)
      if ((contains(remark.text, "declared here") || contains(remark.text, "is not usable as a")) &&
          isUsers(remark.place.file))
        place = remark.place;
    return Mistake{place.line != 0 ? place : usersPlace(error),
                   name + ": it is not constexpr; expected a constexpr function, since a model is traced while it is "
                          "compiled"};
  }
  return std::nullopt;
}

Mistake explain(const Error &error, const std::vector<Source> &sources) {
  Mistake mistake;
  if (std::optional<std::string> text = findLanguageText(error)) {
    Told told = readTold(*text);
    const Place given = told.place;
    for (const char *label : {"model_c1", "model_c2", "model_c3", "model_c4", "model_c5"})
      if (told.label == label) // the given line is the last one of the entry
        told.place = {};
    if (told.place.line != 0)
      mistake.place = {pathOf(told.place.file, sources, error), told.place.line};
    else if (Found found = placeOfModelRule(told, sources))
      mistake.place = found.place();
    else
      mistake.place = given.line != 0 ? Place{pathOf(given.file, sources, error), given.line} : usersPlace(error);
    mistake.text = textOf(told);
    if (told.label == "tensor_c6")
      mistake.text = adviceOnStd(lineAt(mistake.place, sources), "").value_or(mistake.text);
    if (told.label == "stack_c4" && containsWord(lineAt(mistake.place, sources), "KILN_MODEL")) // g++ 12
      if (Found found = findText(sources, "Stack<"))
        mistake.place = found.place();
    return mistake;
  }
  if (std::optional<Mistake> found = notConstant(error)) {
    if (found->place.line == 0)
      found->place = usersPlace(error);
    return *found;
  }
  mistake.place = usersPlace(error);
  return advised(mistake.place, error.said.text, sources);
}

/// Returns the error to show: the first one, unless it is C++'s own error in the DSL's headers and a rule's text
/// follows that is not a consequential error of a broken model.
const Error &chosen(const std::vector<Error> &errors) {
  if (contains(errors.front().said.text, "called in a constant expression")) // a later error of g++ names the function
    for (const Error &error : errors)
      if (contains(error.said.text, "call to non-'constexpr' function"))
        return error;
  const std::optional<std::string> text = findLanguageText(errors.front());
  // clang before 22 reports std::min(x, std::exp(x)) from the outermost call on.
  if (text && contains(*text, "[tensor_c6]"))
    for (const Error &error : errors)
      if (contains(error.said.text, "in namespace 'std'"))
        return error;
  if (isUsers(errors.front().said.place.file) || text || notConstant(errors.front()))
    return errors.front();
  for (const Error &error : errors)
    if (std::optional<std::string> rule = findLanguageText(error)) {
      bool isNext = false;
      for (const char *label : {"[layer_c6]", "[layer_c8]", "[model_c12]", "[model_c17]", "[model_c18]", "[model_c19]"})
        isNext |= contains(*rule, label);
      if (!isNext)
        return error;
    }
  return errors.front();
}

} // namespace

std::optional<std::string> findMistake(std::string_view output, const std::vector<Source> &sources) {
  std::string text(output);
  replaceAll(text, "\xe2\x80\x98", "'"); // quotes in locales other than C
  replaceAll(text, "\xe2\x80\x99", "'");
  const std::vector<Error> errors = readErrors(text);
  if (errors.empty())
    return std::nullopt;
  Mistake mistake = explain(chosen(errors), sources);
  if (mistake.place.line == 0)
    mistake.place = sources.empty() ? errors.front().said.place : Place{sources.front().path, 1};
  return mistake.place.file + ":" + std::to_string(mistake.place.line) + ": error: " + mistake.text;
}

std::optional<std::string> findMissingModel(const std::vector<Source> &sources) {
  for (const Source &source : sources)
    for (const std::string &line : source.lines)
      if (containsWord(line, "KILN_MODEL"))
        return std::nullopt;
  if (sources.empty())
    return std::nullopt;
  return sources.front().path + ":" + std::to_string(sources.front().lines.size()) +
         ": error: the spec: it makes no generator; expected KILN_MODEL(name, Model) at its end";
}

} // namespace kiln::diagnose
