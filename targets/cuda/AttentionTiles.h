// SPDX-License-Identifier: Apache-2.0
//
// When an attention's queries, keys and values come to shared memory, and when threads wait for them.
#pragma once

#include "targets/cuda/AttentionElements.h"
#include "targets/cuda/AttentionShape.h"

namespace kiln::cuda {

/// Where a thread is in its block.
struct AttentionPlace {
  tile::Value thread, member; // its number in the block, and in the team that shares tiles
  tile::Value firstRow, rowCount;
  tile::Values batch;        // coordinates
  tile::Value queries, team; // in shared memory: the block's queries, the team's tiles
};

class AttentionTiles {
public:
  using FirstKey = std::function<tile::Value(tile::Value turn)>;

  AttentionTiles(tile::Builder &b, Reader &reader, const StepContext &first, const Attention &attention,
                 const AttentionShape &shape, AttentionElements &elements);
  virtual ~AttentionTiles() = default;

  /// `firstKey`: of the tile of each turn.
  void begin(const AttentionPlace &place, FirstKey firstKey);
  /// Asks for the first tiles and brings the queries, which are there behind the next barrier and keys().
  virtual void start() = 0;
  /// The tiles of a turn, once they are there, and what is done when they are not needed any more. `next`: the first
  /// key of the next turn's tile.
  virtual tile::Value awaitKeys(tile::Value turn) = 0;
  virtual void releaseKeys(tile::Value next) = 0;
  virtual tile::Value awaitValues(tile::Value turn) = 0;
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

/// For what the shape says: for CUDA cores one tile of keys and one of values, of which one is on its way while the
/// other one is computed with; for tensor cores stages of both.
std::unique_ptr<AttentionTiles> createAttentionTiles(tile::Builder &b, Reader &reader, const StepContext &first,
                                                     const Attention &attention, const AttentionShape &shape,
                                                     AttentionElements &elements);

} // namespace kiln::cuda
