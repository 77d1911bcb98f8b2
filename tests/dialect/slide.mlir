// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

module attributes {kiln.symbols = [#kiln.symbol<"frames", 1, 9>]} {
  // CHECK-LABEL: @round_trip
  func.func @round_trip(%x: tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>, %y: tensor<3x2x4xf32>)
      -> (tensor<?x8xf32, affine_map<()[s0] -> (s0 + 2, 8)>>, tensor<7x2x4xf32>) {
    // CHECK: kiln.slide %{{.*}} after "heard" rows = 2 room = 13 : tensor<?x8xf32, {{.*}}> -> tensor<?x8xf32, {{.*}}>
    %0 = kiln.slide %x after "heard" rows = 2 room = 13
      : tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>> -> tensor<?x8xf32, affine_map<()[s0] -> (s0 + 2, 8)>>
    // CHECK: kiln.slide %{{.*}} after "h.{}.heard" copies = 12 rows = 4 room = 20 : tensor<3x2x4xf32> -> tensor<7x2x4xf32>
    %1 = kiln.slide %y after "h.{}.heard" copies = 12 rows = 4 room = 20 : tensor<3x2x4xf32> -> tensor<7x2x4xf32>
    return %0, %1 : tensor<?x8xf32, affine_map<()[s0] -> (s0 + 2, 8)>>, tensor<7x2x4xf32>
  }
}

// -----
func.func @rows(%x: tensor<3x8xf32>) {
  // expected-error@+1 {{slide requires a result of the state's rows and the operand's: got f32[3, 8], expected f32[6, 8]}}
  %0 = kiln.slide %x after "heard" rows = 2 room = 13 : tensor<3x8xf32> -> tensor<6x8xf32>
  return
}

// -----
func.func @element(%x: tensor<3x8xf32>) {
  // expected-error@+1 {{slide requires a result of the state's rows and the operand's: got f32[3, 8], expected bf16[5, 8]}}
  %0 = kiln.slide %x after "heard" rows = 2 room = 13 : tensor<3x8xf32> -> tensor<5x8xbf16>
  return
}

// -----
module attributes {kiln.symbols = [#kiln.symbol<"frames", 1, 9>]} {
  func.func @room(%x: tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>) {
    // expected-error@+1 {{slide requires room for the result's rows and the state's: got frames+2 3..11, expected 12}}
    %0 = kiln.slide %x after "heard" rows = 2 room = 12
      : tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>> -> tensor<?x8xf32, affine_map<()[s0] -> (s0 + 2, 8)>>
    return
  }
}

// -----
func.func @copies(%x: tensor<3x8xf32>) {
  // expected-error@+1 {{a state requires at least one copy}}
  %0 = kiln.slide %x after "heard" copies = 0 rows = 2 room = 13 : tensor<3x8xf32> -> tensor<5x8xf32>
  return
}
