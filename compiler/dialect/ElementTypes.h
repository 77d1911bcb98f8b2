// SPDX-License-Identifier: Apache-2.0
//
// The element types of dsl/include/kiln/element_types.def as MLIR types, and their sizes in bytes.
#pragma once

#include <optional>

#include "kiln/element.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::kiln {

Type fromElementType(::kiln::ElementType element, MLIRContext *context);
/// Returns nullopt for a type that is no element type of a model.
std::optional<::kiln::ElementType> toElementType(Type type);

/// Whether a model's tensor may have such elements, and whether they are numbers or floating-point numbers.
bool isElement(Type type);
bool isNumber(Type type);
bool isFloatingNumber(Type type);

/// Whether the type is a 16-bit float (f16, bf16), which is computed in f32.
bool isHalfFloat(Type type);
/// Returns the type in which elements of a tensor are computed: f32 for floats, the type itself for others.
Type computedType(Type tensor);

/// Returns the default accumulator type for sums of a tensor's elements: f32 for floats, i32 for integers.
Type defaultAccumulatorType(Type tensor);

/// Returns the bytes of a contiguous array of elements; index values take eight each.
int64_t storedBytes(Type element, int64_t elements);

} // namespace mlir::kiln
