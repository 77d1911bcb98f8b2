// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels{norms-single-rows=true},canonicalize,cse,kiln-verify-kernels)' | FileCheck %s
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels,canonicalize,cse,kiln-verify-kernels)' | FileCheck %s --check-prefix=OFF

// A norm of one row and all products with it are one kernel, which does not return values that are used only inside it.

// CHECK: func.func private @{{.*}}(%{{.*}}) -> tensor<1x12xf32>
// CHECK: kiln.rms_norm
// CHECK: kiln.linear
// CHECK: kiln.linear
// CHECK: kiln.mul
// CHECK-LABEL: func.func @gated
// CHECK: %[[Y:.*]] = kiln.call
// CHECK-NEXT: return %[[Y]]
// OFF-LABEL: func.func @gated
// OFF-COUNT-3: kiln.call
func.func @gated(%x: tensor<1x8xf32>) -> tensor<1x12xf32> attributes {kiln.entry} {
  %g = kiln.parameter {sources = ["g"]} : tensor<8xf32>
  %u = kiln.parameter {sources = ["u"]} : tensor<12x8xf32>
  %v = kiln.parameter {sources = ["v"]} : tensor<12x8xf32>
  %n = kiln.rms_norm %x, %g epsilon = 1.000000e-05 : (tensor<1x8xf32>, tensor<8xf32>) -> tensor<1x8xf32>
  %a = kiln.linear %n, %u weight_order = out_in : (tensor<1x8xf32>, tensor<12x8xf32>) -> tensor<1x12xf32>
  %s = kiln.silu %a : tensor<1x12xf32>
  %b = kiln.linear %n, %v weight_order = out_in : (tensor<1x8xf32>, tensor<12x8xf32>) -> tensor<1x12xf32>
  %y = kiln.mul %s, %b : (tensor<1x12xf32>, tensor<1x12xf32>) -> tensor<1x12xf32>
  return %y : tensor<1x12xf32>
}

// -----

// No fusion for several rows, or if another operation reads the norm.

// CHECK-LABEL: func.func @several
// CHECK-COUNT-2: kiln.call
func.func @several(%x: tensor<2x8xf32>) -> tensor<2x12xf32> attributes {kiln.entry} {
  %g = kiln.parameter {sources = ["g"]} : tensor<8xf32>
  %u = kiln.parameter {sources = ["u"]} : tensor<12x8xf32>
  %n = kiln.rms_norm %x, %g epsilon = 1.000000e-05 : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %a = kiln.linear %n, %u weight_order = out_in : (tensor<2x8xf32>, tensor<12x8xf32>) -> tensor<2x12xf32>
  return %a : tensor<2x12xf32>
}

// -----

// CHECK-LABEL: func.func @returned
// CHECK-COUNT-2: kiln.call
func.func @returned(%x: tensor<1x8xf32>) -> (tensor<1x12xf32>, tensor<1x8xf32>) attributes {kiln.entry} {
  %g = kiln.parameter {sources = ["g"]} : tensor<8xf32>
  %u = kiln.parameter {sources = ["u"]} : tensor<12x8xf32>
  %n = kiln.rms_norm %x, %g epsilon = 1.000000e-05 : (tensor<1x8xf32>, tensor<8xf32>) -> tensor<1x8xf32>
  %a = kiln.linear %n, %u weight_order = out_in : (tensor<1x8xf32>, tensor<12x8xf32>) -> tensor<1x12xf32>
  return %a, %n : tensor<1x12xf32>, tensor<1x8xf32>
}

// -----

// No fusion if a product depends on another product of the norm.

// CHECK-LABEL: func.func @chained
// CHECK-COUNT-4: kiln.call
func.func @chained(%x: tensor<1x8xf32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) attributes {kiln.entry} {
  %g = kiln.parameter {sources = ["g"]} : tensor<8xf32>
  %u = kiln.parameter {sources = ["u"]} : tensor<8x8xf32>
  %v = kiln.parameter {sources = ["v"]} : tensor<8x8xf32>
  %n = kiln.rms_norm %x, %g epsilon = 1.000000e-05 : (tensor<1x8xf32>, tensor<8xf32>) -> tensor<1x8xf32>
  %a = kiln.linear %n, %u weight_order = out_in : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
  %s = kiln.softmax %a axis = 1 : tensor<1x8xf32>
  %b = kiln.linear %n, %v weight_order = out_in : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
  %y = kiln.mul %b, %s : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  return %y, %s : tensor<1x8xf32>, tensor<1x8xf32>
}
