// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s
// RUN: kiln-opt %s -split-input-file -verify-diagnostics -canonicalize | FileCheck %s --check-prefix=FOLD

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<7x3xf32>) -> tensor<7x3xf32> {
  // CHECK: kiln.exp %{{.*}} : tensor<7x3xf32>
  %0 = kiln.exp %x : tensor<7x3xf32>
  // CHECK: kiln.log
  %1 = kiln.log %0 : tensor<7x3xf32>
  // CHECK: kiln.sqrt
  %2 = kiln.sqrt %1 : tensor<7x3xf32>
  // CHECK: kiln.tanh
  %3 = kiln.tanh %2 : tensor<7x3xf32>
  // CHECK: kiln.sigmoid
  %4 = kiln.sigmoid %3 : tensor<7x3xf32>
  // CHECK: kiln.relu
  %5 = kiln.relu %4 : tensor<7x3xf32>
  // CHECK: kiln.gelu
  %6 = kiln.gelu %5 : tensor<7x3xf32>
  // CHECK: kiln.gelu_tanh
  %7 = kiln.gelu_tanh %6 : tensor<7x3xf32>
  // CHECK: kiln.silu
  %8 = kiln.silu %7 : tensor<7x3xf32>
  // CHECK: kiln.softplus
  %9 = kiln.softplus %8 : tensor<7x3xf32>
  // CHECK: kiln.abs
  %10 = kiln.abs %9 : tensor<7x3xf32>
  // CHECK: kiln.floor
  %11 = kiln.floor %10 : tensor<7x3xf32>
  // CHECK: kiln.round
  %12 = kiln.round %11 : tensor<7x3xf32>
  // CHECK: kiln.sin
  %13 = kiln.sin %12 : tensor<7x3xf32>
  // CHECK: kiln.cos
  %14 = kiln.cos %13 : tensor<7x3xf32>
  // CHECK: kiln.erf
  %15 = kiln.erf %14 : tensor<7x3xf32>
  // CHECK: kiln.expm1
  %16 = kiln.expm1 %15 : tensor<7x3xf32>
  // CHECK: kiln.log1p
  %17 = kiln.log1p %16 : tensor<7x3xf32>
  return %17 : tensor<7x3xf32>
}

// FOLD-LABEL: @constants
func.func @constants() -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
  // FOLD-DAG: %[[EXP:.*]] = kiln.constant dense<2.71828175> : tensor<f32>
  // FOLD-DAG: %[[LOG:.*]] = kiln.constant dense<0.000000e+00> : tensor<f32>
  // FOLD-DAG: %[[SQRT:.*]] = kiln.constant dense<1.000000e+00> : tensor<f32>
  // FOLD-DAG: %[[RELU:.*]] = kiln.constant dense<[0.000000e+00, 2.000000e+00]> : tensor<2xf32>
  // FOLD-DAG: %[[TANH:.*]] = kiln.constant dense<0.761594176> : tensor<f32>
  // FOLD-DAG: %[[SIGMOID:.*]] = kiln.constant dense<0.731058597> : tensor<f32>
  // FOLD-DAG: %[[GELU:.*]] = kiln.constant dense<0.841344773> : tensor<f32>
  // FOLD-DAG: %[[GELU_TANH:.*]] = kiln.constant dense<8.411920e-01> : tensor<f32>
  // FOLD: return %[[EXP]], %[[LOG]], %[[SQRT]], %[[RELU]], %[[TANH]], %[[SIGMOID]], %[[GELU]], %[[GELU_TANH]], %[[SIGMOID]]
  %one = kiln.constant dense<1.0> : tensor<f32>
  %signs = kiln.constant dense<[-1.0, 2.0]> : tensor<2xf32>
  %0 = kiln.exp %one : tensor<f32>
  %1 = kiln.log %one : tensor<f32>
  %2 = kiln.sqrt %one : tensor<f32>
  %3 = kiln.relu %signs : tensor<2xf32>
  %4 = kiln.tanh %one : tensor<f32>
  %5 = kiln.sigmoid %one : tensor<f32>
  %6 = kiln.gelu %one : tensor<f32>
  %7 = kiln.gelu_tanh %one : tensor<f32>
  %8 = kiln.silu %one : tensor<f32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}

