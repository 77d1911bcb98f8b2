// SPDX-License-Identifier: Apache-2.0
//
// The text of one node's call in a spec.
#pragma once

#include <string>

#include "kiln/graph.h"

namespace kiln::fuzz {

std::string elementName(ElementType element);
/// The constant's name in the spec.
std::string extentName(const Symbol &symbol);
/// "2 * B * T + 1".
std::string extentText(const Dim &dim);
/// "kiln::f32, T, 4".
std::string typeArguments(const Node &node);
/// "kiln::stored<kiln::f16>, 3, 4".
std::string typeArguments(const Parameter &parameter);
/// "kiln::reshape<T, 4>(t3)"; not of operations with a body, parameters and states. `context` is any tensor.
std::string callText(const Node &node, const std::string &context);

} // namespace kiln::fuzz
