// SPDX-License-Identifier: Apache-2.0
#include "models.h"

#include "models/llama/llama.h"
#include "names/names.h"
#include "names/recurrent.h"
#include "names/transformer.h"
#include "specs/char_gpt.h"
#include "specs/half_blocks.h"

namespace recurrent_spec {
#include "../models/recurrent.cpp"
}
namespace half_blocks_spec {
#include "../models/half_blocks.cpp"
}
namespace tiny_gpt_spec {
#include "../models/tiny_gpt.cpp"
}
namespace tiny_translator_spec {
#include "../models/tiny_translator.cpp"
}
namespace attention_layers_spec {
#include "attention_layers/spec.cpp"
}
namespace hello_rnn_spec {
#include "hello_rnn/spec.cpp"
}
namespace llama_spec {
#include "llama/spec.cpp"
}
namespace names_fixed_spec {
#include "names/fixed.cpp"
}
namespace names_recurrent_spec {
#include "names/recurrent.cpp"
}
namespace names_transformer_spec {
#include "names/transformer.cpp"
}
