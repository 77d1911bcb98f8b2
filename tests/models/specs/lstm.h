// SPDX-License-Identifier: Apache-2.0
//
// One LSTM layer with PyTorch's weight names. It returns all outputs and the last state.
#pragma once

#include "kiln/dsl.h"

namespace specs {

inline constexpr kiln::Dim lstm_steps{"steps", 1, 128}, lstm_batch{"batch", 1, 8};

template <std::int64_t In, std::int64_t Hidden> struct LstmLayer : kiln::Model {
  static constexpr kiln::Names inputs{"x"}, outputs{"y", "h", "c"};
  kiln::Lstm<In, Hidden> lstm{"lstm"};

  constexpr auto forward(kiln::Tensor<kiln::f32, lstm_steps, lstm_batch, In> x) const {
    auto [y, last] = lstm(x);
    return kiln::outputs(y, std::get<0>(last), std::get<1>(last));
  }
};

using Lstm256 = LstmLayer<256, 256>;
static_assert(kiln::parameters<Lstm256>() == 4 * 256 * (256 + 256 + 2));

} // namespace specs
