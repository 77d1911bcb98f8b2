// SPDX-License-Identifier: Apache-2.0
//
// One call of an entry with random extents and inputs. Each tensor, the arena and each sequence's states are between
// guard pages and have exactly the required size.
#pragma once

#include "model.h"

#include <memory>
#include <random>
#include <string>

namespace kiln::realtime {

using Random = std::mt19937_64;

class Call {
public:
  /// Extents exceed their minimum by at most `span`.
  Call(Model &model, size_t entry, Guard guard, int64_t span, Random &random);

  /// The bytes of outputs and states after a run, and an error message, which is empty on success.
  struct Result {
    std::string mistake;
    std::vector<unsigned char> bytes;
  };
  /// Runs from zero states and the bound weights, with all other memory filled with `filling`. One thread runs as each
  /// worker in turn. The entry itself is called in a real-time context.
  Result run(unsigned char filling, uint32_t workers);
  /// For example "forward(tokens=3)".
  std::string words() const;

private:
  using Memory = std::unique_ptr<GuardedMemory>;
  struct Sequence {
    std::vector<int64_t> extents;
    Memory states;
  };
  struct Tensor {
    Memory memory;
    std::vector<unsigned char> given; // the contents of an input
  };

  void drawSequences(int64_t span, Random &random);
  Tensor draw(const kiln_argument_t &argument, Random &random) const;
  Result look(const GuardedMemory &arena) const;
  /// Returns the size of the states at the beginning of the arena.
  uint64_t arenaStates() const { return entry.is_batch ? 0 : entry.state_bytes; }
  int64_t valueOf(const kiln_extent_t &extent) const;
  Memory allocate(uint64_t bytes) const { return std::make_unique<GuardedMemory>(bytes, guard); }

  Model &model;
  size_t number;
  const kiln_entry_t &entry;
  Guard guard;
  std::vector<int64_t> extents;
  std::vector<Sequence> sequences; // of a batch
  std::vector<Tensor> tensors;
};

} // namespace kiln::realtime
