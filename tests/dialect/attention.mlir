// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%q: tensor<2x7x12xf32>, %k: tensor<2x9x12xf32>, %v: tensor<2x9x8xf32>,
                      %mask: tensor<7x9xf32>, %lengths: tensor<2xi32>) -> tensor<2x7x8xf32> {
  // CHECK: kiln.attention %{{.*}}, %{{.*}}, %{{.*}} heads = 4 scale = 5.000000e-01 : (
  %0 = kiln.attention %q, %k, %v heads = 4 scale = 0.5
    : (tensor<2x7x12xf32>, tensor<2x9x12xf32>, tensor<2x9x8xf32>) -> tensor<2x7x8xf32>
  // CHECK: kiln.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} lengths %{{.*}} heads = 4 scale = 5.000000e-01 causal : (
  %1 = kiln.attention %q, %k, %v mask %mask lengths %lengths heads = 4 scale = 0.5 causal
    : (tensor<2x7x12xf32>, tensor<2x9x12xf32>, tensor<2x9x8xf32>, tensor<7x9xf32>, tensor<2xi32>) -> tensor<2x7x8xf32>
  return %1 : tensor<2x7x8xf32>
}

// CHECK-LABEL: @window
func.func @window(%q: tensor<7x12xf32>, %k: tensor<9x12xf32>) -> tensor<7x12xf32> {
  // CHECK: kiln.attention %{{.*}}, %{{.*}}, %{{.*}} heads = 4 scale = 5.000000e-01 causal window = 3 : (
  %0 = kiln.attention %q, %k, %k heads = 4 scale = 0.5 causal window = 3
    : (tensor<7x12xf32>, tensor<9x12xf32>, tensor<9x12xf32>) -> tensor<7x12xf32>
  return %0 : tensor<7x12xf32>
}

// CHECK-LABEL: @softcap
func.func @softcap(%q: tensor<7x12xf32>) -> tensor<7x12xf32> {
  // CHECK: kiln.attention %{{.*}}, %{{.*}}, %{{.*}} heads = 4 scale = 5.000000e-01 softcap = 3.000000e+01 : (
  %0 = kiln.attention %q, %q, %q heads = 4 scale = 0.5 softcap = 30.0
    : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x12xf32>) -> tensor<7x12xf32>
  return %0 : tensor<7x12xf32>
}

// CHECK-LABEL: @sinks
func.func @sinks(%q: tensor<2x7x12xf32>, %s: tensor<4xf32>, %n: tensor<2xi32>) -> tensor<2x7x12xf32> {
  // CHECK: kiln.attention %{{.*}}, %{{.*}}, %{{.*}} sinks %{{.*}} lengths %{{.*}} heads = 4 scale = 5.000000e-01 : (
  %0 = kiln.attention %q, %q, %q sinks %s lengths %n heads = 4 scale = 0.5
    : (tensor<2x7x12xf32>, tensor<2x7x12xf32>, tensor<2x7x12xf32>, tensor<4xf32>, tensor<2xi32>) -> tensor<2x7x12xf32>
  return %0 : tensor<2x7x12xf32>
}

// Grouped-query attention: several query heads share a head of keys and values.
// CHECK-LABEL: @grouped
func.func @grouped(%q: tensor<7x12xf32>, %k: tensor<9x6xf32>, %v: tensor<9x4xf32>) -> tensor<7x8xf32> {
  // CHECK: kiln.attention %{{.*}}, %{{.*}}, %{{.*}} heads = 4 key_value_heads = 2 scale
  %0 = kiln.attention %q, %k, %v heads = 4 key_value_heads = 2 scale = 0.5
    : (tensor<7x12xf32>, tensor<9x6xf32>, tensor<9x4xf32>) -> tensor<7x8xf32>
  return %0 : tensor<7x8xf32>
}

// attention_scores has the same rules.
// CHECK-LABEL: @scores
func.func @scores(%q: tensor<2x7x12xf32>, %k: tensor<2x9x6xf32>, %mask: tensor<7x9xf32>, %lengths: tensor<2xi32>) -> tensor<2x4x7x9xf32> {
  // CHECK: kiln.attention_scores %{{.*}}, %{{.*}} mask %{{.*}} lengths %{{.*}} heads = 4 key_value_heads = 2 scale = 5.000000e-01 causal : (
  %0 = kiln.attention_scores %q, %k mask %mask lengths %lengths heads = 4 key_value_heads = 2 scale = 0.5 causal
    : (tensor<2x7x12xf32>, tensor<2x9x6xf32>, tensor<7x9xf32>, tensor<2xi32>) -> tensor<2x4x7x9xf32>
  return %0 : tensor<2x4x7x9xf32>
}

