// SPDX-License-Identifier: Apache-2.0
//
// One call of an entry, with extents and inputs that are drawn. Each tensor, the arena and each sequence's states lie
// between forbidden pages and are exactly as large as they must be.
#pragma once

#include "model.h"

#include <memory>
#include <random>
#include <string>

namespace kiln::realtime {

using Random = std::mt19937_64;

class Call {
public:
  /// Extents are at most `span` above their least.
  Call(Model &model, size_t entry, Guard guard, int64_t span, Random &random);

  /// What a run is to show of outputs and states, and what went wrong, or nothing.
  struct Result {
    std::string mistake;
    std::vector<unsigned char> bytes;
  };
  /// From states of zeros and the weights that were bound, with all other memory filled. One thread is each of the
  /// workers in turn. The entry itself is called in a real-time context.
  Result run(unsigned char filling, uint32_t workers);
  /// "forward(tokens=3)"
  std::string words() const;

private:
  using Memory = std::unique_ptr<GuardedMemory>;
  struct Sequence {
    std::vector<int64_t> extents;
    Memory states;
  };
  struct Tensor {
    Memory memory;
    std::vector<unsigned char> given; // of an input
  };

  void drawSequences(int64_t span, Random &random);
  Tensor draw(const kiln_argument_t &argument, Random &random) const;
  Result look(const GuardedMemory &arena) const;
  /// Bytes of states at the beginning of the arena.
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
