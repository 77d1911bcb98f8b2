// SPDX-License-Identifier: Apache-2.0
#include "training.h"
#include <kiln/generator.h>

struct TransformerTraining : captions::TransformerTraining<captions::TrainedTransformer> {
  static constexpr auto entries() { return captions::taught<TransformerTraining>({"*.bias", "*norm*"}); }
};
KILN_MODEL(captions_train_transformer, TransformerTraining)
