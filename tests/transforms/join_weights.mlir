// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --kiln-join-weights | FileCheck %s

// CHECK-LABEL: @experts
// CHECK-DAG: kiln.parameter {copies = 3 : i64, source_extents = array<i64: 5, 5>, sources = ["h.{}.0.w", "h.{}.1.w"]} : tensor<10x3xf32>
// CHECK-DAG: kiln.parameter {source_extents = array<i64: 5, 5>, sources = ["0.b", "1.b"]} : tensor<10xf32>
// CHECK-NOT: kiln.concat
// CHECK: kiln.grouped_linear
func.func @experts(%x: tensor<7x3xf32>, %init: tensor<7x5xf32>, %ends: tensor<2xi32>) -> tensor<7x5xf32> attributes {kiln.entry} {
  %2 = kiln.parameter {sources = ["0.b"]} : tensor<5xf32>
  %3 = kiln.parameter {sources = ["1.b"]} : tensor<5xf32>
  %b = kiln.concat %2, %3 axis = 0 : (tensor<5xf32>, tensor<5xf32>) -> tensor<10xf32>
  %result = kiln.repeat 3 (%c = %init : tensor<7x5xf32>) {
    %0 = kiln.parameter {copies = 3, sources = ["h.{}.0.w"]} : tensor<5x3xf32>
    %1 = kiln.parameter {copies = 3, sources = ["h.{}.1.w"]} : tensor<5x3xf32>
    %w = kiln.concat %0, %1 axis = 0 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<10x3xf32>
    %y = kiln.grouped_linear %x, %w, %ends, %b weight_order = out_in : (tensor<7x3xf32>, tensor<10x3xf32>, tensor<2xi32>, tensor<10xf32>) -> tensor<7x5xf32>
    %z = kiln.add %y, %c : (tensor<7x5xf32>, tensor<7x5xf32>) -> tensor<7x5xf32>
    kiln.yield %z : tensor<7x5xf32>
  }
  return %result : tensor<7x5xf32>
}

// -----

// Another entry reads one of the weights: it is stored once, by itself. So is the other one.
// CHECK-LABEL: @experts
// CHECK-COUNT-2: kiln.parameter {sources = ["{{[01]}}.w"]} : tensor<5x3xf32>
// CHECK: kiln.concat
func.func @experts(%x: tensor<7x3xf32>, %ends: tensor<2xi32>) -> tensor<7x5xf32> attributes {kiln.entry} {
  %0 = kiln.parameter {sources = ["0.w"]} : tensor<5x3xf32>
  %1 = kiln.parameter {sources = ["1.w"]} : tensor<5x3xf32>
  %w = kiln.concat %0, %1 axis = 0 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<10x3xf32>
  %y = kiln.grouped_linear %x, %w, %ends weight_order = out_in : (tensor<7x3xf32>, tensor<10x3xf32>, tensor<2xi32>) -> tensor<7x5xf32>
  return %y : tensor<7x5xf32>
}
func.func @one(%x: tensor<7x3xf32>) -> tensor<7x5xf32> attributes {kiln.entry} {
  %1 = kiln.parameter {sources = ["1.w"]} : tensor<5x3xf32>
  %y = kiln.linear %x, %1 weight_order = out_in : (tensor<7x3xf32>, tensor<5x3xf32>) -> tensor<7x5xf32>
  return %y : tensor<7x5xf32>
}

// -----

// An entry trains, so that each weight is written.
// CHECK-LABEL: @trained
// CHECK: kiln.concat
func.func @trained(%x: tensor<7x3xf32>, %ends: tensor<2xi32>) -> tensor<7x5xf32> attributes {kiln.entry, kiln.training = {update = "give", inputs = 2 : i64, loss = "loss", parameters = [{name = "0.w"}]}} {
  %0 = kiln.parameter {sources = ["0.w"]} : tensor<5x3xf32>
  %1 = kiln.parameter {sources = ["1.w"]} : tensor<5x3xf32>
  %w = kiln.concat %0, %1 axis = 0 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<10x3xf32>
  %y = kiln.grouped_linear %x, %w, %ends weight_order = out_in : (tensor<7x3xf32>, tensor<10x3xf32>, tensor<2xi32>) -> tensor<7x5xf32>
  return %y : tensor<7x5xf32>
}

// -----

// A linear also reads the joined weight, as one of all outputs.
// CHECK-LABEL: @all
// CHECK: kiln.concat
func.func @all(%x: tensor<7x3xf32>, %ends: tensor<2xi32>) -> (tensor<7x5xf32>, tensor<7x10xf32>) attributes {kiln.entry} {
  %0 = kiln.parameter {sources = ["0.w"]} : tensor<5x3xf32>
  %1 = kiln.parameter {sources = ["1.w"]} : tensor<5x3xf32>
  %w = kiln.concat %0, %1 axis = 0 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<10x3xf32>
  %y = kiln.grouped_linear %x, %w, %ends weight_order = out_in : (tensor<7x3xf32>, tensor<10x3xf32>, tensor<2xi32>) -> tensor<7x5xf32>
  %z = kiln.linear %x, %w weight_order = out_in : (tensor<7x3xf32>, tensor<10x3xf32>) -> tensor<7x10xf32>
  return %y, %z : tensor<7x5xf32>, tensor<7x10xf32>
}
