// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-store-weights)' --verify-diagnostics

module attributes {kiln.stated_storage = {bias = "int8"}} {
  func.func @vector(%x: tensor<4xf32>) -> tensor<4xf32> attributes {kiln.entry} {
    // expected-error @below {{weight "bias" cannot be stored as int8: it is no matrix}}
    %bias = kiln.parameter {sources = ["bias"]} : tensor<4xf32>
    %y = kiln.add %x, %bias : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// expected-error @below {{kiln.stated_storage: wrong owner or value; expected a module and a storage format for each weight}}
module attributes {kiln.stated_storage = {bias = "int7"}} {
}
