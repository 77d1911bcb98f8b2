// SPDX-License-Identifier: Apache-2.0
//
// The rows of dsl/include/kiln/element_types.def as types of MLIR, and the bytes that elements take.
#pragma once

#include <optional>

#include "kiln/element.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::kiln {

Type fromElementType(::kiln::ElementType element, MLIRContext *context);
/// Nothing for a type that no tensor of a model has.
std::optional<::kiln::ElementType> toElementType(Type type);

/// Whether a tensor of a model may have such elements, and whether they are numbers, floating-point numbers.
bool isElement(Type type);
bool isNumber(Type type);
bool isFloatingNumber(Type type);

/// Whether it is a float that is stored in fewer bits than it is computed with: f16, bf16.
bool isShortFloat(Type type);
/// The type that elements of a tensor are computed in: f32 for floats, their own for others.
Type computedType(Type tensor);

/// What an op keeps sums of a tensor's elements in unless it says otherwise: f32 for floats, i32 for whole numbers.
Type defaultAccumulatorType(Type tensor);

/// Bytes of so many elements that lie together; of index values eight each.
int64_t storedBytes(Type element, int64_t elements);

} // namespace mlir::kiln
