// SPDX-License-Identifier: Apache-2.0
#include "training.h"
#include <kiln/generator.h>

struct RecurrentTraining : captions::RecurrentTraining<captions::TrainedRecurrent> {
  static constexpr auto entries() { return captions::taught<RecurrentTraining>(); }
};
KILN_MODEL(captions_train_recurrent, RecurrentTraining)
