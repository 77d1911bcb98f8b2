// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(kiln-lower-kernels),kiln-verify-kernels{lowered=true})'

func.func private @nibbles(%x: tensor<4xi4>) -> tensor<4xi4> attributes {kiln.kernel, kiln.bounds = array<i64>} {
  // expected-error @below {{operation: unsupported element type; expected f32, f16, bf16, i32, i8 or i1, got 'i4'}}
  %0 = kiln.add %x, %x : (tensor<4xi4>, tensor<4xi4>) -> tensor<4xi4>
  return %0 : tensor<4xi4>
}

// -----

func.func @not_formed(%x: tensor<4xf32>) -> tensor<4xf32> attributes {kiln.entry} {
  // expected-error @below {{operation: outside of a kernel; expected only calls, parameters, constants, states, reshapes, rows and loops in an entry}}
  %0 = kiln.relu %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @below {{kernel: wrong result; expected one that a linalg op, attention or scan produces}}
func.func private @argument(%x: tensor<4xf32>) -> tensor<4xf32> attributes {kiln.kernel, kiln.bounds = array<i64>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{kernel: wrong number of bounds; expected two for each of 1 symbols}}
func.func private @unbounded(%s0: index, %x: tensor<?xf32, affine_map<()[s0] -> (s0)>>) attributes {kiln.kernel} {
  return
}

// -----

// expected-error @below {{operation: dynamic dimension without its extent; expected every one stated, got 'tensor<?xf32>'}}
func.func private @unstated(%s0: index, %x: tensor<?xf32>) attributes {kiln.kernel, kiln.bounds = array<i64: 1, 4>} {
  return
}

// -----

func.func private @kernel_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {kiln.kernel, kiln.bounds = array<i64>} {
  %0 = kiln.relu %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @wrong_type(%x: tensor<5xf32>) attributes {kiln.entry} {
  // expected-error @below {{wrong type of an argument; expected 'tensor<4xf32>', got 'tensor<5xf32>'}}
  %0 = kiln.call @kernel_0(%x) : (tensor<5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @interleaved() attributes {kiln.entry} {
  // expected-error @below {{weight: interleave has no generated code; expected none, got #kiln.tiled<0, 4, interleave = 2>}}
  %0 = kiln.parameter {sources = ["w"]} : tensor<4x8xf32, #kiln.tiled<0, 4, interleave = 2>>
  return
}

// -----

// expected-error @below {{weight: interleave has no generated code; expected none, got #kiln.tiled<0, 4, interleave = 8>}}
func.func private @scaled(%x: tensor<7x8xf32>, %w: tensor<4x8xf32, #kiln.tiled<0, 4, interleave = 8>>) -> tensor<7x4xf32>
    attributes {kiln.kernel, kiln.bounds = array<i64>} {
  %0 = kiln.linear %x, %w weight_order = out_in : (tensor<7x8xf32>, tensor<4x8xf32, #kiln.tiled<0, 4, interleave = 8>>) -> tensor<7x4xf32>
  return %0 : tensor<7x4xf32>
}

// -----

func.func @no_kernel(%x: tensor<5xf32>) attributes {kiln.entry} {
  // expected-error @below {{callee is no kernel; expected a kernel function, got @missing}}
  %0 = kiln.call @missing(%x) : (tensor<5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @bad_table(%p: tensor<5xi32>, %t: tensor<2x4xi32>) attributes {kiln.entry} {
  // expected-error @below {{sinusoid: wrong shape of the table; expected [3, width]}}
  %0 = kiln.sinusoid %p, %t : (tensor<5xi32>, tensor<2x4xi32>) -> tensor<5x4xf32>
  return
}
