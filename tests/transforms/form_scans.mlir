// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels{runs-scans=true},kiln-verify-kernels,func.func(kiln-lower-kernels),kiln-verify-kernels{lowered=true})' | FileCheck %s
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels)' | FileCheck %s --check-prefix=LOOP

// A loop over time is one kernel, with an initial value that is constant. Without the option it is a loop of calls.
// CHECK-LABEL: func.func private @scan_0
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<9x33xf32>, %[[A:[a-z0-9]+]]: tensor<33xf32>)
// CHECK: %[[H0:.*]] = linalg.fill
// CHECK: %[[R:.*]]:2 = kiln.scan (%[[H:.*]] = %[[H0]] : tensor<33xf32>) over (%{{.*}} = %[[X]] : tensor<9x33xf32>)
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: kiln.yield
// CHECK: return %[[R]]#0, %[[R]]#1
// CHECK-LABEL: func.func @decay
// CHECK-NOT: kiln.scan
// CHECK: kiln.call @scan_0(%arg0, %arg1)
// CHECK-NEXT: return
// LOOP-LABEL: func.func @decay
// LOOP: kiln.scan
// LOOP-NEXT: kiln.call
func.func @decay(%xs: tensor<9x33xf32>, %a: tensor<33xf32>) -> (tensor<33xf32>, tensor<9x33xf32>) attributes {kiln.entry} {
  %h0 = kiln.constant dense<0.0> : tensor<33xf32>
  %0:2 = kiln.scan (%h = %h0 : tensor<33xf32>) over (%x = %xs : tensor<9x33xf32>) -> (tensor<9x33xf32>) {
    %m = kiln.mul %h, %a : (tensor<33xf32>, tensor<33xf32>) -> tensor<33xf32>
    %n = kiln.add %m, %x : (tensor<33xf32>, tensor<33xf32>) -> tensor<33xf32>
    kiln.yield %n, %n : tensor<33xf32>, tensor<33xf32>
  }
  return %0#0, %0#1 : tensor<33xf32>, tensor<9x33xf32>
}

// -----

// A product with a large weight, which is stored in tiles, stays a kernel of its own in a loop.
// CHECK-LABEL: func.func @elman
// CHECK: kiln.scan
// CHECK: kiln.call
func.func @elman(%xs: tensor<9x4x64xf32>, %h0: tensor<4x64xf32>, %w: tensor<64x64xf32, #kiln.tiled<0, 16>>)
    -> tensor<9x4x64xf32> attributes {kiln.entry} {
  %0:2 = kiln.scan (%h = %h0 : tensor<4x64xf32>) over (%x = %xs : tensor<9x4x64xf32>) -> (tensor<9x4x64xf32>) {
    %m = kiln.linear %h, %w weight_order = out_in : (tensor<4x64xf32>, tensor<64x64xf32, #kiln.tiled<0, 16>>) -> tensor<4x64xf32>
    %n = kiln.add %m, %x : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
    kiln.yield %n, %n : tensor<4x64xf32>, tensor<4x64xf32>
  }
  return %0#1 : tensor<9x4x64xf32>
}

// -----

// Elements that are no f32 stay with the kernels of the iteration.
// CHECK-LABEL: func.func @half
// CHECK: kiln.scan
func.func @half(%xs: tensor<9x33xf16>, %h0: tensor<33xf16>) -> tensor<33xf16> attributes {kiln.entry} {
  %0 = kiln.scan (%h = %h0 : tensor<33xf16>) over (%x = %xs : tensor<9x33xf16>) {
    %n = kiln.add %h, %x : (tensor<33xf16>, tensor<33xf16>) -> tensor<33xf16>
    kiln.yield %n : tensor<33xf16>
  }
  return %0 : tensor<33xf16>
}