// -----
func.func @scores_c2(%q: tensor<7x12xf32>, %k: tensor<9x9xf32>) {
  // expected-error@+1 {{attention: wrong width of the keys; expected 12, got 9 [attention_c2]}}
  %0 = kiln.attention_scores %q, %k heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<9x9xf32>) -> tensor<4x7x9xf32>
  return
}

// -----
func.func @scores_result(%q: tensor<7x12xf32>, %k: tensor<9x12xf32>) {
  // expected-error@+1 {{attention_scores: result does not follow from the operands; expected f32[4, 7, 9], got f32[7, 9]}}
  %0 = kiln.attention_scores %q, %k heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<9x12xf32>) -> tensor<7x9xf32>
  return
}

// -----
func.func @attention_c16(%q: tensor<7x12xf32>, %k: tensor<9x9xf32>) {
  // expected-error@+1 {{attention: number of heads is not divisible by that of keys and values; expected a multiple of 3, got 4 [attention_c16]}}
  %0 = kiln.attention %q, %k, %k heads = 4 key_value_heads = 3 scale = 0.5 : (tensor<7x12xf32>, tensor<9x9xf32>, tensor<9x9xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c1(%q: tensor<7x12xf32>) {
  // expected-error@+1 {{attention: query width is not divisible by the heads; expected a multiple of 5, got 12 [attention_c1]}}
  %0 = kiln.attention %q, %q, %q heads = 5 scale = 0.5 : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x12xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c2(%q: tensor<7x12xf32>, %k: tensor<7x8xf32>) {
  // expected-error@+1 {{attention: wrong width of the keys; expected 12, got 8 [attention_c2]}}
  %0 = kiln.attention %q, %k, %q heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<7x8xf32>, tensor<7x12xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c3(%q: tensor<7x12xf32>, %v: tensor<7x6xf32>) {
  // expected-error@+1 {{attention: value width is not divisible by the heads; expected a multiple of 4, got 6 [attention_c3]}}
  %0 = kiln.attention %q, %q, %v heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x6xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c4(%q: tensor<7x12xf32>, %v: tensor<9x12xf32>) {
  // expected-error@+1 {{attention: wrong number of values; expected 7, got 9 [attention_c4]}}
  %0 = kiln.attention %q, %q, %v heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<9x12xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c5(%q: tensor<2x7x12xf32>, %k: tensor<3x7x12xf32>) {
  // expected-error@+1 {{attention: different leading dimensions; expected the same for queries, keys and values, got f32[2, 7, 12], f32[3, 7, 12], f32[3, 7, 12] [attention_c5]}}
  %0 = kiln.attention %q, %k, %k heads = 4 scale = 0.5 : (tensor<2x7x12xf32>, tensor<3x7x12xf32>, tensor<3x7x12xf32>) -> tensor<2x7x12xf32>
  return
}

// -----
func.func @attention_c6(%q: tensor<12xf32>) {
  // expected-error@+1 {{attention: rank too small; expected 2 or more for queries, keys and values, got f32[12], f32[12], f32[12] [attention_c6]}}
  %0 = kiln.attention %q, %q, %q heads = 4 scale = 0.5 : (tensor<12xf32>, tensor<12xf32>, tensor<12xf32>) -> tensor<12xf32>
  return
}

// -----
func.func @attention_c7(%q: tensor<7x12xf32>, %mask: tensor<7x6xf32>) {
  // expected-error@+1 {{attention: mask does not broadcast to [..., queries, keys]; expected [7, 7], got f32[7, 6] [attention_c7]}}
  %0 = kiln.attention %q, %q, %q mask %mask heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x6xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c8(%q: tensor<7x12xf32>, %mask: tensor<7x7xf16>) {
  // expected-error@+1 {{attention: wrong element type of the mask; got f32[7, 12], f16[7, 7] [attention_c8]}}
  %0 = kiln.attention %q, %q, %q mask %mask heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x7xf16>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c9(%q: tensor<2x7x12xf32>, %lengths: tensor<3xi32>) {
  // expected-error@+1 {{attention: wrong type or shape of the lengths; expected [2], got i32[3] [attention_c9]}}
  %0 = kiln.attention %q, %q, %q lengths %lengths heads = 4 scale = 0.5 : (tensor<2x7x12xf32>, tensor<2x7x12xf32>, tensor<2x7x12xf32>, tensor<3xi32>) -> tensor<2x7x12xf32>
  return
}

// -----
func.func @attention_c10(%q: tensor<7x12xf32>, %k: tensor<6x12xf32>) {
  // expected-error@+1 {{causal attention: fewer keys than queries; got 7 queries and 6 keys [attention_c10]}}
  %0 = kiln.attention %q, %k, %k heads = 4 scale = 0.5 causal : (tensor<7x12xf32>, tensor<6x12xf32>, tensor<6x12xf32>) -> tensor<7x12xf32>
  return
}

// The bounds of dynamic dimensions count: at least one key more than queries here.
// -----
module attributes {kiln.symbols = [#kiln.symbol<"past", 1, 8>, #kiln.symbol<"tokens", 1, 64>]} {
  func.func @attention_c10_symbols(%q: tensor<?x12xf32, affine_map<()[s0, s1] -> (s1, 12)>>, %k: tensor<?x12xf32, affine_map<()[s0, s1] -> (s0 + s1, 12)>>) {
    %0 = kiln.attention %q, %k, %k heads = 4 scale = 0.5 causal
      : (tensor<?x12xf32, affine_map<()[s0, s1] -> (s1, 12)>>, tensor<?x12xf32, affine_map<()[s0, s1] -> (s0 + s1, 12)>>, tensor<?x12xf32, affine_map<()[s0, s1] -> (s0 + s1, 12)>>) -> tensor<?x12xf32, affine_map<()[s0, s1] -> (s1, 12)>>
    // expected-error@+1 {{causal attention: fewer keys than queries; got past+tokens 2..72 queries and tokens 1..64 keys [attention_c10]}}
    %1 = kiln.attention %k, %q, %q heads = 4 scale = 0.5 causal
      : (tensor<?x12xf32, affine_map<()[s0, s1] -> (s0 + s1, 12)>>, tensor<?x12xf32, affine_map<()[s0, s1] -> (s1, 12)>>, tensor<?x12xf32, affine_map<()[s0, s1] -> (s1, 12)>>) -> tensor<?x12xf32, affine_map<()[s0, s1] -> (s0 + s1, 12)>>
    return
  }
}

// -----
func.func @attention_c11(%q: tensor<7x12xf32>) {
  // expected-error@+1 {{attention: scale is not positive; expected one above 0, got 0.000000 [attention_c11]}}
  %0 = kiln.attention %q, %q, %q heads = 4 scale = 0.0 : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x12xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c17(%q: tensor<7x12xf32>) {
  // expected-error@+1 {{attention: invalid window; expected at least one key, of causal attention, got 4 [attention_c17]}}
  %0 = kiln.attention %q, %q, %q heads = 4 scale = 0.5 window = 4 : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x12xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c17_empty(%q: tensor<7x12xf32>) {
  // expected-error@+1 {{attention: invalid window; expected at least one key, of causal attention, got 0 [attention_c17]}}
  %0 = kiln.attention_scores %q, %q heads = 4 scale = 0.5 causal window = 0 : (tensor<7x12xf32>, tensor<7x12xf32>) -> tensor<4x7x7xf32>
  return
}

// -----
func.func @attention_c18(%q: tensor<7x12xf32>) {
  // expected-error@+1 {{attention: limit of the scores is not positive; expected one above 0, got 0.000000 [attention_c18]}}
  %0 = kiln.attention %q, %q, %q heads = 4 scale = 0.5 softcap = 0.0 : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x12xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c19(%q: tensor<7x12xf32>, %s: tensor<3xf32>) {
  // expected-error@+1 {{attention: wrong type or shape of the sinks; expected f32[4], got f32[3] [attention_c19]}}
  %0 = kiln.attention %q, %q, %q sinks %s heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x12xf32>, tensor<3xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c12(%q: tensor<7x12xf32>, %k: tensor<7x12xf16>) {
  // expected-error@+1 {{attention: wrong element types; expected one floating-point type for queries, keys and values, got f32[7, 12], f16[7, 12], f32[7, 12] [attention_c12]}}
  %0 = kiln.attention %q, %k, %q heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<7x12xf16>, tensor<7x12xf32>) -> tensor<7x12xf32>
  return
}
