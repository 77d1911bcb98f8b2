// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels{calls-groups=true},canonicalize,cse,kiln-verify-kernels)' | FileCheck %s
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels,canonicalize,cse,kiln-verify-kernels)' | FileCheck %s --check-prefix=LOOKUP

#x = affine_map<()[s0] -> (s0 * 2, 8)>
#h = affine_map<()[s0] -> (s0 * 2, 12)>
module attributes {kiln.symbols = [#kiln.symbol<"tokens", 1, 16>]} {

// The kernel is that of a linear for any number of rows. A product with other rows is in its epilogue.
// CHECK: func.func private @grouped_linear_silu_mul_0(%{{.*}}: index, %{{.*}}: tensor<?x8xf32, #{{.*}}>, %{{.*}}: tensor<12x8xf32>, %{{.*}}: tensor<12xf32>, %{{.*}}: tensor<?x12xf32, #{{.*}}>)
// CHECK-SAME: kiln.bounds = array<i64: 1, 32>
// CHECK: kiln.linear
// CHECK-NEXT: kiln.silu
// CHECK-NEXT: kiln.mul
// CHECK-NEXT: return
// CHECK: func.func @epilogue
// CHECK: kiln.call @grouped_linear_silu_mul_0[%{{.*}}](%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) ends %{{.*}} : tensor<3xi32> {per_group = array<i64: 1, 2>}
// LOOKUP: func.func private @grouped_linear_silu_mul_0
// LOOKUP: kiln.grouped_linear
// LOOKUP: func.func @epilogue
// LOOKUP-NOT: ends
func.func @epilogue(%s0: index {kiln.symbol = "tokens"}, %x: tensor<?x8xf32, #x>, %up: tensor<?x12xf32, #h>, %ends: tensor<3xi32>)
    -> tensor<?x12xf32, #h> attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["w"]} : tensor<36x8xf32>
  %b = kiln.parameter {sources = ["b"]} : tensor<36xf32>
  %y = kiln.grouped_linear %x, %w, %ends, %b weight_order = out_in : (tensor<?x8xf32, #x>, tensor<36x8xf32>, tensor<3xi32>, tensor<36xf32>) -> tensor<?x12xf32, #h>
  %a = kiln.silu %y : tensor<?x12xf32, #h>
  %z = kiln.mul %a, %up : (tensor<?x12xf32, #h>, tensor<?x12xf32, #h>) -> tensor<?x12xf32, #h>
  return %z : tensor<?x12xf32, #h>
}
}

// -----

// Static rows are a symbol of the kernel, too. What is broadcast to the rows is not in the epilogue, since a group has
// only some of the rows.
// CHECK: func.func private @grouped_linear_0(%{{.*}}: index, %{{.*}}: tensor<?x8xf32, #{{.*}}>, %{{.*}}: tensor<12x8xf32>)
// CHECK-SAME: kiln.bounds = array<i64: 1, 5>
// CHECK: kiln.linear
// CHECK-NEXT: return
// CHECK: func.func private @add_1
// CHECK: func.func @static
// CHECK: %[[N:.*]] = arith.constant 5 : index
// CHECK: kiln.call @grouped_linear_0[%[[N]]]
func.func @static(%x: tensor<5x8xf32>, %ends: tensor<3xi32>, %scale: tensor<12xf32>) -> tensor<5x12xf32> attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["w"]} : tensor<36x8xf32>
  %y = kiln.grouped_linear %x, %w, %ends weight_order = out_in : (tensor<5x8xf32>, tensor<36x8xf32>, tensor<3xi32>) -> tensor<5x12xf32>
  %z = kiln.add %y, %scale : (tensor<5x12xf32>, tensor<12xf32>) -> tensor<5x12xf32>
  return %z : tensor<5x12xf32>
}
