// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --kiln-shard-rows --verify-diagnostics | FileCheck %s

// All-reduces become reduce-scatters of rows, along the first axis that two ranks divide. Norms, residuals and what the
// loop carries have a rank's rows; both ranks have biases and norm weights, and read them for their rows. A rank takes
// its rows of a replicated lookup. All rows are gathered before layers split by outputs, and for the entry's result.
// CHECK-LABEL: @layers
// CHECK: %[[WORDS:.*]] = kiln.where
// CHECK: %[[PARTS:.*]] = kiln.reshape %[[WORDS]] : tensor<3x4x8xf32> -> tensor<3x2x2x8xf32>
// CHECK: %[[FIRST:.*]] = kiln.transpose %[[PARTS]] permutation = [1, 0, 2, 3]
// CHECK: %[[OWN:.*]] = kiln.reduce_scatter %[[FIRST]] : tensor<2x3x2x8xf32> -> tensor<3x2x8xf32>
// CHECK: %[[RANK:.*]] = kiln.rank
// CHECK: %[[DIVIDED:.*]] = kiln.reshape %{{.*}} : tensor<4x8xf32> -> tensor<2x2x8xf32>
// CHECK: %[[PLACES:.*]] = kiln.gather %[[DIVIDED]], %[[RANK]] axis = 0
// CHECK: %[[X:.*]] = kiln.add %[[OWN]], %[[PLACES]] : (tensor<3x2x8xf32>, tensor<2x8xf32>)
// CHECK: kiln.repeat 5 (%[[CARRIED:.*]] = %[[X]] : tensor<3x2x8xf32>)
// CHECK: %[[W:.*]] = kiln.to_ranks %{{.*}} : tensor<8xf32>
// CHECK: %[[N:.*]] = kiln.rms_norm %[[CARRIED]], %[[W]]
// CHECK: %[[ALL:.*]] = kiln.all_gather %[[N]] apart : tensor<3x2x8xf32> -> tensor<2x3x2x8xf32>
// CHECK: %[[ROWS:.*]] = kiln.transpose %[[ALL]] permutation = [1, 0, 2, 3]
// CHECK: %[[WHOLE:.*]] = kiln.reshape %[[ROWS]] : tensor<3x2x2x8xf32> -> tensor<3x4x8xf32>
// CHECK: kiln.linear %[[WHOLE]]
// CHECK: kiln.reduce_scatter
// CHECK: %[[BIAS:.*]] = kiln.to_ranks %{{.*}} : tensor<8xf32>
// CHECK: kiln.add %{{.*}}, %[[BIAS]] : (tensor<3x2x8xf32>, tensor<8xf32>) -> tensor<3x2x8xf32>
// CHECK: kiln.yield %{{.*}} : tensor<3x2x8xf32>
// CHECK: %[[GIVEN:.*]] = kiln.all_gather %{{.*}} : tensor<3x2x8xf32> -> tensor<2x3x2x8xf32>
// CHECK: return
module attributes {kiln.ranks = 2 : i64, kiln.symbols = [#kiln.symbol<"rows", 1, 9>]} {
  func.func @layers(%is: tensor<3x4x1xi1>, %own: tensor<3x4xi32>) -> tensor<3x4x8xf32> {
    %zero = kiln.constant dense<0.0> : tensor<f32>
    %table = kiln.parameter {sources = ["table"]} : tensor<32x8xf32>
    %rows = kiln.embedding %own, %table : (tensor<3x4xi32>, tensor<32x8xf32>) -> tensor<3x4x8xf32>
    %part = kiln.where %is, %rows, %zero : (tensor<3x4x1xi1>, tensor<3x4x8xf32>, tensor<f32>) -> tensor<3x4x8xf32>
    %words = kiln.all_reduce %part : tensor<3x4x8xf32>
    %positions = kiln.parameter {sources = ["positions"]} : tensor<4x8xf32>
    %x = kiln.add %words, %positions : (tensor<3x4x8xf32>, tensor<4x8xf32>) -> tensor<3x4x8xf32>
    %last = kiln.repeat 5 (%h = %x : tensor<3x4x8xf32>) {
      %weight = kiln.parameter {sources = ["h.{}.norm"], copies = 5} : tensor<8xf32>
      %n = kiln.rms_norm %h, %weight epsilon = 1.0e-6 : (tensor<3x4x8xf32>, tensor<8xf32>) -> tensor<3x4x8xf32>
      %all = kiln.to_ranks %n : tensor<3x4x8xf32>
      %w1 = kiln.parameter {sources = ["h.{}.up"], copies = 5} : tensor<16x8xf32>
      %up = kiln.linear %all, %w1 weight_order = out_in : (tensor<3x4x8xf32>, tensor<16x8xf32>) -> tensor<3x4x16xf32>
      %w2 = kiln.parameter {sources = ["h.{}.down"], copies = 5} : tensor<8x16xf32>
      %down = kiln.linear %up, %w2 weight_order = out_in : (tensor<3x4x16xf32>, tensor<8x16xf32>) -> tensor<3x4x8xf32>
      %sum = kiln.all_reduce %down : tensor<3x4x8xf32>
      %bias = kiln.parameter {sources = ["h.{}.bias"], copies = 5} : tensor<8xf32>
      %y = kiln.add %sum, %bias : (tensor<3x4x8xf32>, tensor<8xf32>) -> tensor<3x4x8xf32>
      %z = kiln.add %h, %y : (tensor<3x4x8xf32>, tensor<3x4x8xf32>) -> tensor<3x4x8xf32>
      kiln.yield %z : tensor<3x4x8xf32>
    }
    return %last : tensor<3x4x8xf32>
  }

  // Each rank has all rows if their number is dynamic.
  // CHECK-LABEL: @any_rows
  // CHECK: kiln.all_reduce
  // expected-remark @below {{entry any_rows is not sequence parallel: 2 ranks divide no fixed dimension of its rows}}
  func.func @any_rows(%s0: index {kiln.symbol = "rows"}, %x: tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>) -> tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>> {
    %w = kiln.parameter {sources = ["rows"]} : tensor<8x8xf32>
    %y = kiln.linear %x, %w weight_order = out_in : (tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>, tensor<8x8xf32>) -> tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>
    %z = kiln.all_reduce %y : tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>
    return %z : tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>
  }

  // Partial sums of 16-bit floats are added, and reduce-scattered, in f32.
  // CHECK-LABEL: @half_floats
  // CHECK: kiln.reduce_scatter %{{.*}} : tensor<2x2x8xf32> -> tensor<2x8xf32>
  // CHECK: kiln.cast %{{.*}} : tensor<2x8xf32> -> tensor<2x8xbf16>
  // CHECK: kiln.all_gather %{{.*}} : tensor<2x8xbf16> -> tensor<2x2x8xbf16>
  func.func @half_floats(%x: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
    %w = kiln.parameter {sources = ["short"]} : tensor<8x8xbf16>
    %part = kiln.linear %x, %w weight_order = out_in : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    %wide = kiln.cast %part : tensor<4x8xbf16> -> tensor<4x8xf32>
    %sum = kiln.all_reduce %wide : tensor<4x8xf32>
    %y = kiln.cast %sum : tensor<4x8xf32> -> tensor<4x8xbf16>
    return %y : tensor<4x8xbf16>
  }

  // Ranks drop different elements; if the first axis has the rows, no transposes are needed.
  // CHECK-LABEL: @drop
  // CHECK: kiln.reduce_scatter %{{.*}} : tensor<2x2x8xf32> -> tensor<2x8xf32>
  // CHECK: %[[FIRST_STEP:.*]] = kiln.mul %arg2, %{{.*}} : (tensor<i32>, tensor<i32>) -> tensor<i32>
  // CHECK: %[[STEP:.*]] = kiln.add %[[FIRST_STEP]], %{{.*}} : (tensor<i32>, tensor<i32>) -> tensor<i32>
  // CHECK: kiln.dropout %{{.*}}, %arg1, %[[STEP]]
  // CHECK-NOT: kiln.transpose
  // CHECK: kiln.all_gather %{{.*}} : tensor<2x8xf32> -> tensor<2x2x8xf32>
  func.func @drop(%x: tensor<4x8xf32>, %seed: tensor<i32>, %step: tensor<i32>) -> tensor<4x8xf32> {
    %w = kiln.parameter {sources = ["drop"]} : tensor<8x8xf32>
    %y = kiln.linear %x, %w weight_order = out_in : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %z = kiln.all_reduce %y : tensor<4x8xf32>
    %d = kiln.dropout %z, %seed, %step probability = 0.1 stream = 3 : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    return %d : tensor<4x8xf32>
  }
}

// -----

// expected-error @below {{--sequence-parallel: no rows can be split; expected an entry with a fixed number of them that 2 ranks divide, got none}}
module attributes {kiln.ranks = 2 : i64} {
  func.func @odd(%x: tensor<5x8xf32>) -> tensor<5x8xf32> {
    %w = kiln.parameter {sources = ["odd"]} : tensor<8x8xf32>
    %y = kiln.linear %x, %w weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
    %z = kiln.all_reduce %y : tensor<5x8xf32>
    return %z : tensor<5x8xf32>
  }
}
