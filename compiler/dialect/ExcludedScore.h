// SPDX-License-Identifier: Apache-2.0
//
// The numbers by which attention excludes keys, as its lowering writes them and as matchers of kernels read them.
#pragma once

namespace mlir::kiln {

/// The score of an excluded key: far below any score, and finite, so that differences of scores are numbers.
inline constexpr double excludedScore = -3.0e38;

/// Masks are clamped to this. A key whose score is not above it is masked out: its weight is 0 compared with any other.
inline constexpr double lowestMask = -1.0e38;

/// A row whose largest score is at most this has no key: all of its keys are excluded or masked out. It is above
/// lowestMask, whose sum with a score is rounded.
inline constexpr double largestOfNone = -0.99e38;

} // namespace mlir::kiln
