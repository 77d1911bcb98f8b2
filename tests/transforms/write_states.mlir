// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels{writes-states=true},canonicalize,cse,kiln-verify-kernels)' | FileCheck %s
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels{writes-states=true},func.func(kiln-lower-kernels),kiln-share-kernels,kiln-plan-memory,kiln-verify-kernels{lowered=true})' | FileCheck %s --check-prefix=PLAN
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels,canonicalize,cse,kiln-verify-kernels)' | FileCheck %s --check-prefix=OFF

// Columns of a GEMM that a state stores are a separate result, which is written to the state, so the arena is empty.

// CHECK-LABEL: @columns
// CHECK: %[[ALL:.*]]:2 = kiln.call @linear_0({{.*}}) {{.*}} -> (tensor<7x24xf32>, tensor<7x8xf32>)
// CHECK: kiln.append %[[ALL]]#1 to "keys" rows = 64 : tensor<7x8xf32> -> tensor<9x8xf32>
// PLAN: @columns{{.*}}kiln.arena_bytes = 0 
// OFF-LABEL: @columns
// OFF: %[[ALL:.*]] = kiln.call @linear_0
// OFF: kiln.append %[[ALL]] column = 8 to "keys"
func.func @columns(%x: tensor<7x4xf32>) -> (tensor<9x8xf32>, tensor<7x24xf32>) attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["w"]} : tensor<24x4xf32>
  %all = kiln.linear %x, %w weight_order = out_in : (tensor<7x4xf32>, tensor<24x4xf32>) -> tensor<7x24xf32>
  %keys = kiln.append %all column = 8 to "keys" rows = 64 : tensor<7x24xf32> -> tensor<9x8xf32>
  %y = kiln.relu %keys : tensor<9x8xf32>
  %z = kiln.relu %all : tensor<7x24xf32>
  return %y, %z : tensor<9x8xf32>, tensor<7x24xf32>
}

// -----

// Heads of what was turned: a range of an axis before the last one. Half a head is not, and is copied.

// CHECK-LABEL: @heads
// CHECK: %[[ALL:.*]]:2 = kiln.call @relu_0({{.*}}) {{.*}} -> (tensor<5x6x4xf32>, tensor<5x2x4xf32>)
// CHECK: %[[ROWS:.*]] = kiln.reshape %[[ALL]]#1 : tensor<5x2x4xf32> -> tensor<5x8xf32>
// CHECK: kiln.append %[[ROWS]] to "keys"
// CHECK: kiln.append %{{.*}} column = 2 to "others"
func.func @heads(%x: tensor<5x6x4xf32>) -> (tensor<5x8xf32>, tensor<5x4xf32>, tensor<5x6x4xf32>)
    attributes {kiln.entry} {
  %turned = kiln.relu %x : tensor<5x6x4xf32>
  %flat = kiln.reshape %turned : tensor<5x6x4xf32> -> tensor<5x24xf32>
  %keys = kiln.append %flat column = 16 to "keys" rows = 8 : tensor<5x24xf32> -> tensor<5x8xf32>
  %others = kiln.append %flat column = 2 to "others" rows = 8 : tensor<5x24xf32> -> tensor<5x4xf32>
  %y = kiln.relu %keys : tensor<5x8xf32>
  %z = kiln.relu %others : tensor<5x4xf32>
  %a = kiln.relu %turned : tensor<5x6x4xf32>
  return %y, %z, %a : tensor<5x8xf32>, tensor<5x4xf32>, tensor<5x6x4xf32>
}
