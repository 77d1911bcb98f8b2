// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels,func.func(kiln-lower-kernels),kiln-share-kernels,kiln-plan-memory,kiln-verify-kernels{lowered=true})' | FileCheck %s

#t = affine_map<()[s0] -> (s0, 8)>
#past = affine_map<()[s0] -> (s0 + 2, 8)>

// A window over a stream is not a kernel: host code copies the rows, and stores them from their place.
// CHECK-LABEL: @stream
// CHECK: %[[PAST:.*]] = kiln.state "heard"
// CHECK: %[[LONGER:.*]] = kiln.concat %[[PAST]], %arg1 axis = 0
// CHECK: %[[Y:.*]] = kiln.call @softmax_0[{{.*}}](%[[LONGER]])
// CHECK: %[[LAST:.*]] = kiln.slice %[[LONGER]] axis = 0 start = 0 at_end
// CHECK-NOT: kiln.call
// CHECK: kiln.store %[[LAST]] to "heard"
module attributes {kiln.symbols = [#kiln.symbol<"frames", 1, 9>]} {
  func.func @stream(%s0: index, %x: tensor<?x8xf32, #t>) -> tensor<?x8xf32, #past> attributes {kiln.entry} {
    %past = kiln.state "heard" rows = 2 : tensor<2x8xf32>
    %longer = kiln.concat %past, %x axis = 0 : (tensor<2x8xf32>, tensor<?x8xf32, #t>) -> tensor<?x8xf32, #past>
    %y = kiln.softmax %longer axis = 1 : tensor<?x8xf32, #past>
    %last = kiln.slice %longer axis = 0 start = 0 at_end : tensor<?x8xf32, #past> -> tensor<2x8xf32>
    kiln.store %last to "heard" rows = 2 : tensor<2x8xf32>
    return %y : tensor<?x8xf32, #past>
  }
}

// -----

// Denormals are flushed to 0 where host code copies them to a state, and in the kernel whose result a state stores.
// CHECK-LABEL: func.func private @abs_less_where_1
// CHECK: math.tanh
// CHECK-NOT: func.func private
// CHECK-LABEL: func.func @flushed
// CHECK: %[[LAST:.*]] = kiln.slice
// CHECK: %[[H:.*]] = kiln.call @abs_less_where_1
// CHECK-NOT: kiln.call
// CHECK: kiln.store %[[LAST]] to "heard" rows = 2 flushed
// CHECK: kiln.store %[[H]] to "hidden" rows = 2 :
#t = affine_map<()[s0] -> (s0, 8)>
#past = affine_map<()[s0] -> (s0 + 2, 8)>
module attributes {kiln.symbols = [#kiln.symbol<"frames", 1, 9>]} {
  func.func @flushed(%s0: index, %x: tensor<?x8xf32, #t>, %h: tensor<2x8xf32>) -> tensor<?x8xf32, #past> attributes {kiln.entry} {
    %zero = kiln.constant dense<0.0> : tensor<f32>
    %least = kiln.constant dense<7.88860905E-31> : tensor<f32>
    %past = kiln.state "heard" rows = 2 : tensor<2x8xf32>
    %longer = kiln.concat %past, %x axis = 0 : (tensor<2x8xf32>, tensor<?x8xf32, #t>) -> tensor<?x8xf32, #past>
    %y = kiln.softmax %longer axis = 1 : tensor<?x8xf32, #past>
    %last = kiln.slice %longer axis = 0 start = 0 at_end : tensor<?x8xf32, #past> -> tensor<2x8xf32>
    %size = kiln.abs %last : tensor<2x8xf32>
    %small = kiln.less %size, %least : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xi1>
    %kept = kiln.where %small, %zero, %last : (tensor<2x8xi1>, tensor<f32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    %next = kiln.tanh %h : tensor<2x8xf32>
    %next_size = kiln.abs %next : tensor<2x8xf32>
    %next_small = kiln.less %next_size, %least : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xi1>
    %next_kept = kiln.where %next_small, %zero, %next : (tensor<2x8xi1>, tensor<f32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    kiln.store %kept to "heard" rows = 2 : tensor<2x8xf32>
    kiln.store %next_kept to "hidden" rows = 2 : tensor<2x8xf32>
    return %y : tensor<?x8xf32, #past>
  }
}

// -----

// The last rows begin at a run-time position: they are a view of a GEMM's result, and not fused into the next GEMM.
// CHECK-LABEL: @last
// CHECK: %[[Y:.*]] = kiln.call @linear_0
// CHECK: %[[LAST:.*]] = kiln.slice %[[Y]] axis = 0 start = 0 at_end
// CHECK: kiln.call @linear_1(%[[LAST]],
#t = affine_map<()[s0] -> (s0, 8)>
module attributes {kiln.symbols = [#kiln.symbol<"tokens", 1, 9>]} {
  func.func @last(%s0: index, %x: tensor<?x8xf32, #t>) -> tensor<1x8xf32> attributes {kiln.entry} {
    %w = kiln.parameter {sources = ["w"]} : tensor<8x8xf32>
    %u = kiln.parameter {sources = ["u"]} : tensor<8x8xf32>
    %y = kiln.linear %x, %w weight_order = out_in : (tensor<?x8xf32, #t>, tensor<8x8xf32>) -> tensor<?x8xf32, #t>
    %last = kiln.slice %y axis = 0 start = 0 at_end : tensor<?x8xf32, #t> -> tensor<1x8xf32>
    %z = kiln.linear %last, %u weight_order = out_in : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
    return %z : tensor<1x8xf32>
  }
}

// -----

// Columns are not contiguous, and rows that are a result are copied to it.
// CHECK-LABEL: @columns
// CHECK-NOT: kiln.slice
// CHECK: return
func.func @columns(%x: tensor<5x8xf32>) -> (tensor<5x3xf32>, tensor<2x8xf32>) attributes {kiln.entry} {
  %a = kiln.slice %x axis = 1 start = 0 : tensor<5x8xf32> -> tensor<5x3xf32>
  %b = kiln.slice %x axis = 0 start = 1 : tensor<5x8xf32> -> tensor<2x8xf32>
  return %a, %b : tensor<5x3xf32>, tensor<2x8xf32>
}

// -----

// A slice that begins at the first column is read through an affine map, and the linear remains a contraction.
// CHECK: #[[PART:.*]] = affine_map<(d0, d1, d2) -> (d0, d2 mod 2147483647)>
// CHECK: func.func private @linear_0
// CHECK-NOT: tensor.extract
// CHECK: linalg.generic {indexing_maps = [#[[PART]],
func.func @product(%x: tensor<5x12xf32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["w"]} : tensor<8x9xf32>
  %a = kiln.slice %x axis = 1 start = 0 : tensor<5x12xf32> -> tensor<5x9xf32>
  %y = kiln.linear %a, %w weight_order = out_in : (tensor<5x9xf32>, tensor<8x9xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// A reshape that drops an axis of size 1 is moved after the activation, which is fused with the convolution.
// CHECK-LABEL: @signal
// CHECK: kiln.call @conv2d_relu_0
// CHECK-NOT: kiln.call
// CHECK: return
func.func @signal(%x: tensor<1x7x8xf32>) -> tensor<5x4xf32> attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["w"]} : tensor<4x8x1x3xf32>
  %y = kiln.conv2d %x, %w stride = [1, 1] padding = [0, 0] dilation = [1, 1] groups = 1 : (tensor<1x7x8xf32>, tensor<4x8x1x3xf32>) -> tensor<1x5x4xf32>
  %z = kiln.reshape %y : tensor<1x5x4xf32> -> tensor<5x4xf32>
  %r = kiln.relu %z : tensor<5x4xf32>
  return %r : tensor<5x4xf32>
}
