// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s
// RUN: kiln-opt %s -split-input-file -verify-diagnostics -canonicalize | FileCheck %s --check-prefix=CANON

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<2x9x11x6xf32>, %w: tensor<5x3x3x2xf32, #kiln.tiled<0, 4>>, %b: tensor<5xf32>) -> tensor<2x6x5x5xf32> {
  // CHECK: kiln.conv2d %{{.*}}, %{{.*}}, %{{.*}} stride = [2, 3] padding = [2, 1] dilation = [1, 1] groups = 1 : (tensor<2x9x11x3xf32>, tensor<5x3x3x2xf32, #kiln.tiled<0, 4>>, tensor<5xf32>) -> tensor<2x6x4x5xf32>
  %part = kiln.slice %x axis = 3 start = 0 : tensor<2x9x11x6xf32> -> tensor<2x9x11x3xf32>
  %0 = kiln.conv2d %part, %w, %b stride = [2, 3] padding = [2, 1] dilation = [1, 1] groups = 1
      : (tensor<2x9x11x3xf32>, tensor<5x3x3x2xf32, #kiln.tiled<0, 4>>, tensor<5xf32>) -> tensor<2x6x4x5xf32>
  %w2 = kiln.parameter {sources = ["w"]} : tensor<5x3x3x2xf32>
  %1 = kiln.conv2d %part, %w2 stride = [1, 2] padding = [0, 0] dilation = [1, 2] groups = 1
      : (tensor<2x9x11x3xf32>, tensor<5x3x3x2xf32>) -> tensor<2x7x5x5xf32>
  %2 = kiln.slice %1 axis = 1 start = 0 : tensor<2x7x5x5xf32> -> tensor<2x6x5x5xf32>
  return %2 : tensor<2x6x5x5xf32>
}

