// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --kiln-cut-stages=stages=5 | FileCheck %s

// Of seven layers the third and the fourth of five stages have two, of six the fourth: so those between the first and
// the last are of three kinds. Each takes its layers' slices of a sequence, by the number of its first one.
// CHECK: module attributes {kiln.roles = array<i64: 0, 4, 1, 2, 3>, kiln.stages = 5 : i64}
// CHECK-LABEL: func.func @numbered_first
// CHECK-SAME: attributes {kiln.entry, kiln.layers = 7 : i64, kiln.role = "first"}
// CHECK: %[[STAGE:.*]] = kiln.rank over stages : tensor<i32>
// CHECK: %[[FIRSTS:.*]] = kiln.constant dense<[0, 1, 2, 4, 6]> : tensor<5xi32>
// CHECK: %[[FIRST:.*]] = kiln.gather %[[FIRSTS]], %[[STAGE]] axis = 0
// CHECK: %[[OWN:.*]] = kiln.add %[[FIRST]], %{{.*}} : (tensor<i32>, tensor<1xi32>) -> tensor<1xi32>
// CHECK: %[[NUMBERS:.*]] = kiln.gather %{{.*}}, %[[OWN]] axis = 0 : (tensor<7xi32>, tensor<1xi32>) -> tensor<1xi32>
// CHECK: kiln.scan ({{.*}}) over (%{{.*}} = %[[NUMBERS]] : tensor<1xi32>) layers
// CHECK: kiln.parameter {sources = ["deep.{}.weight"]}
// CHECK-LABEL: func.func @numbered_last
// CHECK: kiln.scan ({{.*}}) over (%{{.*}} : tensor<1xi32>) layers
// CHECK-LABEL: func.func @numbered_middle(
// CHECK: kiln.scan ({{.*}}) over (%{{.*}} : tensor<1xi32>) layers
// CHECK-LABEL: func.func @numbered_middle2(
// CHECK: kiln.constant dense<[0, 1]> : tensor<2xi32>
// CHECK: kiln.scan ({{.*}}) over (%{{.*}} : tensor<2xi32>) layers
// CHECK: kiln.parameter {copies = 2 : i64, sources = ["deep.{}.weight"]}
// CHECK-LABEL: func.func @numbered_middle3(
// CHECK: kiln.scan ({{.*}}) over (%{{.*}} : tensor<2xi32>) layers
// CHECK-LABEL: func.func @written_first
// CHECK: kiln.repeat 1
// CHECK-LABEL: func.func @written_last
// CHECK: kiln.repeat 1
// CHECK-LABEL: func.func @written_middle(
// CHECK: kiln.repeat 1
// CHECK-LABEL: func.func @written_middle2(
// CHECK: kiln.repeat 1
// CHECK-LABEL: func.func @written_middle3(
// CHECK: kiln.repeat 2
// CHECK: kiln.append %{{.*}} to "h.{}.keys" copies = 2 rows = 7
module {
  func.func @numbered(%x: tensor<8xi32> {kiln.name = "x"}) -> (tensor<8xi32> {kiln.name = "y"}) attributes {kiln.entry} {
    %numbers = kiln.constant dense<[0, 1, 2, 3, 4, 5, 6]> : tensor<7xi32>
    %y = kiln.scan (%h = %x : tensor<8xi32>) over (%n = %numbers : tensor<7xi32>) layers {
      %weight = kiln.parameter {sources = ["deep.{}.weight"], copies = 7} : tensor<8xi32>
      %z = kiln.add %h, %weight : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
      %w = kiln.add %z, %n : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
      kiln.yield %w : tensor<8xi32>
    }
    return %y : tensor<8xi32>
  }
  func.func @written(%x: tensor<7x8xf32> {kiln.name = "x"}) -> (tensor<7x8xf32> {kiln.name = "y"}) attributes {kiln.entry} {
    %y = kiln.repeat 6 (%h = %x : tensor<7x8xf32>) {
      %keys = kiln.append %h to "h.{}.keys" copies = 6 rows = 7 : tensor<7x8xf32> -> tensor<7x8xf32>
      kiln.yield %keys : tensor<7x8xf32>
    }
    return %y : tensor<7x8xf32>
  }
}
