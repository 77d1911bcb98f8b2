// SPDX-License-Identifier: Apache-2.0
#include "compiler/dialect/NearestNames.h"

#include "kiln/names.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <climits>

namespace kiln {

/// Lists the names that are nearest to one of the alternatives `wanted`.
static std::string listNearest(llvm::ArrayRef<std::string> wanted, llvm::ArrayRef<std::string> names) {
  constexpr size_t most = 3;
  std::vector<std::pair<int, std::string>> ranked;
  for (const std::string &name : names) {
    int least = INT_MAX;
    for (const std::string &alternative : wanted)
      least = std::min(least, detail::distance(alternative.c_str(), name.c_str()));
    ranked.emplace_back(least, name);
  }
  llvm::sort(ranked);
  ranked.erase(llvm::unique(ranked), ranked.end());
  std::string text;
  for (size_t i = 0; i < std::min(most, ranked.size()); ++i)
    text += (i == 0 ? "; nearest: " : ", ") + ranked[i].second;
  return text;
}

std::string nearestNames(llvm::StringRef wanted, llvm::ArrayRef<std::string> names) {
  return listNearest({wanted.str()}, names);
}

std::string nearestNamesOfRegex(llvm::StringRef wanted, llvm::ArrayRef<std::string> names) {
  std::vector<std::string> alternatives(1);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const char c = wanted[i];
    if (c == '|')
      alternatives.emplace_back();
    else if (c == '*' || c == '+' || c == '?')
      alternatives.back() += '*';
    else if (llvm::isAlnum(c) || c == '_')
      alternatives.back() += c;
  }
  return listNearest(alternatives, names);
}

} // namespace kiln
