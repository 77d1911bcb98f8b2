// SPDX-License-Identifier: Apache-2.0
//
// The character GPT of examples/char_gpt with the entries for a page: no batches, and only the last logits.
#include "char_gpt/model.h"
#include <kiln/generator.h>

struct Writer : CharGpt<4, 128, 4> {
  static constexpr auto entries() {
    return std::tuple{kiln::entry("prefill", &Writer::prefill, {"tokens"}, {"logits"}),
                      kiln::entry("decode", &Writer::decode, {"token"}, {"logits"})};
  }
};

KILN_MODEL(writer, Writer)
