// SPDX-License-Identifier: Apache-2.0
//
// A block of the first stage of Swin-T, with shifted windows.
#pragma once

#include "kiln/dsl.h"
#include "kiln/windows.h"

namespace specs {

struct SwinBlock : kiln::Model {
  static constexpr kiln::Names inputs{"image"}, outputs{"y"};
  kiln::SwinBlock<96, 3, 7, true> block{"block"};

  constexpr auto forward(kiln::Tensor<kiln::f32, 1, 56, 56, 96> image) const { return block(image); }
};

} // namespace specs
