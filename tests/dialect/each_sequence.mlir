// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s
// RUN: kiln-opt %s -split-input-file -verify-diagnostics -canonicalize | FileCheck %s --check-prefix=FOLD

// s0 is the number of tokens of a sequence, s1 the number of sequences, s2 the number of tokens of all sequences.
#tokens = affine_map<()[s0, s1, s2] -> (s0, 4)>
#rows = affine_map<()[s0, s1, s2] -> (s2, 4)>
#pairs = affine_map<()[s0, s1, s2] -> (s1 * 2, 4)>

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<?x4xf32, #rows>, %y: tensor<?x4xf32, #pairs>)
    -> (tensor<?x4xf32, #rows>, tensor<?x4xf32, #pairs>) {
  // CHECK: %{{.*}}:2 = kiln.each_sequence 1 rows = [2, 0] (%[[X:.*]] = %arg0 : tensor<?x4xf32, #[[R:.*]]> in tensor<?x4xf32,
  // CHECK-SAME: #[[T:.*]]>, %[[Y:.*]] = %arg1 : tensor<?x4xf32, #[[P:.*]]> in tensor<2x4xf32>)
  // CHECK-SAME: -> (tensor<?x4xf32, #[[R]]>, tensor<?x4xf32, #[[P]]>) {
  %0:2 = kiln.each_sequence 1 rows = [2, 0] (%a = %x : tensor<?x4xf32, #rows> in tensor<?x4xf32, #tokens>,
      %b = %y : tensor<?x4xf32, #pairs> in tensor<2x4xf32>) -> (tensor<?x4xf32, #rows>, tensor<?x4xf32, #pairs>) {
    // CHECK: kiln.softmax %[[X]] axis = 0
    %s = kiln.softmax %a axis = 0 : tensor<?x4xf32, #tokens>
    %t = kiln.softmax %b axis = 0 : tensor<2x4xf32>
    kiln.yield %s, %t : tensor<?x4xf32, #tokens>, tensor<2x4xf32>
  }
  return %0#0, %0#1 : tensor<?x4xf32, #rows>, tensor<?x4xf32, #pairs>
}

// Unused results are not yielded.
// FOLD-LABEL: @unused
func.func @unused(%y: tensor<?x4xf32, #pairs>) -> tensor<?x4xf32, #pairs> {
  // FOLD: kiln.each_sequence 1 (%[[Y:.*]] = %arg0 : {{.*}}) -> (tensor<?x4xf32, #{{[a-z0-9]*}}>) {
  // FOLD-NEXT: %[[E:.*]] = kiln.exp %[[Y]]
  // FOLD-NEXT: kiln.yield %[[E]] : tensor<2x4xf32>
  %0:2 = kiln.each_sequence 1 (%b = %y : tensor<?x4xf32, #pairs> in tensor<2x4xf32>)
      -> (tensor<?x4xf32, #pairs>, tensor<?x4xf32, #pairs>) {
    %e = kiln.exp %b : tensor<2x4xf32>
    %l = kiln.log %b : tensor<2x4xf32>
    kiln.yield %l, %e : tensor<2x4xf32>, tensor<2x4xf32>
  }
  return %0#1 : tensor<?x4xf32, #pairs>
}

// -----
#pairs = affine_map<()[s0, s1, s2] -> (s1 * 2, 4)>
func.func @slice(%y: tensor<?x4xf32, #pairs>) {
  // expected-error@+1 {{each_sequence: wrong types of slices; expected a sequence's rows of tensor<?x4xf32, affine_map<()[s0, s1, s2] -> (s1 * 2, 4)>>, got tensor<3x4xf32>}}
  kiln.each_sequence 1 (%b = %y : tensor<?x4xf32, #pairs> in tensor<3x4xf32>) {
    kiln.yield
  }
  return
}

// -----
#pairs = affine_map<()[s0, s1, s2] -> (s1 * 2, 4)>
func.func @result(%y: tensor<?x4xf32, #pairs>) {
  // expected-error@+1 {{each_sequence: wrong types of results; expected all sequences' rows of tensor<4xf32>, got tensor<?x4xf32, affine_map<()[s0, s1, s2] -> (s1 * 2, 4)>>}}
  %0 = kiln.each_sequence 1 (%b = %y : tensor<?x4xf32, #pairs> in tensor<2x4xf32>) -> (tensor<?x4xf32, #pairs>) {
    %s = kiln.slice %b axis = 0 start = 0 : tensor<2x4xf32> -> tensor<1x4xf32>
    %r = kiln.reshape %s : tensor<1x4xf32> -> tensor<4xf32>
    kiln.yield %r : tensor<4xf32>
  }
  return
}

// -----
#pairs = affine_map<()[s0, s1, s2] -> (s1 * 2, 4)>
#long = affine_map<()[s0, s1, s2] -> (9, s1 * 2, 4)>
func.func @nested(%h: tensor<4xf32>, %y: tensor<?x4xf32, #pairs>, %xs: tensor<9x4xf32>) {
  %0 = kiln.scan (%a = %h : tensor<4xf32>) over (%x = %xs : tensor<9x4xf32>) {
    // expected-error@+1 {{each_sequence: inside another loop; expected none but kiln.repeat, got kiln.scan}}
    kiln.each_sequence 1 (%b = %y : tensor<?x4xf32, #pairs> in tensor<2x4xf32>) {
      kiln.yield
    }
    kiln.yield %x : tensor<4xf32>
  }
  return
}

// -----
func.func @rows(%y: tensor<2x4xf32>) {
  // expected-error@+1 {{each_sequence: wrong number of symbols; expected those of all rows and of a sequence's, got 1}}
  kiln.each_sequence 1 rows = [2] () {
    kiln.yield
  }
  return
}
