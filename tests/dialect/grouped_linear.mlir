// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<7x3xf32>, %w: tensor<10x3xf32>, %e: tensor<2xi32>, %b: tensor<10xf32>, %t: tensor<6x5xf32>) {
  // CHECK: kiln.grouped_linear %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} weight_order = out_in : (tensor<7x3xf32>, tensor<10x3xf32>, tensor<2xi32>, tensor<10xf32>) -> tensor<7x5xf32>
  %0 = kiln.grouped_linear %x, %w, %e, %b weight_order = out_in : (tensor<7x3xf32>, tensor<10x3xf32>, tensor<2xi32>, tensor<10xf32>) -> tensor<7x5xf32>
  // CHECK: kiln.grouped_linear %{{.*}}, %{{.*}}, %{{.*}} weight_order = in_out : (tensor<7x3xf32>, tensor<6x5xf32>, tensor<2xi32>) -> tensor<7x5xf32>
  %1 = kiln.grouped_linear %x, %t, %e weight_order = in_out : (tensor<7x3xf32>, tensor<6x5xf32>, tensor<2xi32>) -> tensor<7x5xf32>
  return
}

// -----
func.func @grouped_linear_c1(%x: tensor<3xf32>, %w: tensor<10x3xf32>, %e: tensor<2xi32>) {
  // expected-error@+1 {{grouped_linear: wrong rank of the input; expected 2, got f32[3] [grouped_linear_c1]}}
  %0 = kiln.grouped_linear %x, %w, %e weight_order = out_in : (tensor<3xf32>, tensor<10x3xf32>, tensor<2xi32>) -> tensor<5xf32>
  return
}

// -----
func.func @grouped_linear_c2(%x: tensor<7x3xf32>, %w: tensor<2x5x3xf32>, %e: tensor<2xi32>) {
  // expected-error@+1 {{grouped_linear: wrong weight; expected rank 2 and static extents, got f32[2, 5, 3] [grouped_linear_c2]}}
  %0 = kiln.grouped_linear %x, %w, %e weight_order = out_in : (tensor<7x3xf32>, tensor<2x5x3xf32>, tensor<2xi32>) -> tensor<7x5xf32>
  return
}

// -----
func.func @grouped_linear_c3(%x: tensor<7x3xf32>, %w: tensor<10x3xf32>, %e: tensor<2x1xi32>) {
  // expected-error@+1 {{grouped_linear: wrong ends; expected i32 of rank 1 with a static extent, got i32[2, 1] [grouped_linear_c3]}}
  %0 = kiln.grouped_linear %x, %w, %e weight_order = out_in : (tensor<7x3xf32>, tensor<10x3xf32>, tensor<2x1xi32>) -> tensor<7x5xf32>
  return
}

// -----
func.func @grouped_linear_c4(%x: tensor<7x3xf32>, %w: tensor<11x3xf32>, %e: tensor<2xi32>) {
  // expected-error@+1 {{grouped_linear: wrong rows of the weight; expected the same number for each group, got 11 rows for 2 [grouped_linear_c4]}}
  %0 = kiln.grouped_linear %x, %w, %e weight_order = out_in : (tensor<7x3xf32>, tensor<11x3xf32>, tensor<2xi32>) -> tensor<7x5xf32>
  return
}

// -----
func.func @grouped_linear_c5(%x: tensor<7x4xf32>, %w: tensor<6x5xf32>, %e: tensor<2xi32>) {
  // expected-error@+1 {{grouped_linear: wrong input width; expected 3, got 4 [grouped_linear_c5]}}
  %0 = kiln.grouped_linear %x, %w, %e weight_order = in_out : (tensor<7x4xf32>, tensor<6x5xf32>, tensor<2xi32>) -> tensor<7x5xf32>
  return
}

// -----
func.func @grouped_linear_c6(%x: tensor<7x3xf32>, %w: tensor<10x3xf32>, %e: tensor<2xi32>, %b: tensor<5xf32>) {
  // expected-error@+1 {{grouped_linear: wrong shape of the biases; expected [10], got f32[5] [grouped_linear_c6]}}
  %0 = kiln.grouped_linear %x, %w, %e, %b weight_order = out_in : (tensor<7x3xf32>, tensor<10x3xf32>, tensor<2xi32>, tensor<5xf32>) -> tensor<7x5xf32>
  return
}

// -----
func.func @grouped_linear_c7(%x: tensor<7x3xf32>, %w: tensor<10x3xf16>, %e: tensor<2xi32>) {
  // expected-error@+1 {{grouped_linear: wrong element types; expected one floating-point type, got f32[7, 3], f16[10, 3] [grouped_linear_c7]}}
  %0 = kiln.grouped_linear %x, %w, %e weight_order = out_in : (tensor<7x3xf32>, tensor<10x3xf16>, tensor<2xi32>) -> tensor<7x5xf32>
  return
}

// -----
func.func @grouped_linear_c7_biases(%x: tensor<7x3xf32>, %w: tensor<10x3xf32>, %e: tensor<2xi32>, %b: tensor<10xbf16>) {
  // expected-error@+1 {{grouped_linear: wrong element types; expected one floating-point type, got f32[7, 3], bf16[10] [grouped_linear_c7]}}
  %0 = kiln.grouped_linear %x, %w, %e, %b weight_order = out_in : (tensor<7x3xf32>, tensor<10x3xf32>, tensor<2xi32>, tensor<10xbf16>) -> tensor<7x5xf32>
  return
}
