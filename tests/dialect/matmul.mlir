// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s
// RUN: kiln-opt %s -split-input-file -verify-diagnostics -canonicalize | FileCheck %s --check-prefix=FOLD

// CHECK-LABEL: @round_trip
func.func @round_trip(%a: tensor<2x1x7x3xf32>, %b: tensor<4x3x5xf32>, %c: tensor<5x3xf32>) -> (tensor<2x4x7x5xf32>, tensor<2x1x7x5xf32>) {
  // CHECK: kiln.matmul %{{.*}}, %{{.*}} : (tensor<2x1x7x3xf32>, tensor<4x3x5xf32>) -> tensor<2x4x7x5xf32>
  %0 = kiln.matmul %a, %b : (tensor<2x1x7x3xf32>, tensor<4x3x5xf32>) -> tensor<2x4x7x5xf32>
  // CHECK: kiln.matmul %{{.*}}, %{{.*}} transpose_b : (tensor<2x1x7x3xf32>, tensor<5x3xf32>) -> tensor<2x1x7x5xf32>
  %1 = kiln.matmul %a, %c transpose_b : (tensor<2x1x7x3xf32>, tensor<5x3xf32>) -> tensor<2x1x7x5xf32>
  return %0, %1 : tensor<2x4x7x5xf32>, tensor<2x1x7x5xf32>
}

// FOLD-LABEL: @transposed
func.func @transposed(%a: tensor<2x7x3xf32>, %b: tensor<2x5x3xf32>) -> (tensor<2x7x5xf32>, tensor<2x7x5xf32>) {
  // FOLD-NOT: kiln.transpose
  // FOLD: %[[A:.*]] = kiln.matmul %arg0, %arg1 transpose_b
  // FOLD: %[[B:.*]] = kiln.matmul %arg0, %arg1 transpose_b
  // FOLD: return %[[A]], %[[B]]
  %0 = kiln.transpose %b permutation = [0, 2, 1] : (tensor<2x5x3xf32>) -> tensor<2x3x5xf32>
  %1 = kiln.matmul %a, %0 : (tensor<2x7x3xf32>, tensor<2x3x5xf32>) -> tensor<2x7x5xf32>
  %2 = kiln.transpose %0 permutation = [0, 2, 1] : (tensor<2x3x5xf32>) -> tensor<2x5x3xf32>
  %3 = kiln.matmul %a, %2 transpose_b : (tensor<2x7x3xf32>, tensor<2x5x3xf32>) -> tensor<2x7x5xf32>
  return %1, %3 : tensor<2x7x5xf32>, tensor<2x7x5xf32>
}

// A transpose that moves a leading axis is not folded.
// FOLD-LABEL: @transposed_batch
func.func @transposed_batch(%a: tensor<2x7x3xf32>, %b: tensor<3x2x5xf32>) -> tensor<2x7x5xf32> {
  // FOLD: kiln.transpose
  %0 = kiln.transpose %b permutation = [1, 0, 2] : (tensor<3x2x5xf32>) -> tensor<2x3x5xf32>
  %1 = kiln.matmul %a, %0 : (tensor<2x7x3xf32>, tensor<2x3x5xf32>) -> tensor<2x7x5xf32>
  return %1 : tensor<2x7x5xf32>
}

// -----
func.func @matmul_c1(%a: tensor<7x3xf32>, %b: tensor<5x3xf32>) {
  // expected-error@+1 {{matmul: wrong inner dimension; expected 5, got 3 [matmul_c1]}}
  %0 = kiln.matmul %a, %b : (tensor<7x3xf32>, tensor<5x3xf32>) -> tensor<7x3xf32>
  return
}

// -----
func.func @matmul_c2(%a: tensor<3xf32>, %b: tensor<3x5xf32>) {
  // expected-error@+1 {{matmul: rank too small; expected 2 or more, got f32[3], f32[3, 5] [matmul_c2]}}
  %0 = kiln.matmul %a, %b : (tensor<3xf32>, tensor<3x5xf32>) -> tensor<5xf32>
  return
}

// -----
func.func @matmul_c3(%a: tensor<2x7x3xf32>, %b: tensor<4x3x5xf32>) {
  // expected-error@+1 {{matmul: leading dimensions do not broadcast; expected equal ones or 1, got [2] and [4] [matmul_c3]}}
  %0 = kiln.matmul %a, %b : (tensor<2x7x3xf32>, tensor<4x3x5xf32>) -> tensor<2x7x5xf32>
  return
}

// -----
func.func @matmul_c4(%a: tensor<7x3xf32>, %b: tensor<3x5xf16>) {
  // expected-error@+1 {{matmul: wrong element types; expected one floating-point type, got f32[7, 3], f16[3, 5] [matmul_c4]}}
  %0 = kiln.matmul %a, %b : (tensor<7x3xf32>, tensor<3x5xf16>) -> tensor<7x5xf32>
  return
}
