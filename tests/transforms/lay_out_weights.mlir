// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --kiln-lay-out-weights="tile=16 word=4" | FileCheck %s

// The dimension of the outputs is tiled, whichever it is; an embedding reads the layout of its tied table. Weights
// that an addition reads stay dense, and so do weights that other operations than contractions read as well.
// CHECK-DAG: sources = ["wte"]} : tensor<50x8xf32, #kiln.tiled<0, 16>>
// CHECK-DAG: sources = ["in_out"]} : tensor<8x8xf32, #kiln.tiled<1, 16>>
// CHECK-DAG: sources = ["wpe"]} : tensor<5x8xf32>
// CHECK-DAG: sources = ["shared"]} : tensor<8x8xf32>
// CHECK: kiln.embedding %{{.*}}, %{{.*}} : (tensor<5xi32>, tensor<50x8xf32, #kiln.tiled<0, 16>>)
func.func @forward(%tokens: tensor<5xi32>) -> (tensor<5x50xf32>, tensor<8x8xf32>) {
  %wte = kiln.parameter {sources = ["wte"]} : tensor<50x8xf32>
  %wpe = kiln.parameter {sources = ["wpe"]} : tensor<5x8xf32>
  %w = kiln.parameter {sources = ["in_out"]} : tensor<8x8xf32>
  %shared = kiln.parameter {sources = ["shared"]} : tensor<8x8xf32>
  %e = kiln.embedding %tokens, %wte : (tensor<5xi32>, tensor<50x8xf32>) -> tensor<5x8xf32>
  %x = kiln.add %e, %wpe : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %y = kiln.linear %x, %w weight_order = in_out : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %z = kiln.matmul %y, %shared : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %s = kiln.relu %shared : tensor<8x8xf32>
  %l = kiln.linear %z, %wte weight_order = out_in : (tensor<5x8xf32>, tensor<50x8xf32>) -> tensor<5x50xf32>
  return %l, %s : tensor<5x50xf32>, tensor<8x8xf32>
}

// The weight of a convolution is tiled along its outputs; one that is only read as a matrix has that matrix's layout.
// CHECK-DAG: sources = ["window"]} : tensor<8x5x3x3xf32, #kiln.tiled<0, 16>>
// CHECK-DAG: sources = ["grouped"]} : tensor<8x4x3x3xf32>
// CHECK-DAG: sources = ["patches"]} : tensor<9x8xf32, #kiln.tiled<0, 16>>
func.func @image(%x: tensor<4x6x5xf32>) -> tensor<4x6x9xf32> {
  %window = kiln.parameter {sources = ["window"]} : tensor<8x5x3x3xf32>
  %grouped = kiln.parameter {sources = ["grouped"]} : tensor<8x4x3x3xf32>
  %patches = kiln.parameter {sources = ["patches"]} : tensor<9x2x2x2xf32>
  %0 = kiln.conv2d %x, %window stride = [1, 1] padding = [1, 1] dilation = [1, 1] groups = 1
      : (tensor<4x6x5xf32>, tensor<8x5x3x3xf32>) -> tensor<4x6x8xf32>
  %1 = kiln.conv2d %0, %grouped stride = [1, 1] padding = [1, 1] dilation = [1, 1] groups = 2
      : (tensor<4x6x8xf32>, tensor<8x4x3x3xf32>) -> tensor<4x6x8xf32>
  %matrix = kiln.reshape %patches : tensor<9x2x2x2xf32> -> tensor<9x8xf32>
  %2 = kiln.linear %1, %matrix weight_order = out_in : (tensor<4x6x8xf32>, tensor<9x8xf32>) -> tensor<4x6x9xf32>
  return %2 : tensor<4x6x9xf32>
}

