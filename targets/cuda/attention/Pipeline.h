// SPDX-License-Identifier: Apache-2.0
//
// The software pipeline of an attention: when queries, keys and values are copied to shared memory, and when threads
// wait for them.
#pragma once

#include "targets/cuda/attention/Elements.h"
#include "targets/cuda/attention/TileShape.h"

namespace kiln::cuda {

/// The position of a thread in its block.
struct AttentionPlace {
  tile::Value thread, member; // index in the block, and in the thread group that shares tiles
  tile::Value firstRow, rowCount;
  tile::Values batch;               // coordinates
  tile::Value queries, threadGroup; // shared memory: the block's queries, the thread group's tiles
};

class AttentionTiles {
public:
  using FirstKey = std::function<tile::Value(tile::Value iteration)>;

  AttentionTiles(tile::Builder &b, ElementEmitter &emitter, const StageContext &first, const Attention &attention,
                 const AttentionShape &shape, AttentionElements &elements);
  virtual ~AttentionTiles() = default;

  /// `firstKey`: returns the first key of an iteration's tile.
  void begin(const AttentionPlace &place, FirstKey firstKey);
  /// Starts the copies of the first tiles and of the queries, which have arrived after the next barrier and
  /// awaitKeys().
  virtual void start() = 0;
  /// Wait for the tiles of an iteration, and release tiles that are no longer needed. `next`: the first key of the
  /// next iteration's tile.
  virtual tile::Value awaitKeys(tile::Value iteration) = 0;
  virtual void releaseKeys(tile::Value next) = 0;
  virtual tile::Value awaitValues(tile::Value iteration) = 0;
  virtual void releaseValues(tile::Value next) = 0;
  /// Whether a diagnostic has been emitted.
  virtual bool isBroken() const { return keys.isBroken() || values.isBroken(); }

protected:
  virtual void beginQueries() {}

  tile::Builder &b;
  const Attention &attention;
  AttentionShape shape;
  AttentionElements &elements;
  HeadTile keys, values;
  AttentionPlace place;
  FirstKey firstKey;
};

/// Creates the implementation that the shape selects: for CUDA cores one tile of keys and one of values, where one is
/// copied while the other one is in use; for tensor cores multistage buffers of both.
std::unique_ptr<AttentionTiles> createAttentionTiles(tile::Builder &b, ElementEmitter &emitter,
                                                     const StageContext &first, const Attention &attention,
                                                     const AttentionShape &shape, AttentionElements &elements);

} // namespace kiln::cuda
