// SPDX-License-Identifier: Apache-2.0
//
// Two values of one result, and the words for where they differ.
#pragma once

#include <optional>
#include <string>

#include "compiler/interpreter/Tensor.h"

namespace kiln::verify {

/// "element 17 was 0.5, is 0.25", or "its extents were [3, 4], are [3]"; nothing if every element is within the bound
/// of `expected`. `undetermined` counts elements that are not compared.
std::optional<std::string> findDifference(const interpreter::Tensor &expected, const interpreter::Tensor &actual,
                                          std::size_t &undetermined);

} // namespace kiln::verify
