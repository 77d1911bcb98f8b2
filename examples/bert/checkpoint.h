// SPDX-License-Identifier: Apache-2.0
//
// How published checkpoints of BERT and RoBERTa call what the models with a masked-word head have: the first ones have
// other names for the norms, and all hold parts that these models lack.
#pragma once

#include "support/checkpoint.h"

namespace specs {

inline const std::vector<support::Rule> bert_checkpoint{
    {"*.gamma", {"*.weight"}},
    {"*.beta", {"*.bias"}},
    {"bert.pooler.*", {}},
    {"cls.seq_relationship.*", {}},
    {"cls.predictions.decoder.*", {}}, // the word embedding and the bias once more
    {"*.position_ids", {}},
};
inline const std::vector<support::Rule> roberta_checkpoint{
    {"roberta.pooler.*", {}},
    {"lm_head.decoder.*", {}},
    {"*.position_ids", {}},
};

} // namespace specs
