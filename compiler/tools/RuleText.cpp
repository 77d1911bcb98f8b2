// SPDX-License-Identifier: Apache-2.0
#include "compiler/tools/RuleText.h"
#include "compiler/tools/Words.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace kiln::diagnose {
namespace {

/// Messages for rules that compare two widths, shapes or numbers, in place of the rule's sentence.
struct Wrong {
  const char *label, *thing, *what;
};
constexpr Wrong wrongs[] = {
    {"append_c1", "append", "wrong type or shape of the rows"},
    {"attention_c2", "attention", "wrong width of the keys"},
    {"attention_c4", "attention", "wrong number of values"},
    {"batch_norm_c1", "batch_norm", "wrong input width"},
    {"constant_c1", "constant", "wrong number of values"},
    {"conv2d_c3", "conv2d", "wrong number of channels"},
    {"conv2d_c5", "conv2d", "wrong bias shape"},
    {"dim_c5", "dimension", "other bounds than before"},
    {"embedding_c3", "embedding", "too few rows for the positions"},
    {"expand_c1", "expand", "wrong shape"},
    {"group_norm_c3", "group_norm", "wrong shape of weight or bias"},
    {"layer_norm_c1", "layer_norm", "wrong input width"},
    {"layer_norm_c2", "layer_norm", "wrong bias shape"},
    {"linear_c1", "linear", "wrong input width"},
    {"linear_c4", "linear", "wrong bias shape"},
    {"logits_c1", "logits", "wrong input width"},
    {"matmul_c1", "matmul", "wrong inner extent"},
    {"model_c1", "entry", "wrong number of input names"},
    {"model_c2", "entry", "wrong number of output names"},
    {"parameter_c1", "parameter", "another shape than before"},
    {"reshape_c1", "reshape", "another number of elements"},
    {"rms_norm_c1", "rms_norm", "wrong input width"},
    {"rotary_c2", "rotary", "wrong shape of the angles"},
    {"scan_c2", "scan", "the step changes the state's type"},
    {"stack_c1", "stack", "the layer returns another type than its argument's"},
    {"state_c5", "state", "another shape than before"},
    {"store_c1", "store", "wrong type or shape"},
    {"tensor_c2", "argument", "wrong element type or shape"},
};

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

Told readTold(std::string text, bool hasPath) {
  Told told;
  takePlace(text, told.place);
  std::size_t end = 0;
  const std::size_t at = findLabel(text, end);
  if (at == std::string::npos) {
    told.rule = text;
    return told;
  }
  told.rule = text.substr(0, at);
  told.label = text.substr(at + 2, end - at - 2);
  std::string values = text.substr(end + 1);
  if (values.starts_with(": got ")) {
    values.erase(0, 6);
    const std::size_t expected = values.find(", expected ");
    told.got = values.substr(0, expected);
    if (expected != std::string::npos)
      told.expected = values.substr(expected + 11);
  }
  if (const std::size_t colon = told.rule.find(": "); hasPath && colon != std::string::npos) {
    told.path = told.rule.substr(0, colon);
    told.rule.erase(0, colon + 2);
  }
  return told;
}

std::string textOf(const Told &told) {
  std::string text = told.path.empty() ? "" : told.path + ": ";
  const auto *wrong =
      std::find_if(std::begin(wrongs), std::end(wrongs), [&](const Wrong &each) { return told.label == each.label; });
  text += wrong != std::end(wrongs) ? std::string(wrong->thing) + ": " + wrong->what : told.rule;
  const char *separator = contains(text, "; expected ") ? ", " : "; ";
  if (!told.expected.empty()) {
    text += separator + ("expected " + told.expected);
    separator = ", ";
  }
  if (!told.got.empty())
    text += separator + ("got " + told.got);
  return told.label.empty() ? text : text + " [" + told.label + "]";
}

} // namespace kiln::diagnose
