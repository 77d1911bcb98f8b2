// SPDX-License-Identifier: Apache-2.0
//
// The tensor names of released BERT and RoBERTa checkpoints in terms of the models with a masked-word head: the first
// checkpoints have other names for the norms, and all have additional tensors.
#pragma once

#include "support/checkpoint.h"

namespace specs {

inline const std::vector<support::Rule> bert_checkpoint{
    {"*.gamma", {"*.weight"}},
    {"*.beta", {"*.bias"}},
    {"bert.pooler.*", {}},
    {"cls.seq_relationship.*", {}},
    {"cls.predictions.decoder.*", {}}, // copies of the word embedding and the bias
    {"*.position_ids", {}},
};
inline const std::vector<support::Rule> roberta_checkpoint{
    {"roberta.pooler.*", {}},
    {"lm_head.decoder.*", {}},
    {"*.position_ids", {}},
};

} // namespace specs
