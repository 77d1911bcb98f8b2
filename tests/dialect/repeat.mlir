// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s
// RUN: kiln-opt %s -split-input-file -verify-diagnostics -canonicalize | FileCheck %s --check-prefix=FOLD

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<4xf32>, %y: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  // CHECK: %[[R:.*]]:2 = kiln.repeat 12 (%[[A:.*]] = %{{.*}} : tensor<4xf32>, %[[B:.*]] = %{{.*}} : tensor<2xf32>) {
  %0:2 = kiln.repeat 12 (%a = %x : tensor<4xf32>, %b = %y : tensor<2xf32>) {
    // CHECK: kiln.parameter {copies = 12 : i64, sources = ["h.{}.w"]}
    %w = kiln.parameter {sources = ["h.{}.w"], copies = 12} : tensor<4xf32>
    %c = kiln.add %a, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %d = kiln.exp %b : tensor<2xf32>
    // CHECK: kiln.yield %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<2xf32>
    kiln.yield %c, %d : tensor<4xf32>, tensor<2xf32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<2xf32>
}

// A value that every layer yields unchanged is used directly; a parameter stays inside the body.
// FOLD-LABEL: @invariant
func.func @invariant(%x: tensor<4xf32>, %memory: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // FOLD: %[[R:.*]] = kiln.repeat 3 (%[[A:.*]] = %arg0 : tensor<4xf32>) {
  // FOLD-NEXT: kiln.parameter
  // FOLD: kiln.mul %{{.*}}, %arg1
  // FOLD: return %[[R]], %arg1
  %0:2 = kiln.repeat 3 (%a = %x : tensor<4xf32>, %m = %memory : tensor<4xf32>) {
    %w = kiln.parameter {sources = ["h.{}.w"], copies = 3} : tensor<4xf32>
    %b = kiln.add %a, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %c = kiln.mul %b, %m : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    kiln.yield %c, %m : tensor<4xf32>, tensor<4xf32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}

// Values that a layer yields after the carried ones are stacked, unless they are unused.
// CHECK-LABEL: @stacked
// FOLD-LABEL: @stacked
func.func @stacked(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<12x4xf32>) {
  // CHECK: kiln.repeat 12 (%{{.*}} = %{{.*}} : tensor<4xf32>) -> (tensor<12x4xf32>, tensor<12xf32>) {
  // FOLD: kiln.repeat 12 (%{{.*}} = %{{.*}} : tensor<4xf32>) -> (tensor<12x4xf32>) {
  %0:3 = kiln.repeat 12 (%a = %x : tensor<4xf32>) -> (tensor<12x4xf32>, tensor<12xf32>) {
    %b = kiln.tanh %a : tensor<4xf32>
    %c = kiln.sum %b axis = 0 : (tensor<4xf32>) -> tensor<f32>
    kiln.yield %b, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<f32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<12x4xf32>
}

// -----
func.func @stacked_type(%x: tensor<4xf32>) {
  // expected-error@+1 {{repeat: results do not stack its outputs; expected for each layer tensor<4xf32>, got tensor<3x4xf32>}}
  %0:2 = kiln.repeat 2 (%a = %x : tensor<4xf32>) -> (tensor<3x4xf32>) {
    kiln.yield %a, %a : tensor<4xf32>, tensor<4xf32>
  }
  return
}

// -----
func.func @count(%x: tensor<4xf32>) {
  // expected-error@+1 {{stack: invalid number of layers; expected at least one, got 0 [stack_c2]}}
  %0 = kiln.repeat 0 (%a = %x : tensor<4xf32>) {
    kiln.yield %a : tensor<4xf32>
  }
  return
}

// -----
func.func @yielded_type(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error@+1 {{stack: layer returns another type than its argument's; expected tensor<4xf32>, got tensor<5xf32> [stack_c1]}}
  %0 = kiln.repeat 2 (%a = %x : tensor<4xf32>) {
    kiln.yield %y : tensor<5xf32>
  }
  return
}

// -----
func.func @no_yield(%x: tensor<4xf32>) {
  // expected-error@+1 {{repeat: wrong end of the body; expected kiln.yield, got func.return}}
  %0 = "kiln.repeat"(%x) <{count = 2 : i64}> ({
  ^bb0(%a: tensor<4xf32>):
    func.return
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @yield_outside(%x: tensor<4xf32>) {
  // expected-error@+1 {{'kiln.yield' op expects parent op to be one of 'kiln.repeat, kiln.scan, kiln.each_sequence'}}
  kiln.yield %x : tensor<4xf32>
}
