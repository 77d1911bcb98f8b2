// SPDX-License-Identifier: Apache-2.0
//
// The file that page.md quotes incorrectly.
inline constexpr int answer = 42;
