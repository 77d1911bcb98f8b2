// SPDX-License-Identifier: Apache-2.0
//
// The software pipeline of attention by wgmma: which query tiles a block computes, and the multistage buffers through
// which key and value tiles arrive. A stage has two mbarriers: `full` counts the bytes that have arrived, `empty` the
// warps that have finished reading.
#pragma once

#include "targets/cuda/attention/Elements.h"
#include "targets/cuda/attention/WgmmaKernel.h"
#include "targets/cuda/tile/Hopper.h"

namespace kiln::cuda {

/// A query tile of the block, and the keys that it needs.
struct QueryTile {
  tile::Values batch; // coordinates
  tile::Value firstRow;
  tile::Value firstKey; // of the first key tile
  tile::Value tiles;    // number of key tiles
  tile::Value plain;    // number of leading key tiles that no mask limit touches
};

class WgmmaPipeline {
public:
  WgmmaPipeline(tile::Builder &b, ElementEmitter &emitter, const Attention &attention, const AttentionMaps &maps,
                const AttentionWgmmaShape &shape, AttentionElements &elements)
      : b(b), emitter(emitter), attention(attention), keyDim{maps.keys.keyDim, maps.values.keyDim}, shape(shape),
        elements(elements) {}

  /// Initialises addresses and barriers. The tensor maps are the first parameters of the kernel. All threads of the
  /// block must call this.
  void begin();

  /// Iterates over the block's query tiles. `count`: the key tiles processed so far; the body returns the count after
  /// its tile.
  using Body = llvm::function_ref<tile::Value(const QueryTile &tile, tile::Value count)>;
  void eachTile(Body body);
  /// Loads all key and value tiles. Only the producer warps call this.
  void produce();

  /// The pipeline stage and the barrier parity of a key tile, whose number counts through all query tiles.
  struct PipelineState {
    tile::Value stage, parity;
  };
  PipelineState pipelineStateOf(tile::Value count);
  void awaitKeys(const PipelineState &slot) { tile::awaitPhase(b, full(ofKeys, slot.stage), slot.parity); }
  void awaitValues(const PipelineState &slot) { tile::awaitPhase(b, full(ofValues, slot.stage), slot.parity); }
  /// All lanes of each consumer warp call these when the warp has finished reading the tile.
  void releaseKeys(const PipelineState &slot) { tile::arriveWhereZero(b, empty(ofKeys, slot.stage), lane); }
  void releaseValues(const PipelineState &slot) { tile::arriveWhereZero(b, empty(ofValues, slot.stage), lane); }
  /// Return shared-memory addresses.
  tile::Value keysAt(tile::Value stage) { return at(shape.keysAt(), stage, shape.keyBytes()); }
  tile::Value valuesAt(tile::Value stage) { return at(shape.valuesAt(), stage, shape.valueBytes()); }

  tile::Value thread, lane, warp;
  tile::Value shared, start; // shared memory, as a pointer and as an integer
  tile::Value rowCount, keyCount;

private:
  enum Buffer { ofKeys, ofValues };

  QueryTile tileOf(tile::Value number);
  void countKeys(QueryTile &tile);
  tile::Value queryTiles();
  tile::Value barrier(int64_t number, tile::Value stage) {
    return b.add(barriers, b.mul(b.add(stage, b.integer(number * shape.stages)), b.integer(8)));
  }
  tile::Value full(Buffer buffer, tile::Value stage) { return barrier(2 * buffer, stage); }
  tile::Value empty(Buffer buffer, tile::Value stage) { return barrier(2 * buffer + 1, stage); }
  tile::Value at(int64_t first, tile::Value stage, int64_t bytes) {
    return b.add(start, b.add(b.integer(first), b.mul(stage, b.integer(bytes))));
  }
  void bring(const QueryTile &tile, tile::Value number, const PipelineState &slot);
  /// The source of the copies into a multistage buffer.
  struct Source {
    mlir::linalg::GenericOp op;
    unsigned number, channelLoop;
    tile::Values loops; // the channel loop is not set
    tile::Value map;
    int64_t channels;
  };
  void bring(Buffer buffer, const PipelineState &slot, const Source &source, tile::Value to);
  tile::Values coordinatesOf(Buffer buffer, const Source &source, int64_t channel);

  tile::Builder &b;
  ElementEmitter &emitter;
  const Attention &attention;
  unsigned keyDim[2]; // for each buffer, the tensor's dimension over keys
  AttentionWgmmaShape shape;
  AttentionElements &elements;
  tile::Value mapK, mapV, barriers, batchCount;
};

} // namespace kiln::cuda
