// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --kiln-batch-entries --verify-diagnostics | FileCheck %s

// Rows of all sequences are computed together, except where an op mixes the rows of a sequence.
// CHECK: module attributes {kiln.symbols = [{{.*}}]} {
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: attributes {kiln.entry} {
// CHECK-LABEL: func.func @forward_batch(
// CHECK-SAME: kiln.batch
// CHECK: %[[E:.*]] = kiln.exp
// CHECK: %[[S:.*]] = kiln.each_sequence 1 rows = [2, 0]
// CHECK: kiln.softmax
// CHECK: kiln.yield
// CHECK: %[[T:.*]] = kiln.tanh %[[S]]
// CHECK: return %[[T]]
#tokens = affine_map<()[s0, s1, s2] -> (s0, 4)>
module attributes {kiln.batch_symbols = array<i64: 1, 2, 0>,
                   kiln.symbols = [#kiln.symbol<"tokens", 1, 64>, #kiln.symbol<"sequences", 1, 8>, #kiln.symbol<"rows", 1, 64>]} {
  func.func @forward(%s0: index {kiln.symbol = "tokens"}, %s1: index {kiln.symbol = "sequences"}, %s2: index {kiln.symbol = "rows"},
                     %x: tensor<?x4xf32, #tokens> {kiln.name = "x"}) -> (tensor<?x4xf32, #tokens> {kiln.name = "y"})
      attributes {kiln.batched, kiln.entry} {
    %e = kiln.exp %x : tensor<?x4xf32, #tokens>
    %s = kiln.softmax %e axis = 0 : tensor<?x4xf32, #tokens>
    %t = kiln.tanh %s : tensor<?x4xf32, #tokens>
    return %t : tensor<?x4xf32, #tokens>
  }
}

// -----

// expected-error @below {{kiln.batch_symbols: wrong owner or value; expected a module and positions of its symbols}}
module attributes {kiln.batch_symbols = array<i64: 1, 2, 0>, kiln.symbols = [#kiln.symbol<"tokens", 1, 64>]} {
}
