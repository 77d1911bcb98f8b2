// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels{norm-moments=true},canonicalize,cse,kiln-verify-kernels)' | FileCheck %s
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels,canonicalize,cse,kiln-verify-kernels)' | FileCheck %s --check-prefix=OFF

// OFF-NOT: kiln.panel_moments
#x = affine_map<()[s0, s1] -> (s0, s1, 32)>
#h = affine_map<()[s0, s1] -> (s0, s1, 8)>
module attributes {kiln.symbols = [#kiln.symbol<"batch", 1, 4>, #kiln.symbol<"tokens", 1, 16>]} {

// The sum that the norm and others read has moments, which go with its rows from kernel to kernel; so do both norms of it.
// CHECK-DAG: #[[ROWS:.*]] = affine_map<()[s0] -> (s0, 32)>
// CHECK-DAG: #[[PANELS:.*]] = affine_map<()[s0] -> (s0, 2)>
// CHECK: func.func private @linear_add_0
// CHECK-SAME: -> (tensor<?x32xf32, #[[ROWS]]>, tensor<?x2xf32, #[[PANELS]]>, tensor<?x2xf32, #[[PANELS]]>)
// CHECK: kiln.linear
// CHECK-NEXT: %[[Z:.*]] = kiln.add
// CHECK-NEXT: %[[M:.*]], %[[S:.*]] = kiln.panel_moments %[[Z]] width = 16
// CHECK-NEXT: return %[[Z]], %[[M]], %[[S]]
// CHECK: func.func private @layer_norm_1
// CHECK: kiln.layer_norm {{.*}} moments
// CHECK: func.func private @rms_norm_2
// CHECK: kiln.rms_norm {{.*}} moments
// CHECK: func.func @residual
// CHECK: %[[K:.*]]:3 = kiln.call @linear_add_0
// CHECK: kiln.call @layer_norm_1{{.*}}(%[[K]]#0, {{.*}}, %[[K]]#1, %[[K]]#2)
// CHECK: kiln.call @rms_norm_2{{.*}}(%[[K]]#0, {{.*}}, %[[K]]#1, %[[K]]#2)
func.func @residual(%s0: index {kiln.symbol = "batch"}, %s1: index {kiln.symbol = "tokens"}, %x: tensor<?x?x8xf32, #h>,
    %r: tensor<?x?x32xf32, #x>) -> (tensor<?x?x32xf32, #x>, tensor<?x?x32xf32, #x>, tensor<?x?x32xf32, #x>) attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["w"]} : tensor<32x8xf32, #kiln.tiled<0, 16>>
  %g = kiln.parameter {sources = ["g"]} : tensor<32xf32>
  %y = kiln.linear %x, %w weight_order = out_in : (tensor<?x?x8xf32, #h>, tensor<32x8xf32, #kiln.tiled<0, 16>>) -> tensor<?x?x32xf32, #x>
  %z = kiln.add %y, %r : (tensor<?x?x32xf32, #x>, tensor<?x?x32xf32, #x>) -> tensor<?x?x32xf32, #x>
  %n = kiln.layer_norm %z, %g, %g epsilon = 1.0e-5 : (tensor<?x?x32xf32, #x>, tensor<32xf32>, tensor<32xf32>) -> tensor<?x?x32xf32, #x>
  %q = kiln.rms_norm %z, %g epsilon = 1.0e-5 : (tensor<?x?x32xf32, #x>, tensor<32xf32>) -> tensor<?x?x32xf32, #x>
  return %z, %n, %q : tensor<?x?x32xf32, #x>, tensor<?x?x32xf32, #x>, tensor<?x?x32xf32, #x>
}
}

// -----

// No moments: of columns that are not whole tiles, of a dense weight, of what no contraction leaves, of another's operand.
// CHECK-LABEL: func.func @none
// CHECK-NOT: kiln.panel_moments
// CHECK-NOT: moments
func.func @none(%x: tensor<5x8xf32>, %a: tensor<5x32xf32>) -> (tensor<5x24xf32>, tensor<5x32xf32>, tensor<5x32xf32>) attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["w"]} : tensor<24x8xf32, #kiln.tiled<0, 16>>
  %v = kiln.parameter {sources = ["v"]} : tensor<32x8xf32>
  %g = kiln.parameter {sources = ["g"]} : tensor<24xf32>
  %h = kiln.parameter {sources = ["h"]} : tensor<32xf32>
  %y = kiln.linear %x, %w weight_order = out_in : (tensor<5x8xf32>, tensor<24x8xf32, #kiln.tiled<0, 16>>) -> tensor<5x24xf32>
  %0 = kiln.rms_norm %y, %g epsilon = 1.0e-5 : (tensor<5x24xf32>, tensor<24xf32>) -> tensor<5x24xf32>
  %z = kiln.linear %x, %v weight_order = out_in : (tensor<5x8xf32>, tensor<32x8xf32>) -> tensor<5x32xf32>
  %1 = kiln.rms_norm %z, %h epsilon = 1.0e-5 : (tensor<5x32xf32>, tensor<32xf32>) -> tensor<5x32xf32>
  %2 = kiln.rms_norm %a, %h epsilon = 1.0e-5 : (tensor<5x32xf32>, tensor<32xf32>) -> tensor<5x32xf32>
  return %0, %1, %2 : tensor<5x24xf32>, tensor<5x32xf32>, tensor<5x32xf32>
}
