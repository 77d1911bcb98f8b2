// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --pass-pipeline='builtin.module(kiln-form-kernels,func.func(kiln-lower-kernels),kiln-share-kernels)' | FileCheck %s

// The name of a kernel has its main operation, its number, and the common suffix of its callers' paths.
// CHECK: func.func private @linear_gelu_0_mlp_fc1({{.*}}) -> tensor<5x8xf32> attributes {{{.*}}kiln.scopes = ["h.{}.mlp.fc1"]
// CHECK: func.func private @layer_norm_1_encoder({{.*}}) -> tensor<5x8xf32> attributes {{{.*}}kiln.scopes = ["encoder.first", "encoder.second"]
// CHECK: func.func private @exp_2(
func.func @f(%x: tensor<5x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>, tensor<8xf32>) attributes {kiln.entry} {
  %0 = kiln.linear %x, %w, %b weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<5x8xf32> loc("h.{}.mlp.fc1")
  %1 = kiln.gelu %0 : tensor<5x8xf32> loc("h.{}.mlp")
  %2 = kiln.layer_norm %1, %b, %b epsilon = 1.0e-5 : (tensor<5x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<5x8xf32> loc("encoder.first")
  %3 = kiln.layer_norm %2, %b, %b epsilon = 1.0e-5 : (tensor<5x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<5x8xf32> loc("encoder.second")
  %4 = kiln.exp %b : tensor<8xf32>
  return %2, %3, %4 : tensor<5x8xf32>, tensor<5x8xf32>, tensor<8xf32>
}
