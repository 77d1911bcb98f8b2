// SPDX-License-Identifier: Apache-2.0
//
// The table of how Transformers grew, compared with their specs: parameters and operations counted by the compiler,
// bytes of weights by the width of a number, the arena of one call from the library's header, the KV cache of a
// context.
#include "models.h"
#include "scaling_table.h"

#include <cmath>
#include <cstdio>

namespace {

struct Row {
  const char *name;
  int layers, width, heads;
  double printed; // millions of parameters
  std::int64_t parameters, flops;
  std::size_t cache, arena; // bytes
};

/// `decoding` layers have a KV cache, each with 2 rows of f32 per token of the context.
template <class M>
Row row(const char *name, int layers, int width, int heads, double printed, std::initializer_list<kiln::Extent> extents,
        int context, int decoding, std::size_t arena) {
  return {name,
          layers,
          width,
          heads,
          printed,
          kiln::parameters<M>(),
          kiln::flops<M>(extents) / context,
          sizeof(float) * 2 * static_cast<std::size_t>(decoding) * static_cast<std::size_t>(width) *
              static_cast<std::size_t>(context),
          arena};
}

/// Prints three digits of a number with its unit.
void print(double value, int width = 6) {
  if (value == 0) {
    std::printf(" %*s ", width, "-");
    return;
  }
  const char *unit = "";
  for (const char *next : {"k", "M", "G", "T"})
    if (value >= 999.5) {
      value /= 1000;
      unit = next;
    }
  std::printf(" %*.*f%-1s", width, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, unit);
}

} // namespace

int main() {
  const Row rows[] = {
      row<specs::TransformerBase>("Transformer-Base", 12, 512, 8, 65, {{"source_tokens", 256}, {"target_tokens", 256}},
                                  512, 6, SCALING_TABLE_TRANSFORMER_BASE_ARENA_BYTES(1)),
      row<specs::TransformerLarge>("Transformer-Large", 12, 1024, 16, 213,
                                   {{"source_tokens", 256}, {"target_tokens", 256}}, 512, 6,
                                   SCALING_TABLE_TRANSFORMER_LARGE_ARENA_BYTES(1)),
      row<specs::BertBase>("BERT-Base", 12, 768, 12, 110, {{"batch", 1}, {"tokens", 512}}, 512, 0,
                           SCALING_TABLE_BERT_BASE_ARENA_BYTES(1)),
      row<specs::BertLarge>("BERT-Large", 24, 1024, 16, 340, {{"batch", 1}, {"tokens", 512}}, 512, 0,
                            SCALING_TABLE_BERT_LARGE_ARENA_BYTES(1)),
      row<scaling::XlnetLarge>("XLNet-Large", 24, 1024, 16, 340, {{"batch", 1}, {"tokens", 512}}, 512, 0,
                               SCALING_TABLE_XLNET_LARGE_ARENA_BYTES(1)),
      row<scaling::RobertaLarge>("RoBERTa", 24, 1024, 16, 355, {{"batch", 1}, {"tokens", 512}}, 512, 0,
                                 SCALING_TABLE_ROBERTA_LARGE_ARENA_BYTES(1)),
      row<scaling::Gpt2<12, 768, 12>>("GPT-2", 12, 768, 12, 117, {{"context_1024", 1024}}, 1024, 12,
                                      SCALING_TABLE_GPT2_SMALL_ARENA_BYTES(1)),
      row<scaling::Gpt2<24, 1024, 16>>("GPT-2", 24, 1024, 16, 345, {{"context_1024", 1024}}, 1024, 24,
                                       SCALING_TABLE_GPT2_MEDIUM_ARENA_BYTES(1)),
      row<scaling::Gpt2<36, 1280, 20>>("GPT-2", 36, 1280, 20, 762, {{"context_1024", 1024}}, 1024, 36,
                                       SCALING_TABLE_GPT2_LARGE_ARENA_BYTES(1)),
      row<scaling::Gpt2<48, 1600, 25>>("GPT-2", 48, 1600, 25, 1500, {{"context_1024", 1024}}, 1024, 48,
                                       SCALING_TABLE_GPT2_XL_ARENA_BYTES(1)),
      row<scaling::Megatron<40, 1536, 16>>("Megatron-LM", 40, 1536, 16, 1200, {{"context_1024", 1024}}, 1024, 40,
                                           SCALING_TABLE_MEGATRON_1B_ARENA_BYTES(1)),
      row<scaling::Megatron<54, 1920, 20>>("Megatron-LM", 54, 1920, 20, 2500, {{"context_1024", 1024}}, 1024, 54,
                                           SCALING_TABLE_MEGATRON_2B_ARENA_BYTES(1)),
      row<scaling::Megatron<64, 2304, 24>>("Megatron-LM", 64, 2304, 24, 4200, {{"context_1024", 1024}}, 1024, 64,
                                           SCALING_TABLE_MEGATRON_4B_ARENA_BYTES(1)),
      row<scaling::Megatron<72, 3072, 32>>("Megatron-LM", 72, 3072, 32, 8300, {{"context_1024", 1024}}, 1024, 72,
                                           SCALING_TABLE_MEGATRON_8B_ARENA_BYTES(1)),
      row<scaling::Gpt3>("GPT-3", 96, 12288, 96, 175000, {{"context_2048", 2048}}, 2048, 96,
                         SCALING_TABLE_GPT3_ARENA_BYTES(1)),
      row<scaling::MegatronTuring>("Megatron-Turing NLG", 105, 20480, 128, 530000, {{"context_2048", 2048}}, 2048, 105,
                                   SCALING_TABLE_MEGATRON_TURING_ARENA_BYTES(1)),
  };
  std::printf("%-20s %6s %6s %5s | %7s %7s %6s | %7s | %5s %5s %5s %5s | %5s %5s\n", "", "layers", "width", "heads",
              "printed", "ours", "differ", "flops/t", "f32", "f16", "int8", "int4", "cache", "arena");
  for (const Row &row : rows) {
    std::printf("%-20s %6d %6d %5d |", row.name, row.layers, row.width, row.heads);
    const double ours = static_cast<double>(row.parameters);
    print(row.printed * 1e6);
    print(ours);
    std::printf(" %+5.1f%% |", 100 * (ours / (row.printed * 1e6) - 1));
    print(static_cast<double>(row.flops));
    std::printf(" |");
    for (double bytes : {4.0, 2.0, 1.0, 0.5})
      print(bytes * ours, 4);
    std::printf(" |");
    print(static_cast<double>(row.cache), 4);
    print(static_cast<double>(row.arena), 4);
    std::printf("\n");
  }
}
