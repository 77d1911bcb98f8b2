// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --kiln-accumulate --verify-diagnostics | FileCheck %s

// The loss and the gradient are means over four micro-batches; the other result is stacked. Inputs that are not the
// loss's stay as they are.
// CHECK-LABEL: func.func @train
// CHECK-SAME: %arg0: tensor<4x8xf32> {kiln.name = "x"}, %arg1: tensor<f32> {kiln.name = "learning_rate"}
// CHECK-SAME: -> (tensor<f32> {kiln.name = "loss"}, tensor<4x8xf32> {kiln.name = "y"}, tensor<8xf32> {kiln.gradient_of = "w"})
// CHECK: %[[NUMBERS:.*]] = kiln.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
// CHECK: %[[SUMS:.*]]:2, %[[STACKED:.*]] = kiln.scan
// CHECK: kiln.parameter {sources = ["w"]}
// CHECK: kiln.yield
// CHECK: %[[LOSS:.*]] = kiln.mul %[[SUMS]]#0, %{{.*}}
// CHECK: %[[DW:.*]] = kiln.mul %[[SUMS]]#1, %{{.*}}
// CHECK: return %[[LOSS]], %[[STACKED]], %[[DW]]
func.func @train(%x: tensor<8xf32> {kiln.name = "x"}, %rate: tensor<f32> {kiln.name = "learning_rate"}, %step: tensor<i32> {kiln.name = "step"})
    -> (tensor<f32> {kiln.name = "loss"}, tensor<8xf32> {kiln.name = "y"}, tensor<8xf32> {kiln.gradient_of = "w"})
    attributes {kiln.entry, kiln.training = {update = "sgd", micro_batches = 4 : i64, inputs = 1 : i64, loss = "loss", parameters = [{name = "w"}]}} {
  %w = kiln.parameter {sources = ["w"]} : tensor<8xf32>
  %y = kiln.mul %x, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %loss = kiln.sum %y axis = 0 : (tensor<8xf32>) -> tensor<f32>
  %dw = kiln.exp %x : tensor<8xf32>
  return %loss, %y, %dw : tensor<f32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// An entry whose calls have one batch does not change.
// CHECK-LABEL: func.func @once
// CHECK-SAME: tensor<8xf32> {kiln.name = "x"}
// CHECK-NOT: kiln.scan
func.func @once(%x: tensor<8xf32> {kiln.name = "x"}) -> (tensor<f32> {kiln.name = "loss"}, tensor<8xf32> {kiln.gradient_of = "w"})
    attributes {kiln.entry, kiln.training = {update = "give", inputs = 1 : i64, loss = "loss", parameters = [{name = "w"}]}} {
  %w = kiln.parameter {sources = ["w"]} : tensor<8xf32>
  %y = kiln.mul %x, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %loss = kiln.sum %y axis = 0 : (tensor<8xf32>) -> tensor<f32>
  %dw = kiln.exp %x : tensor<8xf32>
  return %loss, %dw : tensor<f32>, tensor<8xf32>
}

// -----

// expected-error @below {{kiln.training: wrong results; expected a loss and a gradient of each parameter, in their order}}
func.func @without_gradients(%x: tensor<f32>) -> tensor<f32>
    attributes {kiln.entry, kiln.training = {update = "give", micro_batches = 2 : i64, inputs = 1 : i64, loss = "loss", parameters = [{name = "w"}]}} {
  return %x : tensor<f32>
}
