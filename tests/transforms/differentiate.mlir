// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --kiln-differentiate --verify-diagnostics | FileCheck %s

// The gradient of the parameter is a further result. The request stays for the passes that follow.
// CHECK-LABEL: func.func @train
// CHECK-SAME: -> (tensor<f32> {kiln.name = "loss"}, tensor<4xf32> {kiln.gradient_of = "w"})
// CHECK-SAME: kiln.training = {
// CHECK: %[[W:.*]] = kiln.parameter {sources = ["w"]} : tensor<4xf32>
// CHECK: %[[Y:.*]] = kiln.mul %arg0, %[[W]]
// CHECK: %[[LOSS:.*]] = kiln.sum %[[Y]]
// CHECK: kiln.mul
// CHECK: return %[[LOSS]], %{{.*}} : tensor<f32>, tensor<4xf32>
func.func @train(%x: tensor<4xf32> {kiln.name = "x"}, %rate: tensor<f32> {kiln.name = "learning_rate"}, %step: tensor<i32> {kiln.name = "step"})
    -> (tensor<f32> {kiln.name = "loss"})
    attributes {kiln.entry, kiln.training = {update = "sgd", inputs = 1 : i64, loss = "loss", parameters = [{name = "w"}]}} {
  %w = kiln.parameter {sources = ["w"]} : tensor<4xf32>
  %y = kiln.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = kiln.sum %y axis = 0 : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Callers get the gradients of an entry that gives them, under names that follow from the parameters'. Layers of a stack
// come first. The order is that of the request.
// CHECK-LABEL: func.func @gradients
// CHECK-SAME: tensor<f32> {kiln.name = "loss"}, tensor<f32> {kiln.gradient_of = "bias", kiln.name = "grad_bias"}, tensor<3x4xf32> {kiln.gradient_of = "h.{}.w", kiln.name = "grad_h_w"}
// CHECK: kiln.repeat 3
// CHECK: kiln.scan {{.*}}reverse layers
// CHECK: return %{{.*}}, %{{.*}}, %{{.*}} : tensor<f32>, tensor<f32>, tensor<3x4xf32>
func.func @gradients(%x: tensor<4xf32> {kiln.name = "x"}) -> (tensor<f32> {kiln.name = "loss"})
    attributes {kiln.entry, kiln.training = {update = "give", inputs = 1 : i64, loss = "loss", parameters = [{name = "bias"}, {name = "h.{}.w", copies = 3 : i64}]}} {
  %last = kiln.repeat 3 (%h = %x : tensor<4xf32>) {
    %w = kiln.parameter {sources = ["h.{}.w"], copies = 3} : tensor<4xf32>
    %y = kiln.mul %h, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    kiln.yield %y : tensor<4xf32>
  }
  %sum = kiln.sum %last axis = 0 : (tensor<4xf32>) -> tensor<f32>
  %bias = kiln.parameter {sources = ["bias"]} : tensor<f32>
  %loss = kiln.add %sum, %bias : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Marks that only affect gradients are erased from other entries.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: kiln.stop_gradient
// CHECK: return %arg0
func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> attributes {kiln.entry} {
  %y = kiln.stop_gradient %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// expected-error @below {{gradients: first result is no loss; expected a scalar of f32, got 'tensor<4xf32>'}}
func.func @vector(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {kiln.entry, kiln.training = {update = "give", inputs = 1 : i64, loss = "loss", parameters = []}} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{gradients: loss does not depend on a parameter; expected that it depends on each of the entry, got "w"}}
func.func @unread(%x: tensor<f32>) -> tensor<f32>
    attributes {kiln.entry, kiln.training = {update = "give", inputs = 1 : i64, loss = "loss", parameters = [{name = "w"}]}} {
  return %x : tensor<f32>
}

// -----

// expected-error @below {{kiln.training: wrong owner or value; expected a function with a body, and what its training asks for}}
func.func @unknown_update(%x: tensor<f32>) -> tensor<f32>
    attributes {kiln.entry, kiln.training = {update = "lion", inputs = 1 : i64, loss = "loss", parameters = []}} {
  return %x : tensor<f32>
}

// -----

// expected-error @below {{kiln.training: too many inputs of the loss; expected at most 1, got 2}}
func.func @too_many_inputs(%x: tensor<f32>) -> tensor<f32>
    attributes {kiln.entry, kiln.training = {update = "give", inputs = 2 : i64, loss = "loss", parameters = []}} {
  return %x : tensor<f32>
}
