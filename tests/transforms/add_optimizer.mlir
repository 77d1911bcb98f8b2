// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --kiln-add-optimizer --verify-diagnostics | FileCheck %s

// Stochastic gradient descent: the gradient is no result any more, and nothing is updated if a number is not finite.
// CHECK-LABEL: func.func @sgd
// CHECK-SAME: -> (tensor<f32> {kiln.name = "loss"}) attributes {kiln.entry} {
// CHECK: %[[DW:.*]] = kiln.exp %arg0
// CHECK: kiln.require_finite
// CHECK: %[[W:.*]] = kiln.parameter {sources = ["w"], variable} : tensor<4xf32>
// CHECK: %[[STEP:.*]] = kiln.mul %[[DW]], %arg1
// CHECK: %[[NEXT:.*]] = kiln.sub %[[W]], %[[STEP]]
// CHECK: kiln.assign %[[NEXT]] to %[[W]]
// CHECK: return %{{.*}} : tensor<f32>
func.func @sgd(%x: tensor<4xf32> {kiln.name = "x"}, %rate: tensor<f32> {kiln.name = "learning_rate"}, %step: tensor<i32> {kiln.name = "step"})
    -> (tensor<f32> {kiln.name = "loss"}, tensor<4xf32> {kiln.gradient_of = "w"})
    attributes {kiln.entry, kiln.training = {update = "sgd", inputs = 1 : i64, loss = "loss", parameters = [{name = "w"}]}} {
  %dw = kiln.exp %x : tensor<4xf32>
  %loss = kiln.sum %dw axis = 0 : (tensor<4xf32>) -> tensor<f32>
  return %loss, %dw : tensor<f32>, tensor<4xf32>
}

// -----

// AdamW with clipping: the norm is a further result, and parameters of a stack are updated in a loop over its layers.
// CHECK-LABEL: func.func @adamw
// CHECK-SAME: -> (tensor<f32> {kiln.name = "loss"}, tensor<f32> {kiln.name = "grad_norm"}) attributes {kiln.entry} {
// CHECK: %[[NORM:.*]] = kiln.sqrt
// CHECK: kiln.require_finite
// CHECK: kiln.scan {{.*}} layers {
// CHECK: kiln.parameter {copies = 3 : i64, sources = ["h.{}.w"], variable} : tensor<4xf32>
// CHECK: kiln.state "mean:h.{}.w" copies = 3 rows = 4
// CHECK: kiln.state "square:h.{}.w" copies = 3 rows = 4
// CHECK: kiln.assign
// CHECK: return %{{.*}}, %[[NORM]] : tensor<f32>, tensor<f32>
func.func @adamw(%x: tensor<3x4xf32> {kiln.name = "x"}, %rate: tensor<f32> {kiln.name = "learning_rate"}, %step: tensor<i32> {kiln.name = "step"})
    -> (tensor<f32> {kiln.name = "loss"}, tensor<3x4xf32> {kiln.gradient_of = "h.{}.w"})
    attributes {kiln.entry, kiln.training = {update = "adamw", beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, clip = 1.0, inputs = 1 : i64, loss = "loss", parameters = [{name = "h.{}.w", copies = 3 : i64, moments}]}} {
  %dw = kiln.exp %x : tensor<3x4xf32>
  %rows = kiln.sum %dw axis = 0 : (tensor<3x4xf32>) -> tensor<4xf32>
  %loss = kiln.sum %rows axis = 0 : (tensor<4xf32>) -> tensor<f32>
  return %loss, %dw : tensor<f32>, tensor<3x4xf32>
}

// -----

// Callers get the gradients of an entry that gives them.
// CHECK-LABEL: func.func @give
// CHECK-SAME: -> (tensor<f32> {kiln.name = "loss"}, tensor<4xf32> {kiln.name = "grad_w"}) attributes {kiln.entry} {
// CHECK-NOT: kiln.assign
func.func @give(%x: tensor<4xf32> {kiln.name = "x"})
    -> (tensor<f32> {kiln.name = "loss"}, tensor<4xf32> {kiln.gradient_of = "w", kiln.name = "grad_w"})
    attributes {kiln.entry, kiln.training = {update = "give", inputs = 1 : i64, loss = "loss", parameters = [{name = "w"}]}} {
  %dw = kiln.exp %x : tensor<4xf32>
  %loss = kiln.sum %dw axis = 0 : (tensor<4xf32>) -> tensor<f32>
  return %loss, %dw : tensor<f32>, tensor<4xf32>
}

// -----

// expected-error @below {{training: no learning rate or step; expected inputs of these names}}
func.func @without_rate(%x: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32> {kiln.gradient_of = "w"})
    attributes {kiln.entry, kiln.training = {update = "sgd", inputs = 1 : i64, loss = "loss", parameters = [{name = "w"}]}} {
  %loss = kiln.sum %x axis = 0 : (tensor<4xf32>) -> tensor<f32>
  return %loss, %x : tensor<f32>, tensor<4xf32>
}
