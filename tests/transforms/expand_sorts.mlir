// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --kiln-expand-sorts | FileCheck %s

// Sums by index: each row of the table compares all indices.
// CHECK-LABEL: @sums
// CHECK-NOT: kiln.index_add
// CHECK: kiln.equal
// CHECK: %[[CHOSEN:.*]] = kiln.where
// CHECK: %[[SUMS:.*]] = kiln.sum %[[CHOSEN]] axis = 1 : (tensor<11x3x5xf32>) -> tensor<11x5xf32>
// CHECK: kiln.add %{{.*}}, %[[SUMS]]
func.func @sums(%x: tensor<11x5xf32>, %i: tensor<3xi32>, %rows: tensor<3x5xf32>) -> tensor<11x5xf32> {
  %0 = kiln.index_add %x, %i, %rows : (tensor<11x5xf32>, tensor<3xi32>, tensor<3x5xf32>) -> tensor<11x5xf32>
  return %0 : tensor<11x5xf32>
}

// A sort counts the elements before each one, and inverts the permutation.
// CHECK-LABEL: @sort
// CHECK-NOT: kiln.argsort
// CHECK: %[[PLACE:.*]] = kiln.sum %{{.*}} axis = 2 : (tensor<7x9x9xi32>) -> tensor<7x9xi32>
// CHECK: %[[RESULT:.*]] = kiln.sum %{{.*}} axis = 2 : (tensor<7x9x9xi32>) -> tensor<7x9xi32>
// CHECK: return %[[RESULT]]
func.func @sort(%x: tensor<7x9xf32>) -> tensor<7x9xi32> {
  %0 = kiln.argsort %x axis = 1 : (tensor<7x9xf32>) -> tensor<7x9xi32>
  return %0 : tensor<7x9xi32>
}

// The first few of many are found one after another.
// CHECK-LABEL: @largest
// CHECK-NOT: kiln.argsort
// CHECK-COUNT-3: kiln.argmax
// CHECK-NOT: kiln.argmax
// CHECK: %[[RESULT:.*]] = kiln.concat
// CHECK: return %[[RESULT]]
func.func @largest(%x: tensor<7x9xi32>) -> tensor<7x2xi32> {
  %0 = kiln.argsort %x axis = 1 descending : (tensor<7x9xi32>) -> tensor<7x2xi32>
  return %0 : tensor<7x2xi32>
}

// CHECK-LABEL: @smallest
// CHECK-COUNT-2: kiln.sum
// CHECK: kiln.slice
func.func @smallest(%x: tensor<9x7xbf16>) -> tensor<2x7xi32> {
  %0 = kiln.argsort %x axis = 0 : (tensor<9x7xbf16>) -> tensor<2x7xi32>
  return %0 : tensor<2x7xi32>
}
