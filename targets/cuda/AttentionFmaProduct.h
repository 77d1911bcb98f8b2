// SPDX-License-Identifier: Apache-2.0
//
// An attention's products on CUDA cores, in f32. A warp's lanes are eight along the keys or channels and four along the
// rows.
#pragma once

#include "targets/cuda/AttentionProduct.h"

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

  tile::Value firstRow; // of the thread's rows
};

} // namespace kiln::cuda
