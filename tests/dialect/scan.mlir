// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s
// RUN: kiln-opt %s -split-input-file -verify-diagnostics -canonicalize | FileCheck %s --check-prefix=FOLD

// CHECK-LABEL: @round_trip
func.func @round_trip(%h0: tensor<4xf32>, %i0: tensor<i32>, %xs: tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>,
                      %ns: tensor<?xi32, affine_map<()[s0] -> (s0)>>)
    -> (tensor<4xf32>, tensor<i32>, tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>) {
  // CHECK: %{{.*}}:2, %{{.*}} = kiln.scan (%[[H:.*]] = %arg0 : tensor<4xf32>, %[[I:.*]] = %arg1 : tensor<i32>) over
  // CHECK-SAME: (%[[X:.*]] = %arg2 : tensor<?x4xf32, #[[M:[a-z0-9]*]]>, %[[N:.*]] = %arg3 : tensor<?xi32, #{{[a-z0-9]*}}>)
  // CHECK-SAME: -> (tensor<?x4xf32, #[[M]]>) reverse {
  %0:3 = kiln.scan (%h = %h0 : tensor<4xf32>, %i = %i0 : tensor<i32>) over
      (%x = %xs : tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>, %n = %ns : tensor<?xi32, affine_map<()[s0] -> (s0)>>)
      -> (tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>) reverse {
    // CHECK: kiln.add %[[H]], %[[X]] : (tensor<4xf32>, tensor<4xf32>)
    %a = kiln.add %h, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // CHECK: kiln.maximum %[[I]], %[[N]] : (tensor<i32>, tensor<i32>)
    %m = kiln.maximum %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i32>
    // CHECK: kiln.yield %{{.*}}, %{{.*}}, %[[H]] : tensor<4xf32>, tensor<i32>, tensor<4xf32>
    kiln.yield %a, %m, %h : tensor<4xf32>, tensor<i32>, tensor<4xf32>
  }
  return %0#0, %0#1, %0#2 : tensor<4xf32>, tensor<i32>, tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>
}

