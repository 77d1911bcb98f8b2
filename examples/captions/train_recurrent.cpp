// SPDX-License-Identifier: Apache-2.0
//
// The training entries of the recurrent network: with soft attention; and with hard attention, where numbers in (0, 1)
// sample the locations, also for evaluation.
#include "training.h"
#include <kiln/generator.h>

struct RecurrentTraining : captions::RecurrentTraining<captions::TrainedRecurrent> {
  static constexpr auto entries() {
    constexpr kiln::Names inputs{"images", "sentences", "targets", "uniform"}, outputs{"objective", "loss"},
        undecayed{"*.bias", "*norm*", "attention.score"};
    return std::tuple_cat(
        captions::taught<RecurrentTraining>(undecayed),
        std::tuple{captions::training("train_hard", &RecurrentTraining::drawn, inputs, outputs, undecayed),
                   kiln::entry("evaluate_hard", &RecurrentTraining::drawn, inputs, outputs)});
  }
};
KILN_MODEL(captions_train_recurrent, RecurrentTraining)
