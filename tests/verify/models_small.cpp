// SPDX-License-Identifier: Apache-2.0
//
// Small variants of well-known models.
#include "models.h"

#include "models/bert/bert.h"
#include "models/gpt2/gpt2.h"
#include "models/vit/vit.h"
#include "transformer/transformer.h"

namespace specs {
inline constexpr BertShape small_bert{30522, 2, 48, 4};
inline constexpr kiln::Dim small_tokens{"tokens", 1, 40};
} // namespace specs

KILN_MODEL(small_gpt2, specs::Gpt2<3, 48, 4, specs::small_tokens, 97>)
KILN_MODEL(small_bert, specs::Bert<specs::small_bert>)
KILN_MODEL(small_vit, specs::Vit<specs::VitShape{2, 48, 4, 32, 8, 10}>)
KILN_MODEL(small_transformer, specs::Transformer<2, 48, 4, 96, 97>)
