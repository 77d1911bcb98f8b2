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
// expected-error@+1 {{symbol: empty name; expected at least one character}}
#unnamed = #kiln.symbol<"", 1, 8>

// -----
// expected-error@+1 {{symbol "batch": wrong bounds; expected 1 <= minimum <= maximum, got 0 and 8}}
#zero = #kiln.symbol<"batch", 0, 8>

// -----
// expected-error@+1 {{symbol "batch": wrong bounds; expected 1 <= minimum <= maximum, got 9 and 8}}
#crossed = #kiln.symbol<"batch", 9, 8>

// -----
// expected-error@+1 {{tiled: negative dimension; expected at least 0, got -1}}
#dimension = #kiln.tiled<-1, 8>

// -----
// expected-error@+1 {{tiled: wrong size; expected at least 1, got 0}}
#size = #kiln.tiled<0, 0>

// -----
// expected-error@+1 {{tiled: wrong interleave; expected at least 1, got 0}}
#interleave = #kiln.tiled<0, 8, interleave = 0>

// -----
// expected-error@+1 {{storage: unsupported element type; expected f16, bf16, i8, i4, f8e4m3, f4e2m1, u4 or i6, got 'i32'}}
#element = #kiln.storage<i32>

// -----
// expected-error@+1 {{storage: negative dimension; expected at least 0, got -1}}
#scales = #kiln.storage<i8, dim = -1>

// -----
// expected-error@+1 {{tiled: scales along another dimension; expected 1, got #kiln.storage<i8>}}
#other = #kiln.tiled<1, 8, storage = <i8>>

// -----
// expected-error@+1 {{storage: wrong element type of the weight; expected f32, got 'f16'}}
func.func private @stored_half_float(tensor<4x8xf16, #kiln.tiled<0, 8, storage = <i8>>>)

// -----
// expected-error@+1 {{tiled: unsupported shape; expected rank 2 or more and fixed dimensions}}
func.func private @rank(tensor<4xf32, #kiln.tiled<0, 8>>)

// -----
// expected-error@+1 {{tiled: dimension out of range; expected one within the rank, got 2 of 2}}
func.func private @within(tensor<4x8xf32, #kiln.tiled<2, 8>>)

// -----
// expected-error@+1 {{tiled: unsupported shape; expected rank 2 or more and fixed dimensions}}
func.func private @run_time(tensor<4x?xf32, #kiln.tiled<0, 8>>)

// -----
// expected-error@+1 {{storage: K is not divisible by the group; expected a multiple of 32, got 9223372036854775807}}
func.func private @overflow(tensor<4x4294967296x4294967296xf32, #kiln.tiled<0, 8, storage = <i4, group = 32>>>)

// -----
// expected-error@+1 {{storage: K is not divisible by the group; expected a multiple of 256, got 96}}
func.func private @block(tensor<4x96xf32, #kiln.tiled<0, 8, storage = <ui4, group = 32>>>)

// -----
// expected-error@+1 {{storage of 'ui4': unsupported groups; expected those of a storage format, got 64}}
#block = #kiln.storage<ui4, group = 64>

// -----
// expected-error@+1 {{kiln.symbols: wrong owner or value; expected a module and an array of symbols}}
module attributes {kiln.symbols = ["batch"]} {}

// -----
// expected-error@+1 {{kiln.symbols: repeated name; expected different ones, got "batch" twice}}
module attributes {kiln.symbols = [#kiln.symbol<"batch", 1, 8>, #kiln.symbol<"batch", 1, 9>]} {}

// -----
// expected-error@+1 {{kiln.entry: wrong owner or value; expected a function and no value}}
module attributes {kiln.entry} {}

// -----
// expected-error@+1 {{kiln.bounds: wrong number of bounds; expected two for each of 1 index arguments, got 1}}
func.func private @bounds(index) attributes {kiln.bounds = array<i64: 1>}

// -----
// expected-error@+1 {{kiln.bounds: wrong owner or value; expected a function and an array of 64-bit integers}}
func.func private @bounds(index) attributes {kiln.bounds = 1}

// -----
module attributes {kiln.symbols = [#kiln.symbol<"batch", 1, 8>]} {
  // expected-error@+1 {{kiln.symbol: wrong argument; expected an index at the place of the module's symbol, got "tokens" at 0}}
  func.func private @forward(index {kiln.symbol = "tokens"})
}

// -----
// expected-error@+1 {{kiln.name: wrong value; expected a string}}
func.func private @name(tensor<4xf32> {kiln.name = 1})

// -----
// expected-error@+1 {{kiln.name: wrong value; expected a string}}
func.func private @result_name() -> (tensor<4xf32> {kiln.name = 1})
