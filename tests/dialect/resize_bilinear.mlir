// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<2x9x11x6xf32>) -> tensor<2x18x5x6xf32> {
  // CHECK: kiln.resize_bilinear %{{.*}} : tensor<2x9x11x6xf32> -> tensor<2x18x5x6xf32>
  %0 = kiln.resize_bilinear %x : tensor<2x9x11x6xf32> -> tensor<2x18x5x6xf32>
  return %0 : tensor<2x18x5x6xf32>
}

// -----
func.func @resize_bilinear_c1(%x: tensor<9x6xf32>) {
  // expected-error@+1 {{resize_bilinear: wrong rank of the image; expected [..., height, width, channels] of rank 3 or more, got f32[9, 6] [resize_bilinear_c1]}}
  %0 = kiln.resize_bilinear %x : tensor<9x6xf32> -> tensor<9x6xf32>
  return
}

// -----
module attributes {kiln.symbols = [#kiln.symbol<"n", 4, 8>]} {
func.func @resize_bilinear_c2(%x: tensor<?x9x3xf32, affine_map<()[s0] -> (s0, 9, 3)>>) {
  // expected-error@+1 {{resize_bilinear: dynamic dimension of the image; expected static ones, got f32[n 4..8, 9, 3] [resize_bilinear_c2]}}
  %0 = kiln.resize_bilinear %x : tensor<?x9x3xf32, affine_map<()[s0] -> (s0, 9, 3)>> -> tensor<5x9x3xf32>
  return
}
}

// -----
func.func @channels(%x: tensor<9x9x6xf32>) {
  // expected-error@+1 {{resize_bilinear: shapes differ; expected the operand's dimensions except height and width, got f32[9, 9, 6], f32[9, 9, 5]}}
  %0 = kiln.resize_bilinear %x : tensor<9x9x6xf32> -> tensor<9x9x5xf32>
  return
}
