// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK: module attributes {kiln.symbols = [#kiln.symbol<"batch", 1, 8>, #kiln.symbol<"tokens", 1, 64>]}
module attributes {kiln.symbols = [#kiln.symbol<"batch", 1, 8>, #kiln.symbol<"tokens", 1, 64>]} {
  // CHECK: func.func @forward(%{{.*}}: index {kiln.symbol = "batch"}, %{{.*}}: index {kiln.symbol = "tokens"}, %{{.*}}: tensor<4xf32> {kiln.name = "x"}) -> (tensor<4xf32> {kiln.name = "y"}) attributes {kiln.entry}
  func.func @forward(%s0: index {kiln.symbol = "batch"}, %s1: index {kiln.symbol = "tokens"}, %x: tensor<4xf32> {kiln.name = "x"})
      -> (tensor<4xf32> {kiln.name = "y"}) attributes {kiln.entry} {
    return %x : tensor<4xf32>
  }
  // CHECK: func.func private @kernel(index) attributes {kiln.bounds = array<i64: 1, 64>, kiln.kernel}
  func.func private @kernel(index) attributes {kiln.bounds = array<i64: 1, 64>, kiln.kernel}
}

// -----
// expected-error@+1 {{symbol requires a name}}
#unnamed = #kiln.symbol<"", 1, 8>

// -----
// expected-error@+1 {{symbol "batch" requires bounds with 1 <= minimum <= maximum, got 0 and 8}}
#zero = #kiln.symbol<"batch", 0, 8>

// -----
// expected-error@+1 {{symbol "batch" requires bounds with 1 <= minimum <= maximum, got 9 and 8}}
#crossed = #kiln.symbol<"batch", 9, 8>

// -----
// expected-error@+1 {{tiled requires a dimension of at least 0, got -1}}
#dimension = #kiln.tiled<-1, 8>

// -----
// expected-error@+1 {{tiled requires a size of at least 1, got 0}}
#size = #kiln.tiled<0, 0>

// -----
// expected-error@+1 {{tiled requires an interleave of at least 1, got 0}}
#interleave = #kiln.tiled<0, 8, interleave = 0>

// -----
// expected-error@+1 {{storage requires elements of type f16, bf16, i8 or i4, got 'i32'}}
#element = #kiln.storage<i32>

// -----
// expected-error@+1 {{storage requires a dimension of at least 0, got -1}}
#scales = #kiln.storage<i8, dim = -1>

// -----
// expected-error@+1 {{tiled requires scales along its dimension 1, got #kiln.storage<i8>}}
#other = #kiln.tiled<1, 8, storage = <i8>>

// -----
// expected-error@+1 {{storage requires a weight of f32, got 'f16'}}
func.func private @stored_short_float(tensor<4x8xf16, #kiln.tiled<0, 8, storage = <i8>>>)

// -----
// expected-error@+1 {{tiled requires a rank of 2 or more and fixed extents}}
func.func private @rank(tensor<4xf32, #kiln.tiled<0, 8>>)

// -----
// expected-error@+1 {{tiled requires a dimension within the rank, got 2 of 2}}
func.func private @within(tensor<4x8xf32, #kiln.tiled<2, 8>>)

// -----
// expected-error@+1 {{tiled requires a rank of 2 or more and fixed extents}}
func.func private @run_time(tensor<4x?xf32, #kiln.tiled<0, 8>>)

// -----
// expected-error@+1 {{storage requires a depth of whole groups of 32, got 9223372036854775807}}
func.func private @overflow(tensor<4x4294967296x4294967296xf32, #kiln.tiled<0, 8, storage = <i4, group = 32>>>)

// -----
// expected-error@+1 {{kiln.symbols requires a module and an array of symbols}}
module attributes {kiln.symbols = ["batch"]} {}

// -----
// expected-error@+1 {{kiln.symbols requires different names, got "batch" twice}}
module attributes {kiln.symbols = [#kiln.symbol<"batch", 1, 8>, #kiln.symbol<"batch", 1, 9>]} {}

// -----
// expected-error@+1 {{kiln.entry requires a function and no value}}
module attributes {kiln.entry} {}

// -----
// expected-error@+1 {{kiln.bounds requires two bounds for each of 1 index arguments, got 1}}
func.func private @bounds(index) attributes {kiln.bounds = array<i64: 1>}

// -----
// expected-error@+1 {{kiln.bounds requires a function and an array of 64-bit integers}}
func.func private @bounds(index) attributes {kiln.bounds = 1}

// -----
module attributes {kiln.symbols = [#kiln.symbol<"batch", 1, 8>]} {
  // expected-error@+1 {{kiln.symbol requires an index argument at the place of the module's symbol, got "tokens" at 0}}
  func.func private @forward(index {kiln.symbol = "tokens"})
}

// -----
// expected-error@+1 {{kiln.name requires a string}}
func.func private @name(tensor<4xf32> {kiln.name = 1})

// -----
// expected-error@+1 {{kiln.name requires a string}}
func.func private @result_name() -> (tensor<4xf32> {kiln.name = 1})
