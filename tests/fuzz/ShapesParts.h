// SPDX-License-Identifier: Apache-2.0
//
// The parts of inferType, one for each family of operations. The number of operands is already checked.
#pragma once

#include "tests/fuzz/Shapes.h"

namespace kiln::fuzz {

/// Records the first broken rule.
struct Rules {
  std::string broken;

  bool require(bool holds, const char *rule) {
    if (!holds && broken.empty())
      broken = rule;
    return holds;
  }
};

std::optional<Type> inferSource(const Node &node, const std::vector<Type> &operands, Rules &rules);
std::optional<Type> inferElementwise(const Node &node, const std::vector<Type> &operands, Rules &rules);
std::optional<Type> inferRows(const Node &node, const std::vector<Type> &operands, Rules &rules);
std::optional<Type> inferContraction(const Node &node, const std::vector<Type> &operands, Rules &rules);
std::optional<Type> inferImage(const Node &node, const std::vector<Type> &operands, Rules &rules);
std::optional<Type> inferMovement(const Node &node, const std::vector<Type> &operands, Rules &rules);

} // namespace kiln::fuzz
