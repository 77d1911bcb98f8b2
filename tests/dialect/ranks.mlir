// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
module attributes {kiln.ranks = 2 : i64, kiln.replicas = 4 : i64} {
  func.func @round_trip(%x: tensor<7x8xf32>, %parts: tensor<4x7x8xf32>) -> (tensor<7x8xf32>, tensor<7x8xf32>) {
    // CHECK: kiln.all_reduce %{{.*}} : tensor<7x8xf32>
    %0 = kiln.all_reduce %x : tensor<7x8xf32>
    // CHECK: kiln.all_reduce %{{.*}} over replicas : tensor<7x8xf32>
    %1 = kiln.all_reduce %0 over replicas : tensor<7x8xf32>
    // CHECK: kiln.all_gather %{{.*}} : tensor<7x8xf32> -> tensor<2x7x8xf32>
    %2 = kiln.all_gather %x : tensor<7x8xf32> -> tensor<2x7x8xf32>
    // CHECK: kiln.reduce_scatter %{{.*}} over replicas : tensor<4x7x8xf32> -> tensor<7x8xf32>
    %3 = kiln.reduce_scatter %parts over replicas : tensor<4x7x8xf32> -> tensor<7x8xf32>
    // CHECK: kiln.rank over replicas : tensor<i32>
    %4 = kiln.rank over replicas : tensor<i32>
    // CHECK: %[[BEGUN:.*]] = kiln.begin_reduce %{{.*}} over replicas : tensor<7x8xf32>
    %5 = kiln.begin_reduce %3 over replicas : tensor<7x8xf32>
    // CHECK: kiln.begin_reduce %{{.*}} over replicas scattered : tensor<4x7x8xf32>
    %7 = kiln.begin_reduce %parts over replicas scattered : tensor<4x7x8xf32>
    // CHECK: kiln.finish %[[BEGUN]] over replicas : tensor<7x8xf32>
    %6 = kiln.finish %5 over replicas : tensor<7x8xf32>
    return %1, %6 : tensor<7x8xf32>, tensor<7x8xf32>
  }
}

// -----

// CHECK-LABEL: @stages
module attributes {kiln.stages = 3 : i64} {
  func.func @stages() {
    // CHECK: %[[GOT:.*]]:2 = kiln.receive : tensor<7x8xf32>, tensor<7xi1>
    %0:2 = kiln.receive : tensor<7x8xf32>, tensor<7xi1>
    // CHECK: kiln.send %[[GOT]]#0, %[[GOT]]#1 : tensor<7x8xf32>, tensor<7xi1>
    kiln.send %0#0, %0#1 : tensor<7x8xf32>, tensor<7xi1>
    // CHECK: %[[BACK:.*]] = kiln.receive going back : tensor<7x8xf32>
    // CHECK: kiln.send going across %[[BACK]] : tensor<7x8xf32>
    %back = kiln.receive going back : tensor<7x8xf32>
    kiln.send going across %back : tensor<7x8xf32>
    return
  }
}

// -----

module attributes {kiln.ranks = 2 : i64} {
  func.func @parts_of_other_ranks(%x: tensor<7x8xf32>) -> tensor<3x7x8xf32> {
    // expected-error @+1 {{all_gather: wrong shape; expected one part of each rank, got}}
    %0 = kiln.all_gather %x : tensor<7x8xf32> -> tensor<3x7x8xf32>
    return %0 : tensor<3x7x8xf32>
  }
}

// -----

module attributes {kiln.ranks = 2 : i64} {
  func.func @scattered_unevenly(%x: tensor<2x7x8xf32>) -> tensor<7x4xf32> {
    // expected-error @+1 {{reduce_scatter: wrong shape; expected one part of each rank, got}}
    %0 = kiln.reduce_scatter %x : tensor<2x7x8xf32> -> tensor<7x4xf32>
    return %0 : tensor<7x4xf32>
  }
}

// -----

module attributes {kiln.replicas = 2 : i64} {
  func.func @read_too_early(%x: tensor<7x8xf32>) -> tensor<7x8xf32> {
    // expected-error @+1 {{begin_reduce: read too early; expected finish before, got add}}
    %0 = kiln.begin_reduce %x over replicas : tensor<7x8xf32>
    %1 = kiln.add %0, %x : (tensor<7x8xf32>, tensor<7x8xf32>) -> tensor<7x8xf32>
    return %1 : tensor<7x8xf32>
  }
}

// -----

module attributes {kiln.replicas = 2 : i64} {
  func.func @parts_of_others(%x: tensor<7x8xf32>) {
    // expected-error @+1 {{scattered begin_reduce: wrong number of parts; expected one for each rank, got f32[7, 8]}}
    %0 = kiln.begin_reduce %x over replicas scattered : tensor<7x8xf32>
    return
  }
}
