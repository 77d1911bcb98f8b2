// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --kiln-quantize-rows --verify-diagnostics | FileCheck %s

// Rows that meet an int8 weight are quantised; others are not.
// CHECK-LABEL: @forward
// CHECK: %[[SCALES:.*]] = kiln.row_scales %arg0 : (tensor<3x8xf32>) -> tensor<3xf32>
// CHECK: %[[ROWS:.*]] = kiln.quantize_rows %arg0, %[[SCALES]] : (tensor<3x8xf32>, tensor<3xf32>) -> tensor<3x8xi8>
// CHECK: %[[Y:.*]] = kiln.linear %[[ROWS]], %{{.*}} %[[SCALES]]
// CHECK-NOT: kiln.row_scales
// CHECK: kiln.linear %[[Y]], %{{.*}}
func.func @forward(%x: tensor<3x8xf32>) -> tensor<3x5xf32> attributes {kiln.entry} {
  %a = kiln.parameter {sources = ["a"], storage = #kiln.storage<i8>} : tensor<6x8xf32>
  %b = kiln.parameter {sources = ["b"], storage = #kiln.storage<f16>} : tensor<5x6xf32>
  %y = kiln.linear %x, %a weight_order = out_in : (tensor<3x8xf32>, tensor<6x8xf32>) -> tensor<3x6xf32>
  %z = kiln.linear %y, %b weight_order = out_in : (tensor<3x6xf32>, tensor<5x6xf32>) -> tensor<3x5xf32>
  return %z : tensor<3x5xf32>
}

// -----

// expected-error @below {{activations of int8: no quantised weights; expected some of int8 or int4 that linear reads, got none}}
module {
  func.func @plain(%x: tensor<3x8xf32>) -> tensor<3x6xf32> attributes {kiln.entry} {
    %a = kiln.parameter {sources = ["a"]} : tensor<6x8xf32>
    %y = kiln.linear %x, %a weight_order = out_in : (tensor<3x8xf32>, tensor<6x8xf32>) -> tensor<3x6xf32>
    return %y : tensor<3x6xf32>
  }
}
