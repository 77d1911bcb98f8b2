// SPDX-License-Identifier: Apache-2.0
//
// The tiles of a product by wgmma, and which of them each cluster of blocks goes through.
#pragma once

#include "targets/cuda/WgmmaEpilogue.h"

namespace kiln::cuda {

class WgmmaTiles {
public:
  using Body = llvm::function_ref<tile::Values(const SumTile &, tile::ValueRange)>;

  WgmmaTiles(tile::Builder &b, const WgmmaShape &shape) : b(b), shape(shape) {}

  void begin(Reader &reader, const Contraction &contraction);

  /// For each tile of the block: carried = body(tile, carried).
  tile::Values each(tile::ValueRange carried, Body body);

  tile::Value rank; // of the block in its cluster
  tile::Value rowCount, columnCount;

private:
  int64_t clusterRows() const { return shape.bm * shape.cluster; }
  SumTile tileOf(tile::Value number);

  tile::Builder &b;
  const WgmmaShape &shape;
  tile::Value batchCount, down, across;
};

} // namespace kiln::cuda
