// SPDX-License-Identifier: Apache-2.0
//
// Prints the call of one node in a spec.
#pragma once

#include <string>

#include "kiln/graph.h"

namespace kiln::fuzz {

std::string elementName(ElementType element);
/// Returns the name of the symbol's constant in the spec.
std::string extentName(const Symbol &symbol);
/// For example "2 * B * T + 1".
std::string extentText(const Dim &dim);
/// For example "kiln::f32, T, 4".
std::string typeArguments(const Node &node);
/// For example "kiln::stored<kiln::f16>, 3, 4".
std::string typeArguments(const Parameter &parameter);
/// For example "kiln::reshape<T, 4>(t3)"; not for operations with a body, parameters and states. `context` is any
/// tensor.
std::string callText(const Node &node, const std::string &context);

} // namespace kiln::fuzz
