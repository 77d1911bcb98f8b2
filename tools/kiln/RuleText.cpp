// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/RuleText.h"
#include "tools/kiln/Words.h"

#include <algorithm>
#include <cstdlib>

namespace kiln::diagnose {
namespace {

/// Removes " (spec.cpp:14)" from the end of the text and stores it as the place.
void takePlace(std::string &text, Place &place) {
  if (text.empty() || text.back() != ')')
    return;
  const std::size_t open = text.rfind(" ("), colon = text.rfind(':');
  if (open == std::string::npos || colon == std::string::npos || colon < open)
    return;
  const std::string number = text.substr(colon + 1, text.size() - colon - 2);
  if (number.empty() || !std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return;
  place = {text.substr(open + 2, colon - open - 2), std::atoi(number.c_str())};
  text.resize(open);
}

/// Returns the position of a label such as " [linear_c1]"; npos if there is none.
std::size_t findLabel(const std::string &text, std::size_t &end) {
  for (std::size_t at = text.find(" ["); at != std::string::npos; at = text.find(" [", at + 1)) {
    end = at + 2;
    while (end < text.size() && isLetter(text[end]))
      ++end;
    const std::string label = text.substr(at + 2, end - at - 2);
    const std::size_t number = label.rfind("_c");
    if (end < text.size() && text[end] == ']' && number != std::string::npos && number + 2 < label.size())
      return at;
  }
  return std::string::npos;
}

} // namespace

Told readTold(std::string text) {
  Told told;
  takePlace(text, told.place);
  std::size_t end = 0;
  const std::size_t at = findLabel(text, end);
  told.rule = text.substr(0, at);
  if (at == std::string::npos)
    return told;
  told.label = text.substr(at + 2, end - at - 2);
  for (const char *separator : {"; got ", ", got "})
    if (const std::size_t got = told.rule.find(separator); got != std::string::npos)
      told.got = told.rule.substr(got + 6);
  return told;
}

std::string textOf(const Told &told) { return told.label.empty() ? told.rule : told.rule + " [" + told.label + "]"; }

} // namespace kiln::diagnose
