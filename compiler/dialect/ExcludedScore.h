// SPDX-License-Identifier: Apache-2.0
//
// The numbers by which attention excludes keys, as its lowering writes them and as matchers of kernels read them.
#pragma once

namespace mlir::kiln {

/// The score of an excluded key: far below any score, and finite, so that a row in which all keys are excluded becomes
/// the mean of the values instead of NaN.
inline constexpr double excludedScore = -3.0e38;

/// Masks are clamped to this, so that a key that is masked still ranks above an excluded one. A score that is not above
/// it has the weight 0 compared with any score that is.
inline constexpr double lowestMask = -1.0e38;

} // namespace mlir::kiln
