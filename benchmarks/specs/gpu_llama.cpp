// SPDX-License-Identifier: Apache-2.0
//
// A decoder with 1.1 billion weights in bf16, with a KV cache.
#include <kiln/generator.h>
#include <models/llama/llama.h>

template <std::int64_t In, std::int64_t Out>
using Bf16Linear = kiln::Linear<In, Out, false, kiln::WeightOrder::out_in, kiln::bf16>;
using GpuLlama = llama::Writer<llama::tiny_llama_1b, Bf16Linear, kiln::bf16>;
KILN_MODEL(gpu_llama, GpuLlama)
