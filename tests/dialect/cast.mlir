// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%b: tensor<7xi1>, %x: tensor<7xf32>) -> (tensor<7xi32>, tensor<7xf32>, tensor<7xf32>) {
  // CHECK: kiln.cast %{{.*}} : tensor<7xf32> -> tensor<7xi32>
  %0 = kiln.cast %x : tensor<7xf32> -> tensor<7xi32>
  // CHECK: kiln.cast %{{.*}} : tensor<7xi32> -> tensor<7xf32>
  %1 = kiln.cast %0 : tensor<7xi32> -> tensor<7xf32>
  // CHECK: kiln.cast %{{.*}} : tensor<7xi1> -> tensor<7xf32>
  %2 = kiln.cast %b : tensor<7xi1> -> tensor<7xf32>
  return %0, %1, %2 : tensor<7xi32>, tensor<7xf32>, tensor<7xf32>
}

// -----
func.func @extents(%x: tensor<7xf32>) {
  // expected-error@+1 {{'kiln.cast' op requires the same shape for all operands and results}}
  %0 = kiln.cast %x : tensor<7xf32> -> tensor<8xi32>
  return
}

// -----
func.func @symbols(%x: tensor<?xf32, affine_map<()[s0, s1] -> (s0)>>) {
  // expected-error@+1 {{cast: shape differs from the operand's; expected}}
  %0 = kiln.cast %x : tensor<?xf32, affine_map<()[s0, s1] -> (s0)>> -> tensor<?xi32, affine_map<()[s0, s1] -> (s1)>>
  return
}

// -----
func.func @cast_c1(%x: tensor<7xf32>) {
  // expected-error@+1 {{cast: unsupported result type; expected f32, f16, bf16, i32 or i8, got i4[7] [cast_c1]}}
  %0 = kiln.cast %x : tensor<7xf32> -> tensor<7xi4>
  return
}
