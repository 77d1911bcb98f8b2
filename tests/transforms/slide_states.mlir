// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-slide-states,canonicalize)' | FileCheck %s
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-slide-states,canonicalize,kiln-form-kernels,func.func(kiln-lower-kernels),kiln-share-kernels,kiln-plan-memory,kiln-verify-kernels{lowered=true})' | FileCheck %s --check-prefix=FORMED

#t = affine_map<()[s0] -> (s0, 8)>
#past = affine_map<()[s0] -> (s0 + 2, 8)>

// Entries that share a state have the same room, for the largest number of rows; the store flushes denormals.
// CHECK-LABEL: @some
// CHECK: %[[LONGER:.*]] = kiln.slide %{{.*}} after "heard" rows = 2 room = 16 :
// CHECK: kiln.softmax %[[LONGER]]
// CHECK: %[[LAST:.*]] = kiln.slice %[[LONGER]] axis = 0 start = 0 at_end
// CHECK-NOT: kiln.where
// CHECK: kiln.store %[[LAST]] to "heard" rows = 2 flushed
// CHECK-LABEL: @twelve
// CHECK: kiln.slide %{{.*}} after "heard" rows = 2 room = 16 : tensor<12x8xf32> -> tensor<14x8xf32>
// CHECK: kiln.store %{{.*}} to "heard" rows = 2 :
// CHECK-LABEL: @peek
// CHECK: kiln.state "heard" rows = 2
// Rows that a kernel computes are written to their place in the state, so the arena is empty.
// FORMED-LABEL: @some
// FORMED-SAME: kiln.arena_bytes = 0
// FORMED: %[[X:.*]] = kiln.call @tanh
// FORMED-NEXT: %[[LONGER:.*]] = kiln.slide %[[X]]
// FORMED: kiln.call @softmax{{.*}}(%[[LONGER]])
// FORMED: %[[LAST:.*]] = kiln.slice %[[LONGER]]
// FORMED-NOT: kiln.call
// FORMED: kiln.store %[[LAST]]
// FORMED-LABEL: @twelve
// FORMED-NOT: kiln.call @slice
// FORMED: kiln.store
module attributes {kiln.symbols = [#kiln.symbol<"frames", 1, 9>]} {
  func.func @some(%s0: index, %x: tensor<?x8xf32, #t>) -> tensor<?x8xf32, #past> attributes {kiln.entry} {
    %zero = kiln.constant dense<0.0> : tensor<f32>
    %least = kiln.constant dense<7.88860905E-31> : tensor<f32>
    %past = kiln.state "heard" rows = 2 : tensor<2x8xf32>
    %h = kiln.tanh %x : tensor<?x8xf32, #t>
    %longer = kiln.concat %past, %h axis = 0 : (tensor<2x8xf32>, tensor<?x8xf32, #t>) -> tensor<?x8xf32, #past>
    %y = kiln.softmax %longer axis = 1 : tensor<?x8xf32, #past>
    %last = kiln.slice %longer axis = 0 start = 0 at_end : tensor<?x8xf32, #past> -> tensor<2x8xf32>
    %size = kiln.abs %last : tensor<2x8xf32>
    %small = kiln.less %size, %least : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xi1>
    %kept = kiln.where %small, %zero, %last : (tensor<2x8xi1>, tensor<f32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    kiln.store %kept to "heard" rows = 2 : tensor<2x8xf32>
    return %y : tensor<?x8xf32, #past>
  }
  func.func @twelve(%s0: index, %x: tensor<12x8xf32>) -> tensor<14x8xf32> attributes {kiln.entry} {
    %past = kiln.state "heard" rows = 2 : tensor<2x8xf32>
    %longer = kiln.concat %past, %x axis = 0 : (tensor<2x8xf32>, tensor<12x8xf32>) -> tensor<14x8xf32>
    %y = kiln.softmax %longer axis = 1 : tensor<14x8xf32>
    %last = kiln.slice %longer axis = 0 start = 12 : tensor<14x8xf32> -> tensor<2x8xf32>
    kiln.store %last to "heard" rows = 2 : tensor<2x8xf32>
    return %y : tensor<14x8xf32>
  }
  func.func @peek(%s0: index) -> tensor<2x8xf32> attributes {kiln.entry} {
    %past = kiln.state "heard" rows = 2 : tensor<2x8xf32>
    %y = kiln.softmax %past axis = 1 : tensor<2x8xf32>
    return %y : tensor<2x8xf32>
  }
}

// -----

// A value that slides into one state and is stored in another, or returned, is copied before the state is replaced.
// FORMED-LABEL: @two
// FORMED: %[[LONGER:.*]] = kiln.slide %{{.*}} after "a"
// FORMED-DAG: kiln.concat %[[LONGER]] axis = 0
// FORMED-DAG: %[[LAST:.*]] = kiln.slice %[[LONGER]] axis = 0 start = 3
// FORMED-DAG: %[[COPY:.*]] = kiln.concat %[[LAST]] axis = 0
// FORMED: kiln.store %[[LAST]] to "a"
// FORMED: kiln.store %[[COPY]] to "b"
func.func @two(%x: tensor<3x8xf32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %past = kiln.state "a" rows = 2 : tensor<2x8xf32>
  %longer = kiln.concat %past, %x axis = 0 : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<5x8xf32>
  %last = kiln.slice %longer axis = 0 start = 3 : tensor<5x8xf32> -> tensor<2x8xf32>
  kiln.store %last to "a" rows = 2 : tensor<2x8xf32>
  kiln.store %last to "b" rows = 2 : tensor<2x8xf32>
  return %longer : tensor<5x8xf32>
}

// -----

// Not converted: rows other than the last ones, of another state, in the front, or for many more rows
// than the state has.
// CHECK-LABEL: @others
// CHECK-NOT: kiln.slide
// CHECK: return
func.func @others(%x: tensor<3x8xf32>, %wide: tensor<5x8192xf32>) attributes {kiln.entry} {
  %a = kiln.state "a" rows = 2 : tensor<2x8xf32>
  %b = kiln.state "b" rows = 2 : tensor<2x8xf32>
  %c = kiln.state "c" rows = 2 : tensor<2x8xf32>
  %d = kiln.state "d" rows = 2 : tensor<2x8192xf32>
  %0 = kiln.concat %a, %x axis = 0 : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<5x8xf32>
  %1 = kiln.slice %0 axis = 0 start = 2 : tensor<5x8xf32> -> tensor<2x8xf32>
  %2 = kiln.concat %c, %x axis = 0 : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<5x8xf32>
  %3 = kiln.slice %2 axis = 0 start = 3 : tensor<5x8xf32> -> tensor<2x8xf32>
  %4 = kiln.concat %x, %c axis = 0 : (tensor<3x8xf32>, tensor<2x8xf32>) -> tensor<5x8xf32>
  %5 = kiln.slice %4 axis = 0 start = 2 : tensor<5x8xf32> -> tensor<2x8xf32>
  %6 = kiln.concat %d, %wide axis = 0 : (tensor<2x8192xf32>, tensor<5x8192xf32>) -> tensor<7x8192xf32>
  %7 = kiln.slice %6 axis = 0 start = 5 : tensor<7x8192xf32> -> tensor<2x8192xf32>
  kiln.store %1 to "a" rows = 2 : tensor<2x8xf32>
  kiln.store %3 to "b" rows = 2 : tensor<2x8xf32>
  kiln.store %5 to "c" rows = 2 : tensor<2x8xf32>
  kiln.store %7 to "d" rows = 2 : tensor<2x8192xf32>
  return
}

// -----

// A large state, of half as many rows as are new.
// CHECK-LABEL: @large
// CHECK: kiln.slide %{{.*}} after "d" rows = 2 room = 8 : tensor<4x8192xf32> -> tensor<6x8192xf32>
func.func @large(%wide: tensor<4x8192xf32>) attributes {kiln.entry} {
  %d = kiln.state "d" rows = 2 : tensor<2x8192xf32>
  %0 = kiln.concat %d, %wide axis = 0 : (tensor<2x8192xf32>, tensor<4x8192xf32>) -> tensor<6x8192xf32>
  %1 = kiln.slice %0 axis = 0 start = 4 : tensor<6x8192xf32> -> tensor<2x8192xf32>
  kiln.store %1 to "d" rows = 2 : tensor<2x8192xf32>
  return
}

// -----

// Not converted: a state that rows are appended to, and states of a model that trains, whose files contain them.
// CHECK-LABEL: @appended
// CHECK-NOT: kiln.slide
// CHECK: return
func.func @appended(%x: tensor<3x8xf32>) attributes {kiln.entry} {
  %a = kiln.state "a" rows = 4 : tensor<4x8xf32>
  %0 = kiln.concat %a, %x axis = 0 : (tensor<4x8xf32>, tensor<3x8xf32>) -> tensor<7x8xf32>
  %1 = kiln.slice %0 axis = 0 start = 3 : tensor<7x8xf32> -> tensor<4x8xf32>
  %2 = kiln.append %x to "a" rows = 4 : tensor<3x8xf32> -> tensor<3x8xf32>
  kiln.store %1 to "a" rows = 4 : tensor<4x8xf32>
  return
}

// -----

// CHECK-LABEL: @trains
// CHECK-NOT: kiln.slide
// CHECK: return
func.func @trains(%x: tensor<3x8xf32>) attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["w"], variable} : tensor<3x8xf32>
  %a = kiln.state "a" rows = 2 : tensor<2x8xf32>
  %0 = kiln.concat %a, %x axis = 0 : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<5x8xf32>
  %1 = kiln.slice %0 axis = 0 start = 3 : tensor<5x8xf32> -> tensor<2x8xf32>
  kiln.assign %x to %w : tensor<3x8xf32>
  kiln.store %1 to "a" rows = 2 : tensor<2x8xf32>
  return
}
