// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels,func.func(kiln-lower-kernels),kiln-share-kernels,kiln-plan-memory,kiln-verify-kernels{lowered=true})' | FileCheck %s

// An input that is returned, and a value that is returned twice, are copied.
// CHECK-LABEL: @outputs
// CHECK-SAME: kiln.arena_bytes = 0
// CHECK: %[[Y:.*]] = kiln.call @{{[a-z_0-9]+_}}0
// CHECK: %[[A:.*]] = kiln.concat %arg0 axis = 0
// CHECK: %[[B:.*]] = kiln.concat %[[Y]] axis = 0
// CHECK: return %[[A]], %[[Y]], %[[B]]
func.func @outputs(%x: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>) attributes {kiln.entry} {
  %y = kiln.relu %x : tensor<5x8xf32>
  return %x, %y, %y : tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>
}

// -----

// The loop starts on the caller's input, which must stay as it is: one copy before it, none inside.
// CHECK-LABEL: @loop
// CHECK-SAME: kiln.arena_bytes = 0
// CHECK: %[[I:.*]] = kiln.concat %arg0 axis = 0
// CHECK: kiln.repeat 5 (%[[X:.*]] = %[[I]]
// CHECK-NEXT: %[[Y:.*]] = kiln.call @{{[a-z_0-9]+_}}0(%[[X]])
// CHECK-NEXT: kiln.yield %[[Y]]
func.func @loop(%x: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %r = kiln.repeat 5 (%a = %x : tensor<5x8xf32>) {
    %y = kiln.relu %a : tensor<5x8xf32>
    kiln.yield %y : tensor<5x8xf32>
  }
  return %r : tensor<5x8xf32>
}

// -----

// Each layer's yielded value is written to its slice of the stacked result, and copied from there for the next layer.
// CHECK-LABEL: @hidden_states
// CHECK: kiln.repeat 5 (%[[X:.*]] = %{{.*}} : tensor<5x8xf32>) -> (tensor<5x5x8xf32>) {
// CHECK-NEXT: %[[Y:.*]] = kiln.call @relu_{{[0-9]+}}(%[[X]])
// CHECK-NEXT: %[[C:.*]] = kiln.concat %[[Y]] axis = 0
// CHECK-NEXT: kiln.yield %[[C]], %[[Y]]
func.func @hidden_states(%x: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<5x5x8xf32>) attributes {kiln.entry} {
  %r:2 = kiln.repeat 5 (%a = %x : tensor<5x8xf32>) -> (tensor<5x5x8xf32>) {
    %y = kiln.relu %a : tensor<5x8xf32>
    kiln.yield %y, %y : tensor<5x8xf32>, tensor<5x8xf32>
  }
  return %r#0, %r#1 : tensor<5x8xf32>, tensor<5x5x8xf32>
}

// -----

// Two carried values are swapped: both are copied through temporary buffers.
// CHECK-LABEL: @swap
// CHECK: kiln.repeat 3 (%[[A:.*]] = %{{.*}} : tensor<5x8xf32>, %[[B:.*]] = %{{.*}} : tensor<5x8xf32>)
// CHECK: %[[B1:.*]] = kiln.concat %[[B]] axis = 0
// CHECK: %[[A1:.*]] = kiln.concat %[[A]] axis = 0
// CHECK: kiln.yield
func.func @swap(%x: tensor<5x8xf32>, %y: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>) attributes {kiln.entry} {
  %r:2 = kiln.repeat 3 (%a = %x : tensor<5x8xf32>, %b = %y : tensor<5x8xf32>) {
    kiln.yield %b, %a : tensor<5x8xf32>, tensor<5x8xf32>
  }
  return %r#0, %r#1 : tensor<5x8xf32>, tensor<5x8xf32>
}

// -----

