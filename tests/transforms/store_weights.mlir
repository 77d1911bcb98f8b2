// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-store-weights{weights=int8})' --verify-diagnostics | FileCheck %s
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-store-weights)' | FileCheck %s --check-prefix=STATED

// The spec's format precedes the preset, which skips vectors. The pass erases the record of the spec's formats.
// CHECK: module {
// CHECK-LABEL: @forward
// CHECK-DAG: kiln.parameter {sources = ["stated"], storage = #kiln.storage<f16>} : tensor<6x8xf32>
// CHECK-DAG: kiln.parameter {sources = ["preset"], storage = #kiln.storage<i8>} : tensor<5x6xf32>
// CHECK-DAG: kiln.parameter {sources = ["plain"]} : tensor<4x5xf32>
// CHECK-DAG: kiln.parameter {sources = ["bias"]} : tensor<4xf32>
// STATED: module {
// STATED-LABEL: @forward
// STATED-DAG: kiln.parameter {sources = ["stated"], storage = #kiln.storage<f16>}
// STATED-DAG: kiln.parameter {sources = ["preset"]} : tensor<5x6xf32>
module attributes {kiln.stated_storage = {plain = "f32", stated = "f16"}} {
  func.func @forward(%x: tensor<3x8xf32>) -> tensor<3x4xf32> attributes {kiln.entry} {
    %stated = kiln.parameter {sources = ["stated"]} : tensor<6x8xf32>
    %preset = kiln.parameter {sources = ["preset"]} : tensor<5x6xf32>
    %plain = kiln.parameter {sources = ["plain"]} : tensor<4x5xf32>
    %bias = kiln.parameter {sources = ["bias"]} : tensor<4xf32>
    %0 = kiln.linear %x, %stated weight_order = out_in : (tensor<3x8xf32>, tensor<6x8xf32>) -> tensor<3x6xf32>
    %1 = kiln.linear %0, %preset weight_order = out_in : (tensor<3x6xf32>, tensor<5x6xf32>) -> tensor<3x5xf32>
    %2 = kiln.linear %1, %plain, %bias weight_order = out_in : (tensor<3x5xf32>, tensor<4x5xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    return %2 : tensor<3x4xf32>
  }
}
