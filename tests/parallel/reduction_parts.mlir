// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --kiln-reduction-parts --verify-diagnostics | FileCheck %s

// Partial gradients from two layers that read the same value are added before they are sent, once. The first layer's
// outputs have two sections with four parts each, two for each rank.
// CHECK-LABEL: @gradient
// CHECK-DAG: kiln.slice %arg0 axis = 1 start = 0 : tensor<5x12xf32> -> tensor<5x8xf32>
// CHECK-DAG: kiln.slice %arg0 axis = 1 start = 8 : tensor<5x12xf32> -> tensor<5x4xf32>
// CHECK-DAG: kiln.slice %{{.*}} axis = 0 start = 0 : tensor<12x6xf32> -> tensor<8x6xf32>
// CHECK-DAG: kiln.slice %{{.*}} axis = 0 start = 8 : tensor<12x6xf32> -> tensor<4x6xf32>
// CHECK: kiln.matmul {{.*}} : (tensor<2x5x4xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
// CHECK: kiln.matmul {{.*}} : (tensor<2x5x2xf32>, tensor<2x2x6xf32>) -> tensor<2x5x6xf32>
// CHECK: %[[JOINT:.*]] = kiln.add {{.*}} -> tensor<2x5x6xf32>
// CHECK: %[[OTHER:.*]] = kiln.matmul {{.*}} transpose_b : (tensor<2x5x4xf32>, tensor<2x6x4xf32>) -> tensor<2x5x6xf32>
// CHECK: kiln.add %[[JOINT]], %[[OTHER]]
// CHECK: %[[OWN:.*]] = kiln.add {{.*}} -> tensor<5x6xf32>
// CHECK: kiln.all_gather %[[OWN]] : tensor<5x6xf32> -> tensor<2x5x6xf32>
// CHECK: kiln.add {{.*}} -> tensor<5x6xf32>
// CHECK-NOT: kiln.all_reduce
module attributes {kiln.ranks = 2 : i64, kiln.reduction_parts = 4 : i64, kiln.shards = {joint = #kiln.shard<0, [16, 8]>, other = #kiln.shard<1, [16]>}} {
  func.func @gradient(%dy: tensor<5x12xf32>, %dz: tensor<5x8xf32>) -> tensor<5x6xf32> {
    %w = kiln.parameter {sources = ["joint"]} : tensor<12x6xf32>
    %0 = kiln.linear %dy, %w weight_order = in_out : (tensor<5x12xf32>, tensor<12x6xf32>) -> tensor<5x6xf32>
    %v = kiln.parameter {sources = ["other"]} : tensor<6x8xf32>
    %1 = kiln.linear %dz, %v weight_order = out_in : (tensor<5x8xf32>, tensor<6x8xf32>) -> tensor<5x6xf32>
    %2 = kiln.add %0, %1 : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
    %3 = kiln.all_reduce %2 : tensor<5x6xf32>
    return %3 : tensor<5x6xf32>
  }
}

// -----

// The gradient of a scalar that multiplies a rank's features.
module attributes {kiln.ranks = 2 : i64, kiln.reduction_parts = 4 : i64, kiln.shards = {}} {
  func.func @number(%x: tensor<8xf32>) -> tensor<f32> {
    %0 = kiln.sum %x axis = 0 : (tensor<8xf32>) -> tensor<f32>
    // expected-error @+1 {{--reduction-parts: unsupported gradient; expected gradients of replicated values to come from linear layers, got one from sum}}
    %1 = kiln.all_reduce %0 : tensor<f32>
    return %1 : tensor<f32>
  }
}