// The layout has the storage format; weights that nothing multiplies are stored by rows. Scales decide the dimension.
// CHECK-LABEL: @stored
// CHECK-DAG: sources = ["stored"]} : tensor<50x8xf32, #kiln.tiled<0, 16, storage = <i8>>>
// CHECK-DAG: sources = ["stored_in_out"]} : tensor<8x50xf32, #kiln.tiled<1, 16, storage = <i8, dim = 1>>>
// CHECK-DAG: sources = ["looked_up"]} : tensor<50x8xf32, #kiln.tiled<0, 1, storage = <bf16>>>
func.func @stored(%tokens: tensor<5xi32>, %x: tensor<5x8xf32>) -> (tensor<5x50xf32>, tensor<5x50xf32>, tensor<5x8xf32>) {
  %w = kiln.parameter {sources = ["stored"], storage = #kiln.storage<i8>} : tensor<50x8xf32>
  %u = kiln.parameter {sources = ["stored_in_out"], storage = #kiln.storage<i8, dim = 1>} : tensor<8x50xf32>
  %t = kiln.parameter {sources = ["looked_up"], storage = #kiln.storage<bf16>} : tensor<50x8xf32>
  %0 = kiln.linear %x, %w weight_order = out_in : (tensor<5x8xf32>, tensor<50x8xf32>) -> tensor<5x50xf32>
  %1 = kiln.linear %x, %u weight_order = in_out : (tensor<5x8xf32>, tensor<8x50xf32>) -> tensor<5x50xf32>
  %2 = kiln.embedding %tokens, %t : (tensor<5xi32>, tensor<50x8xf32>) -> tensor<5x8xf32>
  return %0, %1, %2 : tensor<5x50xf32>, tensor<5x50xf32>, tensor<5x8xf32>
}

// Where int8 rows are multiplied the layout is interleaved along K, also for other readers of the weight.
// CHECK-LABEL: @rows_of_int8
// CHECK-DAG: sources = ["head"]} : tensor<50x8xf32, #kiln.tiled<0, 16, interleave = 4, storage = <i8>>>
// CHECK-DAG: sources = ["floats"]} : tensor<50x8xf32, #kiln.tiled<0, 16, storage = <i8>>>
func.func @rows_of_int8(%tokens: tensor<5xi32>) -> (tensor<5x50xf32>, tensor<5x50xf32>) {
  %head = kiln.parameter {sources = ["head"], storage = #kiln.storage<i8>} : tensor<50x8xf32>
  %floats = kiln.parameter {sources = ["floats"], storage = #kiln.storage<i8>} : tensor<50x8xf32>
  %x = kiln.embedding %tokens, %head : (tensor<5xi32>, tensor<50x8xf32>) -> tensor<5x8xf32>
  %s = kiln.row_scales %x : (tensor<5x8xf32>) -> tensor<5xf32>
  %q = kiln.quantize_rows %x, %s : (tensor<5x8xf32>, tensor<5xf32>) -> tensor<5x8xi8>
  %0 = kiln.linear %q, %head scales %s weight_order = out_in : (tensor<5x8xi8>, tensor<50x8xf32>, tensor<5xf32>) -> tensor<5x50xf32>
  %1 = kiln.linear %x, %floats weight_order = out_in : (tensor<5x8xf32>, tensor<50x8xf32>) -> tensor<5x50xf32>
  return %0, %1 : tensor<5x50xf32>, tensor<5x50xf32>
}

// A tile has outputs of one group only: the 24 of a group are tiles of 8. 17 are no tiles of vectors.
// CHECK-DAG: sources = ["groups"]} : tensor<72x8xf32, #kiln.tiled<0, 8>>
// CHECK-DAG: sources = ["odd_groups"]} : tensor<51x8xf32>
// CHECK-DAG: sources = ["groups_of_inputs"]} : tensor<24x8xf32>
func.func @groups(%x: tensor<5x8xf32>, %ends: tensor<3xi32>) -> (tensor<5x24xf32>, tensor<5x17xf32>, tensor<5x8xf32>) {
  %w = kiln.parameter {sources = ["groups"]} : tensor<72x8xf32>
  %v = kiln.parameter {sources = ["odd_groups"]} : tensor<51x8xf32>
  %u = kiln.parameter {sources = ["groups_of_inputs"]} : tensor<24x8xf32>
  %y = kiln.grouped_linear %x, %w, %ends weight_order = out_in : (tensor<5x8xf32>, tensor<72x8xf32>, tensor<3xi32>) -> tensor<5x24xf32>
  %z = kiln.grouped_linear %x, %v, %ends weight_order = out_in : (tensor<5x8xf32>, tensor<51x8xf32>, tensor<3xi32>) -> tensor<5x17xf32>
  %o = kiln.grouped_linear %x, %u, %ends weight_order = in_out : (tensor<5x8xf32>, tensor<24x8xf32>, tensor<3xi32>) -> tensor<5x8xf32>
  return %y, %z, %o : tensor<5x24xf32>, tensor<5x17xf32>, tensor<5x8xf32>
}
