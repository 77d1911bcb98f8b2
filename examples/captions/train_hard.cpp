// SPDX-License-Identifier: Apache-2.0
//
// The recurrent network with hard attention: a place is drawn for each word, also when it is measured.
#include "training.h"
#include <kiln/generator.h>

struct HardTraining : captions::RecurrentTraining<captions::TrainedRecurrent> {
  static constexpr auto entries() {
    constexpr kiln::Names inputs{"images", "sentences", "targets", "uniform"}, outputs{"objective", "loss"};
    return std::tuple{captions::training("train", &HardTraining::drawn, inputs, outputs),
                      kiln::entry("evaluate", &HardTraining::drawn, inputs, outputs)};
  }
};
KILN_MODEL(captions_train_hard, HardTraining)
