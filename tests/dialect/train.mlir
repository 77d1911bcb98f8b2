// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%loss: tensor<f32>, %x: tensor<4x8xf32>, %gradients: tensor<3x8xf32>) {
  // CHECK: kiln.require_finite %{{.*}} : tensor<f32>
  kiln.require_finite %loss : tensor<f32>
  // CHECK: %[[W:.*]] = kiln.parameter {sources = ["w"], variable} : tensor<4x8xf32>
  // CHECK: kiln.assign %{{.*}} to %[[W]] : tensor<4x8xf32>
  %w = kiln.parameter {sources = ["w"], variable} : tensor<4x8xf32>
  kiln.assign %x to %w : tensor<4x8xf32>
  // The loop has an iteration for each layer, with its slice of the gradients; its parameter has copies.
  // CHECK: kiln.scan () over (%{{.*}} = %{{.*}} : tensor<3x8xf32>) reverse layers {
  // CHECK: kiln.parameter {copies = 3 : i64, sources = ["h.{}.b"], variable} : tensor<8xf32>
  kiln.scan () over (%g = %gradients : tensor<3x8xf32>) reverse layers {
    %b = kiln.parameter {sources = ["h.{}.b"], copies = 3, variable} : tensor<8xf32>
    kiln.assign %g to %b : tensor<8xf32>
    kiln.yield
  }
  // CHECK: kiln.normal_cdf %{{.*}} : tensor<4x8xf32>
  %0 = kiln.normal_cdf %x : tensor<4x8xf32>
  // CHECK: kiln.stop_gradient %{{.*}} : tensor<4x8xf32>
  %1 = kiln.stop_gradient %0 : tensor<4x8xf32>
  // CHECK: kiln.running_average %[[W]], %{{.*}}, %{{.*}} : tensor<4x8xf32>
  %2 = kiln.running_average %w, %0, %x : tensor<4x8xf32>
  return
}

// -----

// CHECK-LABEL: @dropout
func.func @dropout(%x: tensor<4x8xf32>, %seed: tensor<i32>, %step: tensor<i32>) -> tensor<4x8xf32> {
  // CHECK: kiln.dropout %{{.*}}, %{{.*}}, %{{.*}} probability = 1.000000e-01 stream = 2
  %0 = kiln.dropout %x, %seed, %step probability = 0.1 stream = 2
      : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @dropout_of_all(%x: tensor<4xf32>, %seed: tensor<i32>, %step: tensor<i32>) -> tensor<4xf32> {
  // expected-error@+1 {{dropout: probability out of range; expected one in [0, 1), got 1.000000 [dropout_c1]}}
  %0 = kiln.dropout %x, %seed, %step probability = 1.0 stream = 0
      : (tensor<4xf32>, tensor<i32>, tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @dropout_of_seeds(%x: tensor<4xf32>, %seeds: tensor<2xi32>, %step: tensor<i32>) -> tensor<4xf32> {
  // expected-error@+1 {{dropout: seed, step or iteration is not a scalar; expected rank 0, got i32[2]}}
  %0 = kiln.dropout %x, %seeds, %step probability = 0.5 stream = 0
      : (tensor<4xf32>, tensor<2xi32>, tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @constant_parameter(%x: tensor<4xf32>) {
  %w = kiln.parameter {sources = ["w"]} : tensor<4xf32>
  // expected-error@+1 {{assign: wrong target; expected a parameter that is variable or derived, got one that is not}}
  kiln.assign %x to %w : tensor<4xf32>
  return
}

// -----

func.func @no_parameter(%x: tensor<4xf32>) {
  // expected-error@+1 {{assign: wrong target; expected a parameter that is variable or derived, got another value}}
  kiln.assign %x to %x : tensor<4xf32>
  return
}

// -----

func.func @not_a_number(%x: tensor<1xf32>) {
  // expected-error@+1 {{require_finite: operand is not a scalar; expected rank 0, got f32[1]}}
  kiln.require_finite %x : tensor<1xf32>
  return
}

// -----

module attributes {kiln.symbols = [#kiln.symbol<"steps", 1, 8>]} {
  func.func @layers_without_number(%x: tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>) {
    kiln.scan () over (%g = %x : tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>) layers {
      // expected-error@+1 {{loop over layers: dynamic number of layers; expected a fixed one, got s0}}
      %b = kiln.parameter {sources = ["h.{}.b"]} : tensor<8xf32>
      kiln.yield
    }
    return
  }
}
