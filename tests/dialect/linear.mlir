// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<2x7x3xf32>, %w: tensor<5x3xf32>, %b: tensor<5xf32>, %t: tensor<3x5xf32, #kiln.tiled<1, 4>>) -> tensor<2x7x5xf32> {
  // CHECK: kiln.linear %{{.*}}, %{{.*}}, %{{.*}} weight_order = out_in : (tensor<2x7x3xf32>, tensor<5x3xf32>, tensor<5xf32>) -> tensor<2x7x5xf32>
  %0 = kiln.linear %x, %w, %b weight_order = out_in : (tensor<2x7x3xf32>, tensor<5x3xf32>, tensor<5xf32>) -> tensor<2x7x5xf32>
  // CHECK: kiln.linear %{{.*}}, %{{.*}} weight_order = in_out : (tensor<2x7x3xf32>, tensor<3x5xf32, #kiln.tiled<1, 4>>) -> tensor<2x7x5xf32>
  %1 = kiln.linear %x, %t weight_order = in_out : (tensor<2x7x3xf32>, tensor<3x5xf32, #kiln.tiled<1, 4>>) -> tensor<2x7x5xf32>
  return %1 : tensor<2x7x5xf32>
}

// -----
func.func @linear_c1(%x: tensor<7x512xf32>, %w: tensor<5x768xf32>) {
  // expected-error@+1 {{linear: wrong input width; expected 768, got 512 [linear_c1]}}
  %0 = kiln.linear %x, %w weight_order = out_in : (tensor<7x512xf32>, tensor<5x768xf32>) -> tensor<7x5xf32>
  return
}

// The scope of the location is printed first.
// -----
func.func @linear_c1_in_out(%x: tensor<7x5xf32>, %w: tensor<3x5xf32>) {
  // expected-error@unknown {{h.{}.mlp.c_fc: linear: wrong input width; expected 3, got 5 [linear_c1]}}
  %0 = kiln.linear %x, %w weight_order = in_out : (tensor<7x5xf32>, tensor<3x5xf32>) -> tensor<7x5xf32> loc("h.{}.mlp.c_fc")
  return
}

// -----
func.func @linear_c2(%x: tensor<f32>, %w: tensor<5x3xf32>) {
  // expected-error@+1 {{linear: input without dimensions; expected rank 1 or more, got f32[] [linear_c2]}}
  %0 = kiln.linear %x, %w weight_order = out_in : (tensor<f32>, tensor<5x3xf32>) -> tensor<5xf32>
  return
}

// -----
func.func @linear_c3(%x: tensor<3xf32>, %w: tensor<3xf32>) {
  // expected-error@+1 {{linear: wrong rank of the weight; expected 2, got f32[3] [linear_c3]}}
  %0 = kiln.linear %x, %w weight_order = out_in : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----
func.func @linear_c4(%x: tensor<3xf32>, %w: tensor<5x3xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{linear: wrong bias shape; expected [5], got f32[3] [linear_c4]}}
  %0 = kiln.linear %x, %w, %b weight_order = out_in : (tensor<3xf32>, tensor<5x3xf32>, tensor<3xf32>) -> tensor<5xf32>
  return
}

// -----
func.func @linear_c5_weight(%x: tensor<3xf32>, %w: tensor<5x3xf16>) {
  // expected-error@+1 {{linear: wrong element types; expected one floating-point type, got f32[3], f16[5, 3] [linear_c5]}}
  %0 = kiln.linear %x, %w weight_order = out_in : (tensor<3xf32>, tensor<5x3xf16>) -> tensor<5xf32>
  return
}

// -----
func.func @linear_c5_bias(%x: tensor<3xf32>, %w: tensor<5x3xf32>, %b: tensor<5xbf16>) {
  // expected-error@+1 {{linear: wrong element types; expected one floating-point type, got f32[3], bf16[5] [linear_c5]}}
  %0 = kiln.linear %x, %w, %b weight_order = out_in : (tensor<3xf32>, tensor<5x3xf32>, tensor<5xbf16>) -> tensor<5xf32>
  return
}

// The input has int8 rows with a scale for each row.
// -----
// CHECK-LABEL: @scales
func.func @scales(%x: tensor<2x7x3xi8>, %s: tensor<2x7xf32>, %w: tensor<5x3xf32>, %b: tensor<5xf32>) {
  // CHECK: kiln.linear %{{.*}}, %{{.*}}, %{{.*}} scales %{{.*}} weight_order = out_in : (tensor<2x7x3xi8>, tensor<5x3xf32>, tensor<5xf32>, tensor<2x7xf32>) -> tensor<2x7x5xf32>
  %0 = kiln.linear %x, %w, %b scales %s weight_order = out_in : (tensor<2x7x3xi8>, tensor<5x3xf32>, tensor<5xf32>, tensor<2x7xf32>) -> tensor<2x7x5xf32>
  // CHECK: kiln.linear %{{.*}}, %{{.*}} scales %{{.*}} weight_order = out_in : (tensor<2x7x3xi8>, tensor<5x3xf32>, tensor<2x7xf32>) -> tensor<2x7x5xf32>
  %1 = kiln.linear %x, %w scales %s weight_order = out_in : (tensor<2x7x3xi8>, tensor<5x3xf32>, tensor<2x7xf32>) -> tensor<2x7x5xf32>
  return
}

// -----
func.func @no_scales(%x: tensor<7x3xi8>, %w: tensor<5x3xf32>) {
  // expected-error@+1 {{linear: wrong element types; expected one floating-point type, got i8[7, 3], f32[5, 3] [linear_c5]}}
  %0 = kiln.linear %x, %w weight_order = out_in : (tensor<7x3xi8>, tensor<5x3xf32>) -> tensor<7x5xf32>
  return
}

// -----
func.func @scales_of_floats(%x: tensor<7x3xf32>, %s: tensor<7xf32>, %w: tensor<5x3xf32>) {
  // expected-error@+1 {{linear with scales: wrong input or scales; expected i8 and a scale for each row, got f32[7, 3], f32[7]}}
  %0 = kiln.linear %x, %w scales %s weight_order = out_in : (tensor<7x3xf32>, tensor<5x3xf32>, tensor<7xf32>) -> tensor<7x5xf32>
  return
}

// -----
func.func @scales_of_other_rows(%x: tensor<7x3xi8>, %s: tensor<6xf32>, %w: tensor<5x3xf32>) {
  // expected-error@+1 {{linear with scales: wrong input or scales; expected i8 and a scale for each row, got i8[7, 3], f32[6]}}
  %0 = kiln.linear %x, %w scales %s weight_order = out_in : (tensor<7x3xi8>, tensor<5x3xf32>, tensor<6xf32>) -> tensor<7x5xf32>
  return
}

// -----
func.func @scales_of_another_type(%x: tensor<7x3xi8>, %s: tensor<7xf16>, %w: tensor<5x3xf32>) {
  // expected-error@+1 {{linear: wrong element types; expected one floating-point type, got f16[7], f32[5, 3] [linear_c5]}}
  %0 = kiln.linear %x, %w scales %s weight_order = out_in : (tensor<7x3xi8>, tensor<5x3xf32>, tensor<7xf16>) -> tensor<7x5xf32>
  return
}
