// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-mark-processes{replicas=4},kiln-average-gradients)' | FileCheck %s
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-mark-processes{replicas=4},kiln-average-gradients{shard-states=true})' | FileCheck %s --check-prefix=SHARD

// The loss and the small gradient are reduced in one bucket, the large gradient by itself.
// CHECK: module attributes {kiln.replicas = 4 : i64}
// CHECK-LABEL: func.func @train
// CHECK-SAME: tensor<128x128xf32> {kiln.gradient_of = "w"}, tensor<128xf32> {kiln.gradient_of = "b"}
// CHECK-DAG: kiln.begin_reduce %{{.*}} over replicas : tensor<128x128xf32>
// CHECK-DAG: kiln.begin_reduce %{{.*}} over replicas : tensor<129xf32>
// CHECK: kiln.finish
// CHECK: return %{{.*}}, %{{.*}}, %{{.*}} : tensor<f32>, tensor<128x128xf32>, tensor<128xf32>

// Each replica has a quarter of the large gradient, whose parameter has optimiser state.
// SHARD-LABEL: func.func @train
// SHARD-SAME: tensor<4096xf32> {kiln.gradient_of = "w", kiln.shard_of = tensor<128x128xf32>}, tensor<128xf32> {kiln.gradient_of = "b"}
// SHARD: kiln.begin_reduce %{{.*}} over replicas scattered : tensor<4x4096xf32>
// SHARD: kiln.finish
// SHARD: kiln.gather
func.func @train(%x: tensor<128x128xf32> {kiln.name = "x"}, %rate: tensor<f32> {kiln.name = "learning_rate"}, %step: tensor<i32> {kiln.name = "step"})
    -> (tensor<f32> {kiln.name = "loss"}, tensor<128x128xf32> {kiln.gradient_of = "w"}, tensor<128xf32> {kiln.gradient_of = "b"})
    attributes {kiln.entry, kiln.training = {update = "sgd", momentum = 0.5, inputs = 1 : i64, loss = "loss", parameters = [{name = "w", moments}, {name = "b", moments}]}} {
  %w = kiln.parameter {sources = ["w"]} : tensor<128x128xf32>
  %b = kiln.parameter {sources = ["b"]} : tensor<128xf32>
  %dw = kiln.mul %x, %w : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %rows = kiln.sum %dw axis = 0 : (tensor<128x128xf32>) -> tensor<128xf32>
  %db = kiln.mul %rows, %b : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %loss = kiln.sum %db axis = 0 : (tensor<128xf32>) -> tensor<f32>
  return %loss, %dw, %db : tensor<f32>, tensor<128x128xf32>, tensor<128xf32>
}
