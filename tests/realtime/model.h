// SPDX-License-Identifier: Apache-2.0
//
// The library's model with weights of the counter. All memory that it allocates, for itself and for its packed weights,
// is between guard pages, and is read-only unless the model trains. For a library for several ranks or stages, it is
// the last one.
#pragma once

#include "equal_ranks.h"
#include "library.h"

#include "buffers.h"
#include <list>

namespace kiln::realtime {

using testing::Guard;
using testing::GuardedMemory;

/// Returns the size of the tensors that a file has for the library.
uint64_t bytesOfWeights(const kiln_descriptor_t &descriptor);

class Model {
public:
  /// Ends the program if the library returns an error.
  explicit Model(Guard guard);
  ~Model();
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;

  const void *get() const { return handle; }
  const kiln_body_t &body(size_t entry) const {
    const bool isCut = library.descriptor.stages > 1;
    return variant->bodies[entry + (isCut ? KILN_STAGE_ROLE_LAST * library.descriptor.entry_count : 0)];
  }
  /// The communicators for a call.
  const kiln_communicator_t *communicator() const { return ranks.get(); }
  const kiln_communicator_t *replicasCommunicator() const { return replicas.get(); }
  const kiln_communicator_t *stagesCommunicator() const { return stages.get(); }
  /// Restores the weights that a training has changed.
  void restore();
  /// Whether nothing was written around its memory.
  bool isIntact() const;

private:
  struct Block {
    Block(size_t bytes, Guard guard) : memory(bytes, guard) {}
    GuardedMemory memory;
    std::vector<unsigned char> bound; // the contents before the first call, for a model that trains
  };

  Guard guard;
  EqualRanks ranks, replicas, stages;
  std::list<Block> blocks;
  kiln_allocator_t allocator;
  void *handle = nullptr;
  const kiln_variant_t *variant = nullptr;
};

} // namespace kiln::realtime
