// SPDX-License-Identifier: Apache-2.0
//
// Of an attention by wgmma: which tiles of queries a block does, and the rings of stages through which tiles of keys
// and of values come to it. A stage has two barriers: `full` counts the bytes that have come, `empty` the warps that
// are done with them.
#pragma once

#include "targets/cuda/AttentionElements.h"
#include "targets/cuda/AttentionWgmma.h"
#include "targets/cuda/tile/Hopper.h"

namespace kiln::cuda {

/// The tile of queries that a block is at, and which keys it needs.
struct QueryTile {
  tile::Values batch; // coordinates
  tile::Value firstRow;
  tile::Value tiles; // of keys
  tile::Value plain; // of them, from the first one on, those that no limit touches
};

class AttentionRings {
public:
  AttentionRings(tile::Builder &b, Reader &reader, const Attention &attention, const AttentionMaps &maps,
                 const AttentionWgmmaShape &shape, AttentionElements &elements)
      : b(b), reader(reader), attention(attention), keyDim{maps.keys.keyDim, maps.values.keyDim}, shape(shape),
        elements(elements) {}

  /// Maps are the first parameters of the kernel. All threads of the block come here.
  void begin();

  /// The block's tiles, one after the other. `count`: of the tiles of keys so far; the body gives that behind it.
  using Body = llvm::function_ref<tile::Value(const QueryTile &tile, tile::Value count)>;
  void eachTile(Body body);
  /// By the warps that do not multiply: brings all tiles of keys and values.
  void produce();

  /// Of the tile of keys of that number, counted through all tiles of queries.
  struct Turn {
    tile::Value stage, parity;
  };
  Turn turnOf(tile::Value count);
  void awaitKeys(const Turn &turn) { tile::awaitPhase(b, full(ofKeys, turn.stage), turn.parity); }
  void awaitValues(const Turn &turn) { tile::awaitPhase(b, full(ofValues, turn.stage), turn.parity); }
  /// By all lanes of each warp that multiplies, when it is done with them.
  void releaseKeys(const Turn &turn) { tile::arriveWhereZero(b, empty(ofKeys, turn.stage), lane); }
  void releaseValues(const Turn &turn) { tile::arriveWhereZero(b, empty(ofValues, turn.stage), lane); }
  /// Addresses in shared memory.
  tile::Value keysAt(tile::Value stage) { return at(shape.keysAt(), stage, shape.keyBytes()); }
  tile::Value valuesAt(tile::Value stage) { return at(shape.valuesAt(), stage, shape.valueBytes()); }

  tile::Value thread, lane, warp;
  tile::Value shared, start; // shared memory, as a pointer and as a number
  tile::Value rowCount, keyCount;

private:
  enum Ring { ofKeys, ofValues };

  QueryTile tileOf(tile::Value number);
  void countKeys(QueryTile &tile);
  tile::Value queryTiles();
  tile::Value barrier(int64_t number, tile::Value stage) {
    return b.add(barriers, b.mul(b.add(stage, b.integer(number * shape.stages)), b.integer(8)));
  }
  tile::Value full(Ring ring, tile::Value stage) { return barrier(2 * ring, stage); }
  tile::Value empty(Ring ring, tile::Value stage) { return barrier(2 * ring + 1, stage); }
  tile::Value at(int64_t first, tile::Value stage, int64_t bytes) {
    return b.add(start, b.add(b.integer(first), b.mul(stage, b.integer(bytes))));
  }
  void bring(const QueryTile &tile, tile::Value number, const Turn &turn);
  /// What a ring's copies are of.
  struct Source {
    mlir::linalg::GenericOp op;
    unsigned number, channelLoop;
    tile::Values loops; // but for the channels
    tile::Value map;
    int64_t channels;
  };
  void bring(Ring ring, const Turn &turn, const Source &source, tile::Value to);
  tile::Values coordinatesOf(Ring ring, const Source &source, int64_t channel);

  tile::Builder &b;
  Reader &reader;
  const Attention &attention;
  unsigned keyDim[2]; // of each ring's tensor
  AttentionWgmmaShape shape;
  AttentionElements &elements;
  tile::Value mapK, mapV, barriers, batchCount;
};

} // namespace kiln::cuda
