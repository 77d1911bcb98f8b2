// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --kiln-derive-weights | FileCheck %s

// The scale of a batch norm is a derived weight; a stack has one for each layer, computed by a function in such a
// loop. Values that are cheap to compute stay where they are read.
// CHECK-LABEL: func.func @batch_norm
// CHECK: kiln.repeat
// CHECK: %[[SCALE:.*]] = kiln.parameter {copies = 3 : i64, derived, sources = ["=0 {}"]} : tensor<8xf32>
// CHECK-NOT: kiln.sqrt
// CHECK: kiln.mul %{{.*}}, %[[SCALE]]
// CHECK: kiln.sub
// CHECK-LABEL: func.func @bind.derive() attributes {kiln.derives = "{{.*}}", kiln.entry}
// CHECK-NEXT: %[[EPSILON:.*]] = kiln.constant
// CHECK-NEXT: kiln.repeat 3 () {
// CHECK-NEXT: %[[WEIGHT:.*]] = kiln.parameter {copies = 3 : i64, sources = ["h.{}.weight"]}
// CHECK-NEXT: %[[VARIANCE:.*]] = kiln.parameter {copies = 3 : i64, sources = ["h.{}.variance"]}
// CHECK-NEXT: %[[SUM:.*]] = kiln.add %[[VARIANCE]], %[[EPSILON]]
// CHECK-NEXT: %[[ROOT:.*]] = kiln.sqrt %[[SUM]]
// CHECK-NEXT: %[[QUOTIENT:.*]] = kiln.div %[[WEIGHT]], %[[ROOT]]
// CHECK-NEXT: %[[DERIVED:.*]] = kiln.parameter {copies = 3 : i64, derived, sources = ["=0 {}"]}
// CHECK-NEXT: kiln.assign %[[QUOTIENT]] to %[[DERIVED]]
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

// Functions, sums and products of weights are derived, too; two entries share them. An expanded small tensor is not.
// CHECK-LABEL: func.func @first
// CHECK-DAG: kiln.parameter {derived, sources = ["=[[A:[0-9]]]"]} : tensor<8xf32>
// CHECK-DAG: kiln.parameter {derived, sources = ["=[[B:[0-9]]]"]} : tensor<5x8xf32>
// CHECK-DAG: kiln.parameter {derived, sources = ["=[[C:[0-9]]]"]} : tensor<1x1xf32>
// CHECK: kiln.expand
// CHECK-LABEL: func.func @second
// CHECK: kiln.parameter {derived, sources = ["=[[A]]"]} : tensor<8xf32>
// CHECK-NOT: kiln.exp
// CHECK-LABEL: func.func @bind.derive
// CHECK-COUNT-3: kiln.assign
// CHECK-NOT: kiln.assign
func.func @first(%x: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>) attributes {kiln.entry} {
  %v = kiln.parameter {sources = ["v"]} : tensor<8xf32>
  %u = kiln.parameter {sources = ["u"]} : tensor<5x3xf32>
  %w = kiln.parameter {sources = ["w"]} : tensor<8x3xf32>
  %exp = kiln.exp %v : tensor<8xf32>
  %product = kiln.linear %u, %w weight_order = out_in : (tensor<5x3xf32>, tensor<8x3xf32>) -> tensor<5x8xf32>
  %part = kiln.slice %v axis = 0 start = 2 : tensor<8xf32> -> tensor<1xf32>
  %tanh = kiln.tanh %part : tensor<1xf32>
  %square = kiln.reshape %tanh : tensor<1xf32> -> tensor<1x1xf32>
  %kept = kiln.sigmoid %square : tensor<1x1xf32>
  %repeated = kiln.expand %kept : tensor<1x1xf32> -> tensor<5x8xf32>
  %y = kiln.mul %x, %exp : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  %z = kiln.add %y, %product : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %z, %repeated : tensor<5x8xf32>, tensor<5x8xf32>
}
func.func @second(%x: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %v = kiln.parameter {sources = ["v"]} : tensor<8xf32>
  %exp = kiln.exp %v : tensor<8xf32>
  %y = kiln.sub %x, %exp : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// A library that writes weights computes all of them in each call.
// CHECK-LABEL: func.func @trained
// CHECK-NOT: derived
func.func @trained(%x: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %v = kiln.parameter {sources = ["v"], variable} : tensor<8xf32>
  %w = kiln.parameter {sources = ["w"]} : tensor<8xf32>
  %root = kiln.sqrt %w : tensor<8xf32>
  %y = kiln.mul %x, %root : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  %z = kiln.mul %y, %v : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  return %z : tensor<5x8xf32>
}
