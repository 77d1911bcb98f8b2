// SPDX-License-Identifier: Apache-2.0
//
// The tiles of a GEMM by wgmma, and which of them each cluster of blocks computes.
#pragma once

#include "targets/cuda/gemm/WgmmaEpilogue.h"

namespace kiln::cuda {

class WgmmaTiles {
public:
  using Body = llvm::function_ref<tile::Values(const SumTile &, tile::ValueRange)>;

  WgmmaTiles(tile::Builder &b, const WgmmaShape &shape) : b(b), shape(shape) {}

  void begin(ElementEmitter &emitter, const Contraction &contraction);

  /// Computes carried = body(tile, carried) for each tile of the block.
  tile::Values each(tile::ValueRange carried, Body body);

  tile::Value rank; // the block's rank in its cluster
  tile::Value rowCount, columnCount;

private:
  int64_t clusterRows() const { return shape.bm * shape.cluster; }
  SumTile tileOf(tile::Value number);

  tile::Builder &b;
  const WgmmaShape &shape;
  tile::Value batchCount, down, across;
};

} // namespace kiln::cuda
