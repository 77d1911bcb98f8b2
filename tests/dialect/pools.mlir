// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<2x9x11x6xf32>) -> (tensor<2x4x5x6xf32>, tensor<2x5x4x6xf32>) {
  // CHECK: kiln.max_pool2d %{{.*}} kernel = [2, 2] stride = [2, 2] padding = [0, 0] : (tensor<2x9x11x6xf32>) -> tensor<2x4x5x6xf32>
  %0 = kiln.max_pool2d %x kernel = [2, 2] stride = [2, 2] padding = [0, 0] : (tensor<2x9x11x6xf32>) -> tensor<2x4x5x6xf32>
  // CHECK: kiln.avg_pool2d %{{.*}} kernel = [3, 2] stride = [2, 3] padding = [1, 0] : (tensor<2x9x11x6xf32>) -> tensor<2x5x4x6xf32>
  %1 = kiln.avg_pool2d %x kernel = [3, 2] stride = [2, 3] padding = [1, 0] : (tensor<2x9x11x6xf32>) -> tensor<2x5x4x6xf32>
  return %0, %1 : tensor<2x4x5x6xf32>, tensor<2x5x4x6xf32>
}

// -----
func.func @pool2d_c1(%x: tensor<9x6xf32>) {
  // expected-error@+1 {{pool: wrong rank of the image; expected [..., height, width, channels] of rank 3 or more, got f32[9, 6] [pool2d_c1]}}
  %0 = kiln.max_pool2d %x kernel = [2, 2] stride = [2, 2] padding = [0, 0] : (tensor<9x6xf32>) -> tensor<4x6xf32>
  return
}

// -----
func.func @pool2d_c3(%x: tensor<9x9x6xf32>) {
  // expected-error@+1 {{pool: padding above half of the kernel; expected at most half of 3, got 2 [pool2d_c3]}}
  %0 = kiln.max_pool2d %x kernel = [3, 3] stride = [1, 1] padding = [2, 1] : (tensor<9x9x6xf32>) -> tensor<11x9x6xf32>
  return
}

// -----
func.func @window_c2(%x: tensor<2x9x6xf32>) {
  // expected-error@+1 {{window: larger than the padded image; expected an image that holds it, got f32[2, 9, 6] [window_c2]}}
  %0 = kiln.avg_pool2d %x kernel = [3, 3] stride = [1, 1] padding = [0, 0] : (tensor<2x9x6xf32>) -> tensor<1x7x6xf32>
  return
}
