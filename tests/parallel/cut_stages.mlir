// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --kiln-cut-stages=stages=3 --verify-diagnostics | FileCheck %s

// The first stage has the embedding and sends the result of its layers; the last one returns the logits; those between
// have only layers. Other values that layers read are computed by each stage. The table is on the first and last stage.
// CHECK: module attributes {kiln.roles = array<i64: 0, 2, 1>, kiln.stages = 3 : i64}
// CHECK-LABEL: func.func @forward_first
// CHECK-SAME: (%[[WORDS:.*]]: tensor<7xi32> {kiln.name = "words"}, %{{.*}}: tensor<7xf32> {kiln.name = "angles"}) attributes {kiln.entry, kiln.layers = 6 : i64, kiln.role = "first"} {
// CHECK: kiln.exp
// CHECK: %[[TABLE:.*]] = kiln.parameter {sources = ["table"]}
// CHECK: %[[X:.*]] = kiln.embedding %[[WORDS]], %[[TABLE]]
// CHECK: %[[LAST:.*]]:2 = kiln.repeat 2 (%{{.*}} = %[[X]] : tensor<7x8xf32>, %{{.*}} = %{{.*}} : tensor<7xf32>)
// CHECK: kiln.parameter {copies = 2 : i64, sources = ["h.{}.weight"]}
// CHECK: kiln.append %{{.*}} to "h.{}.keys" copies = 2 rows = 7
// CHECK: kiln.send %[[LAST]]#0, %[[LAST]]#1 : tensor<7x8xf32>, tensor<7xf32>
// CHECK-NEXT: return
// CHECK-LABEL: func.func @forward_last
// CHECK-SAME: -> (tensor<7x32xf32> {kiln.name = "logits"})
// CHECK-NOT: kiln.embedding
// CHECK: kiln.exp
// CHECK: kiln.parameter {sources = ["table"]}
// CHECK: %[[GOT:.*]]:2 = kiln.receive : tensor<7x8xf32>, tensor<7xf32>
// CHECK: %[[LAST:.*]]:2 = kiln.repeat 2 (%{{.*}} = %[[GOT]]#0 : tensor<7x8xf32>, %{{.*}} = %[[GOT]]#1 : tensor<7xf32>)
// CHECK-NOT: kiln.send
// CHECK: %[[LOGITS:.*]] = kiln.linear
// CHECK: return %[[LOGITS]]
// CHECK-LABEL: func.func @forward_middle
// CHECK-NOT: "table"
// CHECK: kiln.receive
// CHECK: kiln.repeat 2
// CHECK: kiln.send
// CHECK-NEXT: return
// CHECK-NOT: func.func @forward(
module {
  func.func @forward(%words: tensor<7xi32> {kiln.name = "words"}, %angles: tensor<7xf32> {kiln.name = "angles"})
      -> (tensor<7x32xf32> {kiln.name = "logits"}) attributes {kiln.entry} {
    %exp = kiln.exp %angles : tensor<7xf32>
    %table = kiln.parameter {sources = ["table"]} : tensor<32x8xf32>
    %x = kiln.embedding %words, %table : (tensor<7xi32>, tensor<32x8xf32>) -> tensor<7x8xf32>
    %last:2 = kiln.repeat 6 (%h = %x : tensor<7x8xf32>, %s = %exp : tensor<7xf32>) {
      %weight = kiln.parameter {sources = ["h.{}.weight"], copies = 6} : tensor<8xf32>
      %y = kiln.mul %h, %weight : (tensor<7x8xf32>, tensor<8xf32>) -> tensor<7x8xf32>
      %keys = kiln.append %y to "h.{}.keys" copies = 6 rows = 7 : tensor<7x8xf32> -> tensor<7x8xf32>
      %t = kiln.add %s, %exp : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
      kiln.yield %keys, %t : tensor<7x8xf32>, tensor<7xf32>
    }
    %column = kiln.reshape %last#1 : tensor<7xf32> -> tensor<7x1xf32>
    %z = kiln.add %last#0, %column : (tensor<7x8xf32>, tensor<7x1xf32>) -> tensor<7x8xf32>
    %logits = kiln.linear %z, %table weight_order = out_in : (tensor<7x8xf32>, tensor<32x8xf32>) -> tensor<7x32xf32>
    return %logits : tensor<7x32xf32>
  }
}

// -----

module {
  // expected-error @+1 {{--stages 3: wrong number of stacks; expected one in each entry, got 0 in forward}}
  func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> attributes {kiln.entry} {
    %y = kiln.tanh %x : tensor<8xf32>
    return %y : tensor<8xf32>
  }
}

// -----

module {
  // expected-error @+1 {{--stages 3: wrong number of stacks; expected one in each entry, got 2 in forward}}
  func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> attributes {kiln.entry} {
    %y = kiln.repeat 3 (%h = %x : tensor<8xf32>) {
      %z = kiln.tanh %h : tensor<8xf32>
      kiln.yield %z : tensor<8xf32>
    }
    %w = kiln.repeat 3 (%h = %y : tensor<8xf32>) {
      %z = kiln.tanh %h : tensor<8xf32>
      kiln.yield %z : tensor<8xf32>
    }
    return %w : tensor<8xf32>
  }
}

// -----

module {
  func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> attributes {kiln.entry} {
    // expected-error @+1 {{--stages 3: too few layers; expected a stack of as many or more, got 2 in forward}}
    %y = kiln.repeat 2 (%h = %x : tensor<8xf32>) {
      %z = kiln.tanh %h : tensor<8xf32>
      kiln.yield %z : tensor<8xf32>
    }
    return %y : tensor<8xf32>
  }
}

// -----

module {
  func.func @forward(%x: tensor<8xf32>) -> tensor<3x8xf32> attributes {kiln.entry} {
    // expected-error @+1 {{--stages: several layers of the stack are read; expected only the last one, got all of them in forward}}
    %y, %all = kiln.repeat 3 (%h = %x : tensor<8xf32>) -> (tensor<3x8xf32>) {
      %z = kiln.tanh %h : tensor<8xf32>
      kiln.yield %z, %z : tensor<8xf32>, tensor<8xf32>
    }
    return %all : tensor<3x8xf32>
  }
}

// -----

module {
  func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> attributes {kiln.entry} {
    %y = kiln.repeat 3 (%h = %x : tensor<8xf32>) {
      // expected-error @+1 {{--stages: another loop over layers; expected one stack without stacks in its layers, got one in forward}}
      %z = kiln.repeat 2 (%i = %h : tensor<8xf32>) {
        %w = kiln.tanh %i : tensor<8xf32>
        kiln.yield %w : tensor<8xf32>
      }
      kiln.yield %z : tensor<8xf32>
    }
    return %y : tensor<8xf32>
  }
}

// -----

module {
  func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {kiln.entry} {
    %y = kiln.repeat 3 (%h = %x : tensor<4x8xf32>) {
      %z = kiln.tanh %h : tensor<4x8xf32>
      kiln.yield %z : tensor<4x8xf32>
    }
    // expected-error @+1 {{--stages: state outside of the layers; expected states of the stack's layers, got hidden in forward}}
    kiln.store %y to "hidden" rows = 4 : tensor<4x8xf32>
    return %y : tensor<4x8xf32>
  }
}
