// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<2x?xf32, affine_map<()[s0] -> (2, s0)>>) -> tensor<?xi32, affine_map<()[s0] -> (s0)>> {
  // CHECK: kiln.positions %{{.*}} axis = 1 : (tensor<2x?xf32, {{.*}}>) -> tensor<?xi32, {{.*}}>
  %0 = kiln.positions %x axis = 1 : (tensor<2x?xf32, affine_map<()[s0] -> (2, s0)>>) -> tensor<?xi32, affine_map<()[s0] -> (s0)>>
  return %0 : tensor<?xi32, affine_map<()[s0] -> (s0)>>
}

// -----
func.func @positions_c1(%x: tensor<3xf32>) {
  // expected-error@+1 {{positions: axis out of range; expected one within the rank, got axis 1 of f32[3] [positions_c1]}}
  %0 = kiln.positions %x axis = 1 : (tensor<3xf32>) -> tensor<3xi32>
  return
}
