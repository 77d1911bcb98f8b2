// SPDX-License-Identifier: Apache-2.0
//
// Compares two values of one result, and describes where they differ.
#pragma once

#include <optional>
#include <string>

#include "compiler/interpreter/Tensor.h"

namespace kiln::verify {

/// Returns "element 17 was 0.5, is 0.25", or "its extents were [3, 4], are [3]"; nothing if every element is within the
/// error bound of `expected`. `undetermined` counts elements that are not compared.
std::optional<std::string> findDifference(const interpreter::Tensor &expected, const interpreter::Tensor &actual,
                                          std::size_t &undetermined);

} // namespace kiln::verify
