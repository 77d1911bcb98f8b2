// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --pass-pipeline='builtin.module(kiln-form-kernels,func.func(kiln-lower-kernels),kiln-share-kernels)' | FileCheck %s

#a = affine_map<()[s0, s1] -> (s0, 8)>
#b = affine_map<()[s0, s1] -> (s1, 8)>
#c = affine_map<()[s0, s1] -> (s0 * s1, 8)>
module attributes {kiln.symbols = [#kiln.symbol<"a", 2, 4>, #kiln.symbol<"b", 3, 16>]} {

// Three activations over different extents are one kernel with the union of the bounds; a different width is another kernel. In a loop
// the body is compiled once.
// CHECK: func.func private @relu_0{{.*}}kiln.bounds = array<i64: 2, 64>
// CHECK: func.func private @relu_1
// CHECK-NOT: func.func private
// CHECK: kiln.call @relu_0[%arg0]
// CHECK: kiln.repeat 5
// CHECK-NEXT: kiln.call @relu_0[%arg1]
// CHECK-NEXT: yield
// CHECK: kiln.call @relu_0[%{{[0-9]+}}]
// CHECK: kiln.call @relu_1
func.func @forward(%s0: index {kiln.symbol = "a"}, %s1: index {kiln.symbol = "b"}, %a: tensor<?x8xf32, #a>, %b: tensor<?x8xf32, #b>,
    %c: tensor<?x8xf32, #c>, %d: tensor<5x9xf32>)
    -> (tensor<?x8xf32, #a>, tensor<?x8xf32, #b>, tensor<?x8xf32, #c>, tensor<5x9xf32>) attributes {kiln.entry} {
  %0 = kiln.relu %a : tensor<?x8xf32, #a>
  %1 = kiln.repeat 5 (%x = %b : tensor<?x8xf32, #b>) {
    %y = kiln.relu %x : tensor<?x8xf32, #b>
    kiln.yield %y : tensor<?x8xf32, #b>
  }
  %2 = kiln.relu %c : tensor<?x8xf32, #c>
  %3 = kiln.relu %d : tensor<5x9xf32>
  return %0, %1, %2, %3 : tensor<?x8xf32, #a>, tensor<?x8xf32, #b>, tensor<?x8xf32, #c>, tensor<5x9xf32>
}
}