// A chain of elementwise kernels around a transpose, which cannot work in place: two buffers of 5 * 5 * 4 bytes, rounded to 64, are live
// when it runs, the rest is in place or the caller's.
// CHECK-LABEL: @chain
// CHECK-SAME: kiln.arena_bytes = 256 : i64, kiln.arena_lower_bound = 256 : i64
func.func @chain(%x: tensor<5x5xf32>) -> tensor<5x5xf32> attributes {kiln.entry} {
  %a = kiln.softmax %x axis = 1 : tensor<5x5xf32>
  %b = kiln.softmax %a axis = 1 : tensor<5x5xf32>
  %t = kiln.transpose %b permutation = [1, 0] : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %c = kiln.softmax %t axis = 1 : tensor<5x5xf32>
  %d = kiln.softmax %c axis = 1 : tensor<5x5xf32>
  %e = kiln.matmul %d, %d : (tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
  return %e : tensor<5x5xf32>
}

// -----

// A scan's output is written into its slice of the caller's memory; the state, which the product reads until the end, is copied from there.
// CHECK-LABEL: @scan
// CHECK-SAME: kiln.arena_bytes = 64
// CHECK: kiln.scan (%[[H:.*]] = %{{.*}} : tensor<2x8xf32>) over (%[[X:.*]] = %arg0 : tensor<5x2x8xf32>)
// CHECK-NEXT: %[[Y:.*]] = kiln.call @[[STEP:.*]](%[[H]], %{{.*}}, %[[X]])
// CHECK-NEXT: %[[C:.*]] = kiln.concat %[[Y]] axis = 0
// CHECK-NEXT: kiln.yield %[[C]], %[[Y]]
func.func @scan(%xs: tensor<5x2x8xf32>, %h0: tensor<2x8xf32>) -> tensor<5x2x8xf32> attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["w"]} : tensor<8x8xf32>
  %r:2 = kiln.scan (%h = %h0 : tensor<2x8xf32>) over (%x = %xs : tensor<5x2x8xf32>) -> (tensor<5x2x8xf32>) {
    %p = kiln.linear %h, %w weight_order = out_in : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    %y = kiln.add %p, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    kiln.yield %y, %y : tensor<2x8xf32>, tensor<2x8xf32>
  }
  return %r#1 : tensor<5x2x8xf32>
}

// -----

