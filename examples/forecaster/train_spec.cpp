// SPDX-License-Identifier: Apache-2.0
#include "forecaster.h"
#include <kiln/generator.h>

struct ForecasterTraining : forecaster::Forecaster<32, 4, 2> {
  static constexpr auto entries() {
    return std::tuple{kiln::train("train", &ForecasterTraining::loss, {"values", "known", "future"}, {"loss"},
                                  kiln::AdamW{.weight_decay = 0.01})
                          .clipped(1)
                          .without_decay({"*.bias", "*norm*"}),
                      kiln::entry("evaluate", &ForecasterTraining::loss, {"values", "known", "future"}, {"loss"}),
                      kiln::entry("forecast", &ForecasterTraining::forecast, {"values", "known"}, {"quantiles"})};
  }
};
KILN_MODEL(forecaster_train, ForecasterTraining)
