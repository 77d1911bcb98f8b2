// SPDX-License-Identifier: Apache-2.0
//
// What page.md quotes wrongly.
inline constexpr int answer = 42;
