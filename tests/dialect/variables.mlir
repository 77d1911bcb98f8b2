// RUN: kiln-opt %s -cse | FileCheck %s

// CSE does not merge loads of a variable, or calls of kernels that read one, across a write; it does for other weights.
func.func private @kernel(tensor<4xf32>) -> tensor<4xf32> attributes {kiln.kernel}

// CHECK-LABEL: @reads
func.func @reads(%x: tensor<4x4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[V0:.*]] = kiln.parameter {sources = ["v"], variable}
  // CHECK: %[[W0:.*]] = kiln.parameter {sources = ["w"]}
  // CHECK: %[[KV0:.*]] = kiln.call @kernel(%[[V0]])
  // CHECK: %[[KW0:.*]] = kiln.call @kernel(%[[W0]])
  %v0 = kiln.parameter {sources = ["v"], variable} : tensor<4xf32>
  %w0 = kiln.parameter {sources = ["w"]} : tensor<4xf32>
  %kv0 = kiln.call @kernel(%v0) : (tensor<4xf32>) -> tensor<4xf32>
  %kw0 = kiln.call @kernel(%w0) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: kiln.store
  kiln.store %x to "hidden" rows = 4 : tensor<4x4xf32>
  // CHECK: %[[V1:.*]] = kiln.parameter {sources = ["v"], variable}
  // CHECK-NOT: kiln.parameter
  // CHECK: %[[KV1:.*]] = kiln.call @kernel(%[[V0]])
  // CHECK-NOT: kiln.call
  // CHECK: return %[[V0]], %[[W0]], %[[KV0]], %[[KW0]], %[[V1]], %[[W0]], %[[KV1]], %[[KW0]]
  %v1 = kiln.parameter {sources = ["v"], variable} : tensor<4xf32>
  %w1 = kiln.parameter {sources = ["w"]} : tensor<4xf32>
  %kv1 = kiln.call @kernel(%v0) : (tensor<4xf32>) -> tensor<4xf32>
  %kw1 = kiln.call @kernel(%w0) : (tensor<4xf32>) -> tensor<4xf32>
  return %v0, %w0, %kv0, %kw0, %v1, %w1, %kv1, %kw1
      : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
