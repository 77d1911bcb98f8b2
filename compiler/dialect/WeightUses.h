// SPDX-License-Identifier: Apache-2.0
//
// How ops read weights: which layouts and storages a weight may have follows from it.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include <optional>

namespace mlir::kiln {

/// The dimension of the outputs if the use is the weight of a contraction.
std::optional<int64_t> getOutputDim(OpOperand &use);

/// Whether code reads a weight of any layout there: as the weight of a contraction, or the table of an embedding.
bool takesLayout(OpOperand &use);

} // namespace mlir::kiln