// round rounds halves to even.
// FOLD-LABEL: @integers
func.func @integers() -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  // FOLD-DAG: %[[FLOOR:.*]] = kiln.constant dense<[-3.000000e+00, 0.000000e+00, 2.000000e+00]> : tensor<3xf32>
  // FOLD-DAG: %[[ROUND:.*]] = kiln.constant dense<[-2.000000e+00, 0.000000e+00, 3.000000e+00]> : tensor<3xf32>
  // FOLD-DAG: %[[ABS:.*]] = kiln.constant dense<[2.500000e+00, 5.000000e-01, 2.750000e+00]> : tensor<3xf32>
  // FOLD-DAG: %[[SOFTPLUS:.*]] = kiln.constant dense<[0.078889735, 0.974076986, 2.81196761]> : tensor<3xf32>
  // FOLD: return %[[FLOOR]], %[[ROUND]], %[[ABS]], %[[SOFTPLUS]]
  %x = kiln.constant dense<[-2.5, 0.5, 2.75]> : tensor<3xf32>
  %0 = kiln.floor %x : tensor<3xf32>
  %1 = kiln.round %x : tensor<3xf32>
  %2 = kiln.abs %x : tensor<3xf32>
  %3 = kiln.softplus %x : tensor<3xf32>
  return %0, %1, %2, %3 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// expm1 and log1p of small numbers are these numbers.
// FOLD-LABEL: @functions
func.func @functions() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  // FOLD-DAG: %[[SIN:.*]] = kiln.constant dense<[1.000000e-10, 0.841470957]> : tensor<2xf32>
  // FOLD-DAG: %[[COS:.*]] = kiln.constant dense<[1.000000e+00, 0.540302277]> : tensor<2xf32>
  // FOLD-DAG: %[[ERF:.*]] = kiln.constant dense<[1.128379{{.*}}E-10, 0.842700779]> : tensor<2xf32>
  // FOLD-DAG: %[[EXPM1:.*]] = kiln.constant dense<[1.000000e-10, 1.71828187]> : tensor<2xf32>
  // FOLD-DAG: %[[LOG1P:.*]] = kiln.constant dense<[1.000000e-10, 0.693147182]> : tensor<2xf32>
  // FOLD: return %[[SIN]], %[[COS]], %[[ERF]], %[[EXPM1]], %[[LOG1P]]
  %x = kiln.constant dense<[1.0e-10, 1.0]> : tensor<2xf32>
  %0 = kiln.sin %x : tensor<2xf32>
  %1 = kiln.cos %x : tensor<2xf32>
  %2 = kiln.erf %x : tensor<2xf32>
  %3 = kiln.expm1 %x : tensor<2xf32>
  %4 = kiln.log1p %x : tensor<2xf32>
  return %0, %1, %2, %3, %4 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// FOLD-LABEL: @relu_twice
func.func @relu_twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  // FOLD: %[[R:.*]] = kiln.relu
  // FOLD-NEXT: return %[[R]]
  %0 = kiln.relu %x : tensor<4xf32>
  %1 = kiln.relu %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----
func.func @unary_c1(%x: tensor<4xi32>) {
  // expected-error@+1 {{'kiln.exp' op operand #0 must be ranked tensor of floating-point values, but got 'tensor<4xi32>'}}
  %0 = "kiln.exp"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----
func.func @type(%x: tensor<4xf32>) {
  // expected-error@+1 {{'kiln.silu' op requires the same type for all operands and results}}
  %0 = "kiln.silu"(%x) : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----
func.func @no_extents_map(%x: tensor<?xf32>) {
  // expected-error@+1 {{tensor: dynamic dimension without its extent; expected an extents map of its rank, got tensor<?xf32>}}
  %0 = kiln.tanh %x : tensor<?xf32>
  return
}
