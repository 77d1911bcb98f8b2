// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --kiln-derive-weights | FileCheck %s

// The scale of a batch norm is a weight with a formula, in a stack one a layer. What takes neither a division nor a root
// stays where it is read.
// CHECK-LABEL: @batch_norm
// CHECK: kiln.repeat
// CHECK: %[[SCALE:.*]] = kiln.parameter {copies = 3 : i64, formula = [0, 1, 9.99999974E-6 : f32, "add", "sqrt", "div"], sources = ["h.{}.weight", "h.{}.variance"]} : tensor<8xf32>
// CHECK: kiln.mul %{{.*}}, %[[SCALE]]
// CHECK: kiln.sub
func.func @batch_norm(%x: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %epsilon = kiln.constant dense<9.99999974E-6> : tensor<f32>
  %y = kiln.repeat 3 (%h = %x : tensor<5x8xf32>) {
    %weight = kiln.parameter {sources = ["h.{}.weight"], copies = 3} : tensor<8xf32>
    %bias = kiln.parameter {sources = ["h.{}.bias"], copies = 3} : tensor<8xf32>
    %mean = kiln.parameter {sources = ["h.{}.mean"], copies = 3} : tensor<8xf32>
    %variance = kiln.parameter {sources = ["h.{}.variance"], copies = 3} : tensor<8xf32>
    %sum = kiln.add %variance, %epsilon : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %root = kiln.sqrt %sum : tensor<8xf32>
    %scale = kiln.div %weight, %root : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %scaled = kiln.mul %h, %scale : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
    %both = kiln.sub %bias, %mean : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %next = kiln.add %scaled, %both : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
    kiln.yield %next : tensor<5x8xf32>
  }
  return %y : tensor<5x8xf32>
}

// -----

// Weights of other shapes, and a product before a sum, which kernels round once.
// CHECK-LABEL: @others
// CHECK-NOT: formula
func.func @others(%x: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<8xf32>) attributes {kiln.entry} {
  %one = kiln.parameter {sources = ["one"]} : tensor<1xf32>
  %w = kiln.parameter {sources = ["w"]} : tensor<8xf32>
  %quotient = kiln.div %w, %one : (tensor<8xf32>, tensor<1xf32>) -> tensor<8xf32>
  %square = kiln.mul %w, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %sum = kiln.add %square, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %root = kiln.sqrt %sum : tensor<8xf32>
  %y = kiln.mul %x, %quotient : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  return %y, %root : tensor<5x8xf32>, tensor<8xf32>
}

// -----

// A library that writes weights computes all of them in each call.
// CHECK-LABEL: @trained
// CHECK-NOT: formula
func.func @trained(%x: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %v = kiln.parameter {sources = ["v"], variable} : tensor<8xf32>
  %w = kiln.parameter {sources = ["w"]} : tensor<8xf32>
  %root = kiln.sqrt %w : tensor<8xf32>
  %y = kiln.mul %x, %root : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  %z = kiln.mul %y, %v : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  return %z : tensor<5x8xf32>
}
