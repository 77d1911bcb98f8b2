// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>, %n: tensor<7x9xi32>) -> tensor<7x3xi32> {
  // CHECK: kiln.argsort %{{.*}} axis = 0 : (tensor<?x5xf32, {{.*}}>) -> tensor<?x5xi32, {{.*}}>
  %0 = kiln.argsort %x axis = 0 : (tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>) -> tensor<?x5xi32, affine_map<()[s0] -> (s0, 5)>>
  // CHECK: kiln.argsort %{{.*}} axis = 1 descending : (tensor<7x9xi32>) -> tensor<7x3xi32>
  %1 = kiln.argsort %n axis = 1 descending : (tensor<7x9xi32>) -> tensor<7x3xi32>
  return %1 : tensor<7x3xi32>
}

// -----
func.func @axis(%x: tensor<7x9xf32>) {
  // expected-error@+1 {{sort: axis out of range; expected one within the rank, got axis 2 of f32[7, 9] [sort_c1]}}
  %0 = kiln.argsort %x axis = 2 : (tensor<7x9xf32>) -> tensor<7x9xi32>
  return
}

// -----
func.func @more_than_there_are(%x: tensor<7x9xf32>) {
  // expected-error@+1 {{argsort: count is not from 1 to the axis's dimension; expected 9, got 10 [argsort_c1]}}
  %0 = kiln.argsort %x axis = 1 : (tensor<7x9xf32>) -> tensor<7x10xi32>
  return
}

// -----
func.func @another_shape(%x: tensor<7x9xf32>) {
  // expected-error@+1 {{argsort: wrong shape of the result; expected that of the operand except along the axis, got f32[7, 9], i32[6, 9]}}
  %0 = kiln.argsort %x axis = 1 : (tensor<7x9xf32>) -> tensor<6x9xi32>
  return
}

// -----
func.func @booleans(%x: tensor<7x9xi1>) {
  // expected-error@+1 {{'kiln.argsort' op operand #0 must be ranked tensor of}}
  %0 = kiln.argsort %x axis = 1 : (tensor<7x9xi1>) -> tensor<7x9xi32>
  return
}
