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

// Fewer heads of keys and values, each shared by several of the queries.
// CHECK-LABEL: @grouped
func.func @grouped(%q: tensor<7x12xf32>, %k: tensor<9x6xf32>, %v: tensor<9x4xf32>) -> tensor<7x8xf32> {
  // CHECK: kiln.attention %{{.*}}, %{{.*}}, %{{.*}} heads = 4 key_value_heads = 2 scale
  %0 = kiln.attention %q, %k, %v heads = 4 key_value_heads = 2 scale = 0.5
    : (tensor<7x12xf32>, tensor<9x6xf32>, tensor<9x4xf32>) -> tensor<7x8xf32>
  return %0 : tensor<7x8xf32>
}

// The scores on their way, under the same rules.
// CHECK-LABEL: @scores
func.func @scores(%q: tensor<2x7x12xf32>, %k: tensor<2x9x6xf32>, %mask: tensor<7x9xf32>, %lengths: tensor<2xi32>) -> tensor<2x4x7x9xf32> {
  // CHECK: kiln.attention_scores %{{.*}}, %{{.*}} mask %{{.*}} lengths %{{.*}} heads = 4 key_value_heads = 2 scale = 5.000000e-01 causal : (
  %0 = kiln.attention_scores %q, %k mask %mask lengths %lengths heads = 4 key_value_heads = 2 scale = 0.5 causal
    : (tensor<2x7x12xf32>, tensor<2x9x6xf32>, tensor<7x9xf32>, tensor<2xi32>) -> tensor<2x4x7x9xf32>
  return %0 : tensor<2x4x7x9xf32>
}

// -----
func.func @scores_c2(%q: tensor<7x12xf32>, %k: tensor<9x9xf32>) {
  // expected-error@+1 {{attention requires heads of keys as wide as those of queries [attention_c2]: got 9, expected 12}}
  %0 = kiln.attention_scores %q, %k heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<9x9xf32>) -> tensor<4x7x9xf32>
  return
}

// -----
func.func @scores_result(%q: tensor<7x12xf32>, %k: tensor<9x12xf32>) {
  // expected-error@+1 {{attention_scores requires the result that follows from its operands: got f32[7, 9], expected f32[4, 7, 9]}}
  %0 = kiln.attention_scores %q, %k heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<9x12xf32>) -> tensor<7x9xf32>
  return
}