// Unused outputs are not stacked; the other outputs are unchanged.
// FOLD-LABEL: @unused
func.func @unused(%h0: tensor<4xf32>, %xs: tensor<9x4xf32>) -> (tensor<4xf32>, tensor<9x4xf32>) {
  // FOLD: %[[L:.*]], %[[S:.*]] = kiln.scan (%[[H:.*]] = %arg0 : tensor<4xf32>) over (%[[X:.*]] = %arg1 : tensor<9x4xf32>) -> (tensor<9x4xf32>) {
  // FOLD-NEXT: %[[A:.*]] = kiln.add
  // FOLD-NEXT: %[[E:.*]] = kiln.exp %[[A]]
  // FOLD-NEXT: kiln.yield %[[A]], %[[E]]
  // FOLD: return %[[L]], %[[S]]
  %0:4 = kiln.scan (%h = %h0 : tensor<4xf32>) over (%x = %xs : tensor<9x4xf32>)
      -> (tensor<9x4xf32>, tensor<9x4xf32>, tensor<9x4xf32>) {
    %a = kiln.add %h, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %b = kiln.exp %a : tensor<4xf32>
    %c = kiln.log %a : tensor<4xf32>
    kiln.yield %a, %c, %b, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %0#0, %0#2 : tensor<4xf32>, tensor<9x4xf32>
}

// A scan without outputs is printed without a list of outputs.
// CHECK-LABEL: @only_state
func.func @only_state(%h0: tensor<4xf32>, %xs: tensor<9x4xf32>) -> tensor<4xf32> {
  // CHECK: kiln.scan (%{{.*}} = %arg0 : tensor<4xf32>) over (%{{.*}} = %arg1 : tensor<9x4xf32>) {
  %0 = kiln.scan (%h = %h0 : tensor<4xf32>) over (%x = %xs : tensor<9x4xf32>) {
    %a = kiln.add %h, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    kiln.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// A loop that ends early keeps its attribute when unused outputs are dropped.
// CHECK-LABEL: @until
// FOLD-LABEL: @until
func.func @until(%ended: tensor<i1>, %xs: tensor<9xi1>) -> tensor<i1> {
  // CHECK: kiln.scan (%{{.*}} = %arg0 : tensor<i1>) over (%{{.*}} = %arg1 : tensor<9xi1>) -> (tensor<9xi1>) until {
  // FOLD: kiln.scan (%{{.*}} = %arg0 : tensor<i1>) over (%{{.*}} = %arg1 : tensor<9xi1>) until {
  %0:2 = kiln.scan (%e = %ended : tensor<i1>) over (%x = %xs : tensor<9xi1>) -> (tensor<9xi1>) until {
    %a = kiln.logical_or %e, %x : (tensor<i1>, tensor<i1>) -> tensor<i1>
    kiln.yield %a, %e : tensor<i1>, tensor<i1>
  }
  return %0#0 : tensor<i1>
}

// -----
func.func @until_in_reverse(%e0: tensor<i1>, %xs: tensor<9xi1>) {
  // expected-error@+1 {{scan: cannot end early in reverse order; expected the order of the slices, got reverse}}
  %0 = kiln.scan (%e = %e0 : tensor<i1>) over (%x = %xs : tensor<9xi1>) reverse until {
    kiln.yield %x : tensor<i1>
  }
  return
}

// -----
func.func @until_of_a_number(%h0: tensor<4xf32>, %xs: tensor<9x4xf32>) {
  // expected-error@+1 {{scan: wrong first value of a loop that ends early; expected a boolean scalar, got tensor<4xf32>}}
  %0 = kiln.scan (%h = %h0 : tensor<4xf32>) over (%x = %xs : tensor<9x4xf32>) until {
    kiln.yield %x : tensor<4xf32>
  }
  return
}

// -----
func.func @scan_c1(%h0: tensor<4xf32>, %xs: tensor<9x4xf32>, %ys: tensor<8x4xf32>) {
  // expected-error@+1 {{scan: sequences differ in the first dimension; expected tensor<4xf32>, tensor<4xf32>, got tensor<9x4xf32>, tensor<8x4xf32> [scan_c1]}}
  %0 = kiln.scan (%h = %h0 : tensor<4xf32>) over (%x = %xs : tensor<9x4xf32>, %y = %ys : tensor<8x4xf32>) {
    kiln.yield %x : tensor<4xf32>
  }
  return
}

// -----
func.func @scan_c2(%h0: tensor<4xf32>, %xs: tensor<9x5xf32>) {
  // expected-error@+1 {{scan: step changes the state's type; expected tensor<4xf32>, got tensor<5xf32> [scan_c2]}}
  %0 = kiln.scan (%h = %h0 : tensor<4xf32>) over (%x = %xs : tensor<9x5xf32>) {
    kiln.yield %x : tensor<5xf32>
  }
  return
}

// -----
func.func @output(%h0: tensor<4xf32>, %xs: tensor<9x4xf32>) {
  // expected-error@+1 {{scan: results do not stack its outputs; expected for each step tensor<4xf32>, got tensor<8x4xf32>}}
  %0:2 = kiln.scan (%h = %h0 : tensor<4xf32>) over (%x = %xs : tensor<9x4xf32>) -> (tensor<8x4xf32>) {
    kiln.yield %x, %x : tensor<4xf32>, tensor<4xf32>
  }
  return
}

// -----
func.func @no_sequence(%h0: tensor<4xf32>) {
  // expected-error@+1 {{scan: no sequence; expected at least one, got none}}
  %0 = kiln.scan (%h = %h0 : tensor<4xf32>) over () {
    kiln.yield %h : tensor<4xf32>
  }
  return
}

// -----
func.func @no_axis(%h0: tensor<4xf32>, %xs: tensor<f32>) {
  // expected-error@+1 {{scan: wrong type of a sequence; expected a tensor of rank 1 or more, got 'tensor<f32>'}}
  %0 = kiln.scan (%h = %h0 : tensor<4xf32>) over (%x = %xs : tensor<f32>) {
    kiln.yield %h : tensor<4xf32>
  }
  return
}

// -----
func.func @ahead_with_a_sum(%h0: tensor<4xf32>, %xs: tensor<9x4xf32>) {
  // expected-error@+1 {{scan: cannot run ahead; expected no carried values and fixed iterations in their order, got others}}
  %0 = kiln.scan (%h = %h0 : tensor<4xf32>) over (%x = %xs : tensor<9x4xf32>) ahead 2 {
    kiln.yield %h : tensor<4xf32>
  }
  return
}