// A value that no kernel computes is copied to its slice before the state changes.
// CHECK-LABEL: @stacked_state
// CHECK: kiln.scan (%[[H:.*]] = %{{.*}} : tensor<2x8xf32>) over (%[[X:.*]] = %arg0 : tensor<5x2x8xf32>)
// CHECK: %[[Y:.*]] = kiln.call @[[STEP:.*]](%[[H]], %[[X]])
// CHECK: %[[A:.*]] = kiln.concat %[[H]] axis = 0
// CHECK: %[[B:.*]] = kiln.concat %[[X]] axis = 0
// CHECK: kiln.yield %{{.*}}, %[[A]], %[[B]]
func.func @stacked_state(%xs: tensor<5x2x8xf32>, %h0: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<5x2x8xf32>, tensor<5x2x8xf32>) attributes {kiln.entry} {
  %r:3 = kiln.scan (%h = %h0 : tensor<2x8xf32>) over (%x = %xs : tensor<5x2x8xf32>) -> (tensor<5x2x8xf32>, tensor<5x2x8xf32>) {
    %y = kiln.add %h, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    kiln.yield %y, %h, %x : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<2x8xf32>, tensor<5x2x8xf32>, tensor<5x2x8xf32>
}

// -----

// States have no memory in the plan. A state that is returned is copied at its read, before it is replaced.
// CHECK-LABEL: @states
// CHECK-SAME: kiln.arena_bytes = 0
// CHECK: %[[H:.*]] = kiln.state "h" rows = 5
// CHECK: %[[COPY:.*]] = kiln.concat %[[H]] axis = 0
// CHECK: %[[Y:.*]] = kiln.call @{{[a-z_0-9]+_}}0(%[[H]]
// CHECK: kiln.store %[[Y]] to "h" rows = 5
// CHECK: return %[[COPY]], %[[Y]]
func.func @states(%x: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>) attributes {kiln.entry} {
  %h = kiln.state "h" rows = 5 : tensor<5x8xf32>
  %y = kiln.add %h, %x : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  kiln.store %y to "h" rows = 5 : tensor<5x8xf32>
  return %h, %y : tensor<5x8xf32>, tensor<5x8xf32>
}

// -----

// Values that replace a state or a weight are written in place; the memory plan has only the sums.
// CHECK-LABEL: @at_home
// CHECK-SAME: kiln.arena_bytes = 128
func.func @at_home(%x: tensor<5x8xf32>) attributes {kiln.entry} {
  %h = kiln.state "h" rows = 5 : tensor<5x8xf32>
  %w = kiln.parameter {sources = ["w"], variable} : tensor<5x8xf32>
  %a = kiln.sum %x axis = 1 : (tensor<5x8xf32>) -> tensor<5xf32>
  %n = kiln.sum %a axis = 0 : (tensor<5xf32>) -> tensor<f32>
  kiln.require_finite %n : tensor<f32>
  %y = kiln.add %h, %x : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %v = kiln.mul %w, %y : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  kiln.store %y to "h" rows = 5 : tensor<5x8xf32>
  kiln.assign %v to %w : tensor<5x8xf32>
  return
}

// -----

// Not before a check that may end the call, nor if another operation reads the weight later.
// CHECK-LABEL: @not_at_home
// CHECK-SAME: kiln.arena_bytes = 384
func.func @not_at_home(%x: tensor<5x8xf32>) -> tensor<5x5xf32> attributes {kiln.entry} {
  %h = kiln.state "h" rows = 5 : tensor<5x8xf32>
  %w = kiln.parameter {sources = ["w"], variable} : tensor<5x8xf32>
  %y = kiln.softmax %h axis = 1 : tensor<5x8xf32>
  %m = kiln.max %y axis = 1 : (tensor<5x8xf32>) -> tensor<5xf32>
  %n = kiln.sum %m axis = 0 : (tensor<5xf32>) -> tensor<f32>
  kiln.require_finite %n : tensor<f32>
  %v = kiln.softmax %x axis = 1 : tensor<5x8xf32>
  %z = kiln.linear %v, %w weight_order = out_in : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x5xf32>
  kiln.store %y to "h" rows = 5 : tensor<5x8xf32>
  kiln.assign %v to %w : tensor<5x8xf32>
  return %z : tensor<5x5xf32>
}

// -----

// A reduction starts on its operand in place: in the loop, in the stacked slice. Operands that others read as well, and
// arguments of the entry, are copied first.
// CHECK-LABEL: @begun
// CHECK: %[[S:.*]] = kiln.scan
// CHECK: %[[Y:.*]] = kiln.call @{{[a-z_0-9]+}}(%{{.*}})
// CHECK-NEXT: %[[B:.*]] = kiln.begin_reduce %[[Y]]
// CHECK-NEXT: kiln.yield %[[B]]
// CHECK: %[[Z:.*]] = kiln.call
// CHECK-NEXT: %[[C:.*]] = kiln.concat %[[Z]] axis = 0
// CHECK-NEXT: kiln.begin_reduce %[[C]]
// CHECK-NEXT: %[[I:.*]] = kiln.concat %arg1 axis = 0
// CHECK-NEXT: kiln.begin_reduce %[[I]]
// CHECK-NEXT: kiln.finish
module attributes {kiln.replicas = 2 : i64} {
  func.func @begun(%x: tensor<5x8xf32>, %y: tensor<8xf32>)
      -> (tensor<5x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) attributes {kiln.entry} {
    %s = kiln.scan () over (%a = %x : tensor<5x8xf32>) -> (tensor<5x8xf32>) {
      %r = kiln.relu %a : tensor<8xf32>
      %b = kiln.begin_reduce %r over replicas : tensor<8xf32>
      kiln.yield %b : tensor<8xf32>
    }
    %z = kiln.tanh %y : tensor<8xf32>
    %c = kiln.begin_reduce %z over replicas : tensor<8xf32>
    %i = kiln.begin_reduce %y over replicas : tensor<8xf32>
    %f:3 = kiln.finish %s, %c, %i over replicas : tensor<5x8xf32>, tensor<8xf32>, tensor<8xf32>
    return %f#0, %f#1, %f#2, %z : tensor<5x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// A received value is written to the loop's carried value, and is sent from there; an input is sent in place.
// CHECK-LABEL: @moved
// CHECK-SAME: kiln.arena_bytes = 64 : i64
// CHECK: %[[X:.*]] = kiln.receive
// CHECK-NEXT: %[[Y:.*]] = kiln.repeat 3 (%{{.*}} = %[[X]]
// CHECK-NOT: copy
// CHECK: kiln.send %[[Y]], %arg0
module attributes {kiln.stages = 3 : i64} {
  func.func @moved(%mask: tensor<8xf32>) attributes {kiln.entry} {
    %x = kiln.receive : tensor<8xf32>
    %y = kiln.repeat 3 (%h = %x : tensor<8xf32>) {
      %z = kiln.relu %h : tensor<8xf32>
      kiln.yield %z : tensor<8xf32>
    }
    kiln.send %y, %mask : tensor<8xf32>, tensor<8xf32>
    return
  }
}

// -----

// A sum is begun of what a loop goes over in a copy, which is where the loop stacks it. What replicas gather in a loop is
// where that stacks it, too. No weight is written before all is gathered, since a replica may be lost.
// CHECK-LABEL: @shared_out
// CHECK-SAME: kiln.arena_bytes = 128
// CHECK: kiln.scan () over (%[[A:.*]] = %arg0
// CHECK-NEXT: %[[COPY:.*]] = kiln.concat %[[A]] axis = 0
// CHECK-NEXT: %[[B:.*]] = kiln.begin_reduce %[[COPY]] over replicas scattered
// CHECK-NEXT: kiln.yield %[[B]]
// CHECK: %[[Y:.*]] = kiln.call {{.*}} : (tensor<8xf32>) -> tensor<8xf32>
// CHECK: kiln.scan
// CHECK: %[[PART:.*]] = kiln.call
// CHECK-NEXT: %[[ALL:.*]] = kiln.all_gather %[[PART]]
// CHECK-NEXT: kiln.yield %[[ALL]]
// CHECK: kiln.assign %[[Y]] to %{{.*}}
module attributes {kiln.replicas = 2 : i64} {
  func.func @shared_out(%x: tensor<5x2x8xf32>, %own: tensor<5x8xf32>, %y: tensor<8xf32>)
      -> (tensor<5x2x8xf32>, tensor<5x2x8xf32>) attributes {kiln.entry} {
    %s = kiln.scan () over (%a = %x : tensor<5x2x8xf32>) -> (tensor<5x2x8xf32>) {
      %b = kiln.begin_reduce %a over replicas scattered : tensor<2x8xf32>
      kiln.yield %b : tensor<2x8xf32>
    }
    %f = kiln.finish %s over replicas : tensor<5x2x8xf32>
    %w = kiln.parameter {sources = ["w"], variable} : tensor<8xf32>
    %z = kiln.tanh %y : tensor<8xf32>
    %g = kiln.scan () over (%o = %own : tensor<5x8xf32>) -> (tensor<5x2x8xf32>) {
      %r = kiln.relu %o : tensor<8xf32>
      %all = kiln.all_gather %r over replicas : tensor<8xf32> -> tensor<2x8xf32>
      kiln.yield %all : tensor<2x8xf32>
    }
    kiln.assign %z to %w : tensor<8xf32>
    return %f, %g : tensor<5x2x8xf32>, tensor<5x2x8xf32>
  }
}

// -----

// A stacked result of an inner loop is a slice of the outer loop's; sums that start there are not moved.
// CHECK-LABEL: @stacked_twice
// CHECK-SAME: kiln.arena_bytes = 0
// CHECK: kiln.scan
// CHECK-NEXT: %[[INNER:.*]] = kiln.scan
// CHECK: %[[B:.*]] = kiln.begin_reduce
// CHECK-NEXT: kiln.yield %[[B]]
// CHECK-NEXT: }
// CHECK-NEXT: kiln.yield %[[INNER]]
module attributes {kiln.replicas = 2 : i64} {
  func.func @stacked_twice(%x: tensor<3x5x8xf32>) -> tensor<3x5x8xf32> attributes {kiln.entry} {
    %s = kiln.scan () over (%a = %x : tensor<3x5x8xf32>) -> (tensor<3x5x8xf32>) {
      %t = kiln.scan () over (%b = %a : tensor<5x8xf32>) -> (tensor<5x8xf32>) {
        %r = kiln.relu %b : tensor<8xf32>
        %c = kiln.begin_reduce %r over replicas : tensor<8xf32>
        kiln.yield %c : tensor<8xf32>
      }
      kiln.yield %t : tensor<5x8xf32>
    }
    %f = kiln.finish %s over replicas : tensor<3x5x8xf32>
    return %f : tensor<3x5x8xf32>
  }
}

// -----

// A stage that is at most two of six micro-batches ahead of their gradients keeps two: 2 * 5 * 8 * 4 bytes, and sends
// them from there. The received value, and the value computed in its place, are 192 bytes more. The sum is an output;
// its initial zeros are written before both loops.
// CHECK-LABEL: @ahead
// CHECK-SAME: kiln.arena_bytes = 512 : i64
// CHECK: %[[ZEROS:.*]] = kiln.concat %{{.*}} axis = 0 : (tensor<5x8xf32>)
// CHECK: %[[KEPT:.*]] = kiln.scan () over (%{{.*}} = %arg0 : tensor<6x5x8xf32>) -> (tensor<6x5x8xf32>) ahead 2 {
// CHECK: kiln.send
// CHECK: kiln.scan (%{{.*}} = %[[ZEROS]] : tensor<5x8xf32>) over (%{{.*}} = %[[KEPT]] : tensor<6x5x8xf32>) {
// CHECK: kiln.receive going back
// CHECK: kiln.all_reduce
func.func @ahead(%xs: tensor<6x5x8xf32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %kept = kiln.scan () over (%x = %xs : tensor<6x5x8xf32>) -> (tensor<6x5x8xf32>) ahead 2 {
    %y = kiln.tanh %x : tensor<5x8xf32>
    kiln.send %y : tensor<5x8xf32>
    kiln.yield %y : tensor<5x8xf32>
  }
  %zeros = kiln.constant dense<0.0> : tensor<5x8xf32>
  %sum = kiln.scan (%s = %zeros : tensor<5x8xf32>) over (%y = %kept : tensor<6x5x8xf32>) {
    %dy = kiln.receive going back : tensor<5x8xf32>
    %g = kiln.mul %dy, %y : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
    %t = kiln.add %s, %g : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
    kiln.send going back %g : tensor<5x8xf32>
    kiln.yield %t : tensor<5x8xf32>
  }
  %all = kiln.all_reduce %sum over stages : tensor<5x8xf32>
  return %all : tensor<5x8xf32>
}

// -----

// A custom function reads an input and writes an output of the caller; the arena has its workspace only.
// CHECK-LABEL: @custom
// CHECK-SAME: kiln.arena_bytes = 128
// CHECK-NEXT: %[[Y:.*]]:2 = kiln.custom "filter"(%arg0) workspace
// CHECK-NEXT: return %[[Y]]#0
func.func @custom(%x: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %y:2 = kiln.custom "filter"(%x) workspace : (tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<100xi8>)
  return %y#0 : tensor<5x8xf32>
}

// -----

// What it stacks is written to its place. What it carries is not, since it also reads the carried value, and nothing is
// known of its order.
// CHECK-LABEL: @custom_in_a_loop
// CHECK: kiln.repeat 3 (%[[X:.*]] = %{{.*}} : tensor<5x8xf32>) -> (tensor<3x4xi32>)
// CHECK-NEXT: %[[Y:.*]]:2 = kiln.custom "step"(%[[X]])
// CHECK-NEXT: %[[C:.*]] = kiln.concat %[[Y]]#0 axis = 0
// CHECK-NEXT: kiln.yield %[[C]], %[[Y]]#1
func.func @custom_in_a_loop(%x: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<3x4xi32>) attributes {kiln.entry} {
  %r:2 = kiln.repeat 3 (%a = %x : tensor<5x8xf32>) -> (tensor<3x4xi32>) {
    %y:2 = kiln.custom "step"(%a) : (tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<4xi32>)
    kiln.yield %y#0, %y#1 : tensor<5x8xf32>, tensor<4xi32>
  }
  return %r#0, %r#1 : tensor<5x8xf32>, tensor<3x4xi32>
}