// -----
func.func @attention_c16(%q: tensor<7x12xf32>, %k: tensor<9x9xf32>) {
  // expected-error@+1 {{attention requires a number of heads that is a multiple of that of keys and values [attention_c16]: got 4, expected a multiple of 3}}
  %0 = kiln.attention %q, %k, %k heads = 4 key_value_heads = 3 scale = 0.5 : (tensor<7x12xf32>, tensor<9x9xf32>, tensor<9x9xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c1(%q: tensor<7x12xf32>) {
  // expected-error@+1 {{attention requires the query width to be a multiple of the heads [attention_c1]: got 12, expected a multiple of 5}}
  %0 = kiln.attention %q, %q, %q heads = 5 scale = 0.5 : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x12xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c2(%q: tensor<7x12xf32>, %k: tensor<7x8xf32>) {
  // expected-error@+1 {{attention requires heads of keys as wide as those of queries [attention_c2]: got 8, expected 12}}
  %0 = kiln.attention %q, %k, %q heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<7x8xf32>, tensor<7x12xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c3(%q: tensor<7x12xf32>, %v: tensor<7x6xf32>) {
  // expected-error@+1 {{attention requires the value width to be a multiple of the heads [attention_c3]: got 6, expected a multiple of 4}}
  %0 = kiln.attention %q, %q, %v heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x6xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c4(%q: tensor<7x12xf32>, %v: tensor<9x12xf32>) {
  // expected-error@+1 {{attention requires as many values as keys [attention_c4]: got 9, expected 7}}
  %0 = kiln.attention %q, %q, %v heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<9x12xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c5(%q: tensor<2x7x12xf32>, %k: tensor<3x7x12xf32>) {
  // expected-error@+1 {{attention requires queries, keys and values with the same leading extents [attention_c5]: got f32[2, 7, 12], f32[3, 7, 12], f32[3, 7, 12]}}
  %0 = kiln.attention %q, %k, %k heads = 4 scale = 0.5 : (tensor<2x7x12xf32>, tensor<3x7x12xf32>, tensor<3x7x12xf32>) -> tensor<2x7x12xf32>
  return
}

// -----
func.func @attention_c6(%q: tensor<12xf32>) {
  // expected-error@+1 {{attention requires queries, keys and values of rank 2 or more [attention_c6]: got f32[12], f32[12], f32[12]}}
  %0 = kiln.attention %q, %q, %q heads = 4 scale = 0.5 : (tensor<12xf32>, tensor<12xf32>, tensor<12xf32>) -> tensor<12xf32>
  return
}

// -----
func.func @attention_c7(%q: tensor<7x12xf32>, %mask: tensor<7x6xf32>) {
  // expected-error@+1 {{attention requires a mask that broadcasts to [..., queries, keys] [attention_c7]: got f32[7, 6], expected [7, 7]}}
  %0 = kiln.attention %q, %q, %q mask %mask heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x6xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c8(%q: tensor<7x12xf32>, %mask: tensor<7x7xf16>) {
  // expected-error@+1 {{attention requires a mask of the queries' element type [attention_c8]: got f32[7, 12], f16[7, 7]}}
  %0 = kiln.attention %q, %q, %q mask %mask heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x7xf16>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c9(%q: tensor<2x7x12xf32>, %lengths: tensor<3xi32>) {
  // expected-error@+1 {{attention requires i32 lengths of the queries' leading extents [attention_c9]: got i32[3], expected [2]}}
  %0 = kiln.attention %q, %q, %q lengths %lengths heads = 4 scale = 0.5 : (tensor<2x7x12xf32>, tensor<2x7x12xf32>, tensor<2x7x12xf32>, tensor<3xi32>) -> tensor<2x7x12xf32>
  return
}

// -----
func.func @attention_c10(%q: tensor<7x12xf32>, %k: tensor<6x12xf32>) {
  // expected-error@+1 {{causal attention requires at least as many keys as queries [attention_c10]: got 7 queries and 6 keys}}
  %0 = kiln.attention %q, %k, %k heads = 4 scale = 0.5 causal : (tensor<7x12xf32>, tensor<6x12xf32>, tensor<6x12xf32>) -> tensor<7x12xf32>
  return
}

// The bounds of run-time extents count: at least one key more than queries here.
// -----
module attributes {kiln.symbols = [#kiln.symbol<"past", 1, 8>, #kiln.symbol<"tokens", 1, 64>]} {
  func.func @attention_c10_symbols(%q: tensor<?x12xf32, affine_map<()[s0, s1] -> (s1, 12)>>, %k: tensor<?x12xf32, affine_map<()[s0, s1] -> (s0 + s1, 12)>>) {
    %0 = kiln.attention %q, %k, %k heads = 4 scale = 0.5 causal
      : (tensor<?x12xf32, affine_map<()[s0, s1] -> (s1, 12)>>, tensor<?x12xf32, affine_map<()[s0, s1] -> (s0 + s1, 12)>>, tensor<?x12xf32, affine_map<()[s0, s1] -> (s0 + s1, 12)>>) -> tensor<?x12xf32, affine_map<()[s0, s1] -> (s1, 12)>>
    // expected-error@+1 {{causal attention requires at least as many keys as queries [attention_c10]: got s0 + s1 queries and tokens 1..64 keys}}
    %1 = kiln.attention %k, %q, %q heads = 4 scale = 0.5 causal
      : (tensor<?x12xf32, affine_map<()[s0, s1] -> (s0 + s1, 12)>>, tensor<?x12xf32, affine_map<()[s0, s1] -> (s1, 12)>>, tensor<?x12xf32, affine_map<()[s0, s1] -> (s1, 12)>>) -> tensor<?x12xf32, affine_map<()[s0, s1] -> (s0 + s1, 12)>>
    return
  }
}

// -----
func.func @attention_c11(%q: tensor<7x12xf32>) {
  // expected-error@+1 {{attention requires a scale above 0 [attention_c11]: got 0.000000}}
  %0 = kiln.attention %q, %q, %q heads = 4 scale = 0.0 : (tensor<7x12xf32>, tensor<7x12xf32>, tensor<7x12xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @attention_c12(%q: tensor<7x12xf32>, %k: tensor<7x12xf16>) {
  // expected-error@+1 {{attention requires queries, keys and values of one floating-point type [attention_c12]: got f32[7, 12], f16[7, 12], f32[7, 12]}}
  %0 = kiln.attention %q, %k, %q heads = 4 scale = 0.5 : (tensor<7x12xf32>, tensor<7x12xf16>, tensor<7x12xf32>) -> tensor<7x12xf32>
  return
}
