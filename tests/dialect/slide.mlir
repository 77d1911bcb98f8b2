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
  // expected-error@+1 {{slide: result is not the state's rows and the operand's; expected f32[6, 8], got f32[3, 8]}}
  %0 = kiln.slide %x after "heard" rows = 2 room = 13 : tensor<3x8xf32> -> tensor<6x8xf32>
  return
}

// -----
func.func @element(%x: tensor<3x8xf32>) {
  // expected-error@+1 {{slide: result is not the state's rows and the operand's; expected bf16[5, 8], got f32[3, 8]}}
  %0 = kiln.slide %x after "heard" rows = 2 room = 13 : tensor<3x8xf32> -> tensor<5x8xbf16>
  return
}

// -----
module attributes {kiln.symbols = [#kiln.symbol<"frames", 1, 9>]} {
  func.func @room(%x: tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>) {
    // expected-error@+1 {{slide: rows of the result and the state exceed the room; expected 12, got frames+2 3..11}}
    %0 = kiln.slide %x after "heard" rows = 2 room = 12
      : tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>> -> tensor<?x8xf32, affine_map<()[s0] -> (s0 + 2, 8)>>
    return
  }
}

// -----
func.func @copies(%x: tensor<3x8xf32>) {
  // expected-error@+1 {{state: no copies; expected at least one}}
  %0 = kiln.slide %x after "heard" copies = 0 rows = 2 room = 13 : tensor<3x8xf32> -> tensor<5x8xf32>
  return
}