// A dynamic dimension: 2 n + 1 elements have n windows of size 3 with stride 2.
// -----
module attributes {kiln.symbols = [#kiln.symbol<"n", 1, 8>]} {
// CHECK-LABEL: @run_time
func.func @run_time(%x: tensor<?x9x3xf32, affine_map<()[s0] -> (s0 * 2 + 1, 9, 3)>>, %w: tensor<5x3x3x3xf32>) {
  // CHECK: kiln.conv2d
  %0 = kiln.conv2d %x, %w stride = [2, 1] padding = [0, 0] dilation = [1, 1] groups = 1
      : (tensor<?x9x3xf32, affine_map<()[s0] -> (s0 * 2 + 1, 9, 3)>>, tensor<5x3x3x3xf32>) -> tensor<?x7x5xf32, affine_map<()[s0] -> (s0, 7, 5)>>
  return
}
}

// A convolution with a kernel of one element becomes a linear.
// -----
// CANON-LABEL: @pointwise
func.func @pointwise(%x: tensor<9x11x6xf32>, %w: tensor<5x6x1x1xf32>, %b: tensor<5xf32>) -> tensor<9x11x5xf32> {
  // CANON: %[[W:.*]] = kiln.reshape %{{.*}} : tensor<5x6x1x1xf32> -> tensor<5x6xf32>
  // CANON: kiln.linear %{{.*}}, %[[W]], %{{.*}} weight_order = out_in
  %0 = kiln.conv2d %x, %w, %b stride = [1, 1] padding = [0, 0] dilation = [1, 1] groups = 1
      : (tensor<9x11x6xf32>, tensor<5x6x1x1xf32>, tensor<5xf32>) -> tensor<9x11x5xf32>
  return %0 : tensor<9x11x5xf32>
}

// -----
// CANON-LABEL: @sparse
func.func @sparse(%x: tensor<9x11x6xf32>, %w: tensor<5x6x1x1xf32>) -> tensor<5x6x5xf32> {
  // CANON: kiln.conv2d
  %0 = kiln.conv2d %x, %w stride = [2, 2] padding = [0, 0] dilation = [1, 1] groups = 1
      : (tensor<9x11x6xf32>, tensor<5x6x1x1xf32>) -> tensor<5x6x5xf32>
  return %0 : tensor<5x6x5xf32>
}

// -----
func.func @conv2d_c1(%x: tensor<9x6xf32>, %w: tensor<5x6x1x1xf32>) {
  // expected-error@+1 {{conv2d: wrong rank of the image; expected [..., height, width, channels] of rank 3 or more, got f32[9, 6] [conv2d_c1]}}
  %0 = kiln.conv2d %x, %w stride = [1, 1] padding = [0, 0] dilation = [1, 1] groups = 1 : (tensor<9x6xf32>, tensor<5x6x1x1xf32>) -> tensor<9x5xf32>
  return
}

// -----
func.func @conv2d_c2(%x: tensor<9x9x6xf32>, %w: tensor<5x6xf32>) {
  // expected-error@+1 {{conv2d: invalid weight; expected [outputs, channels / groups, kernel height, kernel width] of static dimensions, got f32[5, 6] [conv2d_c2]}}
  %0 = kiln.conv2d %x, %w stride = [1, 1] padding = [0, 0] dilation = [1, 1] groups = 1 : (tensor<9x9x6xf32>, tensor<5x6xf32>) -> tensor<9x9x5xf32>
  return
}

// -----
func.func @conv2d_c3(%x: tensor<9x9x6xf32>, %w: tensor<4x6x1x1xf32>) {
  // expected-error@+1 {{conv2d: wrong number of channels; expected 12, got 6 [conv2d_c3]}}
  %0 = kiln.conv2d %x, %w stride = [1, 1] padding = [0, 0] dilation = [1, 1] groups = 2 : (tensor<9x9x6xf32>, tensor<4x6x1x1xf32>) -> tensor<9x9x4xf32>
  return
}

// -----
func.func @conv2d_c4(%x: tensor<9x9x6xf32>, %w: tensor<5x3x1x1xf32>) {
  // expected-error@+1 {{conv2d: outputs are not divisible by the groups; expected a multiple of 2, got 5 [conv2d_c4]}}
  %0 = kiln.conv2d %x, %w stride = [1, 1] padding = [0, 0] dilation = [1, 1] groups = 2 : (tensor<9x9x6xf32>, tensor<5x3x1x1xf32>) -> tensor<9x9x5xf32>
  return
}

// -----
func.func @conv2d_c5(%x: tensor<9x9x6xf32>, %w: tensor<5x6x1x1xf32>, %b: tensor<6xf32>) {
  // expected-error@+1 {{conv2d: wrong bias shape; expected [5], got f32[6] [conv2d_c5]}}
  %0 = kiln.conv2d %x, %w, %b stride = [1, 1] padding = [0, 0] dilation = [1, 1] groups = 1 : (tensor<9x9x6xf32>, tensor<5x6x1x1xf32>, tensor<6xf32>) -> tensor<9x9x5xf32>
  return
}

// -----
func.func @conv2d_c6(%x: tensor<9x9x6xf32>, %w: tensor<5x6x1x1xf16>) {
  // expected-error@+1 {{conv2d: wrong element types; expected one floating-point type, got f32[9, 9, 6], f16[5, 6, 1, 1] [conv2d_c6]}}
  %0 = kiln.conv2d %x, %w stride = [1, 1] padding = [0, 0] dilation = [1, 1] groups = 1 : (tensor<9x9x6xf32>, tensor<5x6x1x1xf16>) -> tensor<9x9x5xf32>
  return
}

// -----
func.func @window_c1(%x: tensor<9x9x6xf32>, %w: tensor<5x6x1x1xf32>) {
  // expected-error@+1 {{window: invalid stride, dilation or padding; expected a stride and a dilation of at least 1 and a padding of at least 0, got stride 1, dilation 0, padding 0 [window_c1]}}
  %0 = kiln.conv2d %x, %w stride = [1, 1] padding = [0, 0] dilation = [0, 1] groups = 1 : (tensor<9x9x6xf32>, tensor<5x6x1x1xf32>) -> tensor<9x9x5xf32>
  return
}

// -----
func.func @window_pairs(%x: tensor<9x9x6xf32>, %w: tensor<5x6x1x1xf32>) {
  // expected-error@+1 {{window: wrong number of sizes; expected two for each property, got 1}}
  %0 = kiln.conv2d %x, %w stride = [1] padding = [0, 0] dilation = [1, 1] groups = 1 : (tensor<9x9x6xf32>, tensor<5x6x1x1xf32>) -> tensor<9x9x5xf32>
  return
}

// -----
func.func @window_numbers(%x: tensor<9x9x6xf32>, %w: tensor<5x6x1x1xf32>) {
  // expected-error@+1 {{window: number is too large; expected at most 2147483647, got 9223372036854775807}}
  %0 = kiln.conv2d %x, %w stride = [1, 1] padding = [0, 9223372036854775807] dilation = [1, 1] groups = 1 : (tensor<9x9x6xf32>, tensor<5x6x1x1xf32>) -> tensor<9x9x5xf32>
  return
}

// -----
func.func @conv2d_c3_overflow(%x: tensor<9x9x6xf32>, %w: tensor<6x6x1x1xf32>) {
  // expected-error@+1 {{conv2d: wrong number of channels; expected -1, got 6 [conv2d_c3]}}
  %0 = kiln.conv2d %x, %w stride = [1, 1] padding = [0, 0] dilation = [1, 1] groups = 9223372036854775807 : (tensor<9x9x6xf32>, tensor<6x6x1x1xf32>) -> tensor<9x9x6xf32>
  return
}

// -----
func.func @window_c2(%x: tensor<9x3x6xf32>, %w: tensor<5x6x3x5xf32>) {
  // expected-error@+1 {{window: larger than the padded image; expected an image that holds it, got f32[9, 3, 6] [window_c2]}}
  %0 = kiln.conv2d %x, %w stride = [1, 1] padding = [0, 0] dilation = [1, 1] groups = 1 : (tensor<9x3x6xf32>, tensor<5x6x3x5xf32>) -> tensor<7x1x5xf32>
  return
}

// -----
module attributes {kiln.symbols = [#kiln.symbol<"n", 4, 8>]} {
func.func @window_c3(%x: tensor<?x9x3xf32, affine_map<()[s0] -> (s0, 9, 3)>>, %w: tensor<5x3x3x3xf32>) {
  // expected-error@+1 {{window: dynamic image dimension is not divisible by the stride; expected a multiple of 2, got n 4..8 [window_c3]}}
  %0 = kiln.conv2d %x, %w stride = [2, 1] padding = [0, 0] dilation = [1, 1] groups = 1
      : (tensor<?x9x3xf32, affine_map<()[s0] -> (s0, 9, 3)>>, tensor<5x3x3x3xf32>) -> tensor<?x7x5xf32, affine_map<()[s0] -> (s0, 7, 5)>>
  return
}
}
