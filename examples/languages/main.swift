// SPDX-License-Identifier: Apache-2.0
// main WEIGHTS: Swift imports scorer.h by the module.modulemap next to it.
import CScorer

struct Failure: Error { let words: String }

var message = kiln_error_t()

func check(_ status: kiln_status_t) throws {
  if status != KILN_OK {
    let words = withUnsafePointer(to: &message.message) { UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self) }
    throw Failure(words: String(cString: words))
  }
}

var model: OpaquePointer?
try check(scorer_create(nil, &model, &message))
print("refused:", scorer_bind_weights(model, "nowhere.safetensors", &message) != KILN_OK)
try check(scorer_bind_weights(model, CommandLine.arguments[1], &message))

var call = kiln_call_t()
call.arena_bytes = scorer_forward_arena_bytes(1)
try check(scorer_allocate_memory(model, call.arena_bytes, &call.arena, &message))
let x: [Float] = [1, 2, 3, 4, 1, 0, 0, 0]
var y = [Float](repeating: 0, count: 6)
try check(scorer_forward(model, &call, 2, x, &y))
print("scores:", y.map { String(Int($0)) }.joined(separator: " "))
scorer_release_memory(model, call.arena)
scorer_destroy(model)
