// SPDX-License-Identifier: Apache-2.0
//
// Classifies how ops read weights, which determines the possible layouts and storage formats of a weight.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include <optional>

namespace mlir::kiln {

/// Returns the output dimension if the use is the weight of a contraction.
std::optional<int64_t> getOutputDim(OpOperand &use);

/// Whether the use supports a weight of any layout: as the weight of a contraction, or the table of an embedding.
bool takesLayout(OpOperand &use);

} // namespace mlir::kiln
