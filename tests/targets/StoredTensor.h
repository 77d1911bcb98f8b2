// SPDX-License-Identifier: Apache-2.0
//
// The arrays of a kernel's weight in memory, for tests that call kernels.
#pragma once

#include "Harness.h"

namespace kiln::testing {

/// Returns a call's tensor in its storage format (compiler/dialect/StoredParts.h): numbers that the format represents,
/// or numbers quantised with a scale that maps the largest magnitude to that of the format.
std::vector<std::pair<mlir::Type, Tensor>> storedParts(const Tensor &tensor, mlir::RankedTensorType type);

} // namespace kiln::testing
