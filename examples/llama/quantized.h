// SPDX-License-Identifier: Apache-2.0
//
// Quantised checkpoints of Llama: maps the tensor names of GGUF, GPTQ and AWQ files to those of models/llama/llama.h,
// for the run time's readers.
#pragma once

#include "checkpoint.h"
#include "config.h"
#include "support/writer.h"

namespace llama {

/// Returns llama.cpp's names. llama.cpp permutes the rows of queries and keys for its order of rotary positions.
inline std::vector<kiln_rename_t> gguf_renames(const Shape &shape) {
  const auto heads = static_cast<std::uint32_t>(shape.heads),
             shared = static_cast<std::uint32_t>(shape.key_value_heads);
  return {{.from = "token_embd.weight", .to = "model.embed_tokens.weight"},
          {.from = "output_norm.weight", .to = "model.norm.weight"},
          {.from = "output.weight", .to = "lm_head.weight", .flags = KILN_RENAME_OPTIONAL}, // not if it is tied
          {.from = "blk.*.attn_norm.weight", .to = "model.layers.*.input_layernorm.weight"},
          {.from = "blk.*.ffn_norm.weight", .to = "model.layers.*.post_attention_layernorm.weight"},
          {.from = "blk.*.attn_q.weight", .to = "model.layers.*.self_attn.q_proj.weight", .rotary_heads = heads},
          {.from = "blk.*.attn_k.weight", .to = "model.layers.*.self_attn.k_proj.weight", .rotary_heads = shared},
          {.from = "blk.*.attn_v.weight", .to = "model.layers.*.self_attn.v_proj.weight"},
          {.from = "blk.*.attn_output.weight", .to = "model.layers.*.self_attn.o_proj.weight"},
          {.from = "blk.*.ffn_gate.weight", .to = "model.layers.*.mlp.gate_proj.weight"},
          {.from = "blk.*.ffn_up.weight", .to = "model.layers.*.mlp.up_proj.weight"},
          {.from = "blk.*.ffn_down.weight", .to = "model.layers.*.mlp.down_proj.weight"}};
}

/// Additional tensors of some GPTQ and AWQ files: frequencies of positions, and biases that are zero.
inline const std::vector<kiln_rename_t> quantized_renames{
    {.from = "*.rotary_emb.inv_freq", .flags = KILN_RENAME_OPTIONAL},
    {.from = "*_proj.bias", .flags = KILN_RENAME_ZEROS | KILN_RENAME_OPTIONAL}};

/// Returns the quantisation format of a config.json that was checked.
inline kiln_quantization_t quantization_of(const support::Config &how) {
  if (how.text("quant_method", "") == "awq")
    return KILN_AWQ;
  return how.text("checkpoint_format", "gptq") == "gptq_v2" ? KILN_GPTQ_V2 : KILN_GPTQ;
}

/// Binds the checkpoint of the options; `config` is its config.
template <class Model>
void bind(Model &model, support::Session &session, const support::TalkOptions &options, const support::Config &config,
          const Shape &shape) {
  kiln_error_t *const error = &session.error;
  if (!options.gguf.empty())
    return session.check(model.bind_gguf(options.gguf.c_str(), gguf_renames(shape), error));
  const std::string path = support::weight_file(options.folder);
  if (!config.has("quantization_config"))
    return support::bind_checkpoint(model, session, path, specs::llama_checkpoint);
  session.check(
      model.bind_quantized(path.c_str(), quantization_of(config.at("quantization_config")), quantized_renames, error));
}

} // namespace llama
