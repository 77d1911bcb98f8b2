// SPDX-License-Identifier: Apache-2.0
//
// The matrix products of an attention (QK^T and PV) on CUDA cores, in f32. The lanes of a warp are arranged as four
// rows by eight keys or channels.
#pragma once

#include "targets/cuda/attention/Product.h"

namespace kiln::cuda {

class AttentionFmaProduct : public AttentionProduct {
public:
  using AttentionProduct::AttentionProduct;

  void begin(tile::Value thread) override;
  tile::Value row(int64_t i) override;
  tile::Value key(int64_t j) override;
  tile::Values scores(tile::Value queries, tile::Value keys) override;
  tile::Values add(const tile::Values &weights, tile::Value room, tile::Value values,
                   tile::ValueRange outputs) override;
  void store(tile::ValueRange outputs, tile::Value to) override;

private:
  tile::Value start(tile::Value address, tile::Value line, int64_t pitch);

  tile::Value firstRow; // the thread's first row
};

} // namespace kiln::cuda
