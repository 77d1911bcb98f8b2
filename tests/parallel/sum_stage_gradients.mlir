// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --kiln-sum-stage-gradients | FileCheck %s

// Both stages have the parameter "shared": they exchange its gradients, and add them in the same order. The gradient of
// a parameter that one stage has stays as it is. All stages get the loss of the last one.
// CHECK-LABEL: func.func @train_first
// CHECK: %[[OWN:.*]] = kiln.exp %arg0
// CHECK: kiln.send {{.*}}%[[OWN]]
// CHECK: %[[OTHER:.*]] = kiln.receive
// CHECK: %[[SUM:.*]] = kiln.add %[[OWN]], %[[OTHER]]
// CHECK: %[[LOSS:.*]] = kiln.all_reduce %{{.*}} over stages : tensor<f32>
// CHECK: return %[[LOSS]], %arg0, %[[SUM]]
// CHECK-LABEL: func.func @train_last
// CHECK: %[[LAST:.*]] = kiln.exp %arg0
// CHECK: kiln.send {{.*}}%[[LAST]]
// CHECK: %[[FIRST:.*]] = kiln.receive
// CHECK: kiln.add %[[FIRST]], %[[LAST]]
// CHECK: kiln.all_reduce %{{.*}} over stages : tensor<f32>
module attributes {kiln.roles = array<i64: 0, 1>, kiln.stages = 2 : i64} {
  func.func @train_first(%x: tensor<4xf32>)
      -> (tensor<f32> {kiln.name = "loss"}, tensor<4xf32> {kiln.gradient_of = "own"}, tensor<4xf32> {kiln.gradient_of = "shared"})
      attributes {kiln.entry, kiln.layers = 2 : i64, kiln.role = "first",
                  kiln.training = {update = "sgd", inputs = 1 : i64, loss = "loss", parameters = [{name = "own"}, {name = "shared", roles = 2 : i64}]}} {
    %dw = kiln.exp %x : tensor<4xf32>
    %zero = kiln.constant dense<0.0> : tensor<f32>
    return %zero, %x, %dw : tensor<f32>, tensor<4xf32>, tensor<4xf32>
  }
  func.func @train_last(%x: tensor<4xf32>) -> (tensor<f32> {kiln.name = "loss"}, tensor<4xf32> {kiln.gradient_of = "shared"})
      attributes {kiln.entry, kiln.layers = 2 : i64, kiln.role = "last",
                  kiln.training = {update = "sgd", inputs = 1 : i64, loss = "loss", parameters = [{name = "shared", counted_elsewhere, roles = 2 : i64}]}} {
    %dw = kiln.exp %x : tensor<4xf32>
    %loss = kiln.sum %dw axis = 0 : (tensor<4xf32>) -> tensor<f32>
    return %loss, %dw : tensor<f32>, tensor<4xf32>
  }
}
