// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<2x7x3xf32>) -> tensor<2x7x3xi8> {
  // CHECK: %[[S:.*]] = kiln.row_scales %{{.*}} : (tensor<2x7x3xf32>) -> tensor<2x7xf32>
  // CHECK: kiln.quantize_rows %{{.*}}, %[[S]] : (tensor<2x7x3xf32>, tensor<2x7xf32>) -> tensor<2x7x3xi8>
  %s = kiln.row_scales %x : (tensor<2x7x3xf32>) -> tensor<2x7xf32>
  %0 = kiln.quantize_rows %x, %s : (tensor<2x7x3xf32>, tensor<2x7xf32>) -> tensor<2x7x3xi8>
  return %0 : tensor<2x7x3xi8>
}

// -----
func.func @no_rows(%x: tensor<f32>) {
  // expected-error@+1 {{row_scales: operand has no rows; expected rank 1 or more, got f32[]}}
  %0 = kiln.row_scales %x : (tensor<f32>) -> tensor<f32>
  return
}

// -----
func.func @scales_with_columns(%x: tensor<7x3xf32>) {
  // expected-error@+1 {{row_scales: result does not follow from the operands; expected f32[7], got f32[3]}}
  %0 = kiln.row_scales %x : (tensor<7x3xf32>) -> tensor<3xf32>
  return
}

// -----
func.func @other_rows(%x: tensor<7x3xf32>, %s: tensor<6xf32>) {
  // expected-error@+1 {{quantize_rows: wrong shape of the scales; expected one for each row, got f32[7, 3], f32[6]}}
  %0 = kiln.quantize_rows %x, %s : (tensor<7x3xf32>, tensor<6xf32>) -> tensor<7x3xi8>
  return
}

// -----
func.func @other_floats(%x: tensor<7x3xf16>) {
  // expected-error@+1 {{operand #0 must be ranked tensor of 32-bit float values}}
  %0 = kiln.row_scales %x : (tensor<7x3xf16>) -> tensor<7xf16>
  return
}
