// SPDX-License-Identifier: Apache-2.0
// The forecaster of examples/forecaster, with an entry that returns its gradients.
#include "forecaster/forecaster.h"
#include <kiln/generator.h>

struct TestedForecaster : forecaster::Forecaster<32, 4, 2> {
  static constexpr auto entries() {
    constexpr kiln::Names inputs{"values", "known", "future"};
    return std::tuple{kiln::entry("forecast", &TestedForecaster::forecast, {"values", "known"}, {"quantiles"}),
                      kiln::gradients("gradients", &TestedForecaster::loss, inputs, {"loss"}),
                      kiln::train("train", &TestedForecaster::loss, inputs, {"loss"}, kiln::AdamW{.weight_decay = 0.01})
                          .clipped(0.1)
                          .without_decay({"*.bias", "*norm*"})};
  }
};

KILN_MODEL(tested_forecaster, TestedForecaster)
