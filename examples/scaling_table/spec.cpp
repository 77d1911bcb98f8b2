// SPDX-License-Identifier: Apache-2.0
//
// All models of the table as entries of one library, which is never given weights: its header has the requirements of
// each.
#include "models.h"
#include <kiln/generator.h>

/// A model as a part of another: its parameters have the part's name as a prefix.
template <class M> struct Part : kiln::Layer<Part<M>> {
  using kiln::Layer<Part>::Layer;
  M model;
  constexpr auto forward(const kiln::tensor auto &...inputs) const { return model.forward(inputs...); }
};

struct ScalingTable : kiln::Model {
  using Source = kiln::Tensor<kiln::i32, specs::source_256>;
  using Target = kiln::Tensor<kiln::i32, specs::target_256>;
  using Ids = specs::BertIds;
  using Lengths = specs::BertLengths;
  template <kiln::Dim T> using Context = kiln::Tensor<kiln::i32, T>;
  static constexpr kiln::Dim C1 = scaling::C1, C2 = scaling::C2;

  Part<specs::TransformerBase> transformer_base_{"transformer_base"};
  Part<specs::TransformerLarge> transformer_large_{"transformer_large"};
  Part<specs::BertBase> bert_base_{"bert_base"};
  Part<specs::BertLarge> bert_large_{"bert_large"};
  Part<scaling::XlnetLarge> xlnet_large_{"xlnet_large"};
  Part<scaling::RobertaLarge> roberta_large_{"roberta_large"};
  Part<scaling::Gpt2<12, 768, 12>> gpt2_small_{"gpt2_small"};
  Part<scaling::Gpt2<24, 1024, 16>> gpt2_medium_{"gpt2_medium"};
  Part<scaling::Gpt2<36, 1280, 20>> gpt2_large_{"gpt2_large"};
  Part<scaling::Gpt2<48, 1600, 25>> gpt2_xl_{"gpt2_xl"};
  Part<scaling::Megatron<40, 1536, 16>> megatron_1b_{"megatron_1b"};
  Part<scaling::Megatron<54, 1920, 20>> megatron_2b_{"megatron_2b"};
  Part<scaling::Megatron<64, 2304, 24>> megatron_4b_{"megatron_4b"};
  Part<scaling::Megatron<72, 3072, 32>> megatron_8b_{"megatron_8b"};
  Part<scaling::Gpt3> gpt3_{"gpt3"};
  Part<scaling::MegatronTuring> megatron_turing_{"megatron_turing"};

  constexpr auto transformer_base(Source source, Target target) const { return transformer_base_(source, target); }
  constexpr auto transformer_large(Source source, Target target) const { return transformer_large_(source, target); }
  constexpr auto bert_base(Ids tokens, Ids segments, Lengths lengths) const {
    return bert_base_(tokens, segments, lengths);
  }
  constexpr auto bert_large(Ids tokens, Ids segments, Lengths lengths) const {
    return bert_large_(tokens, segments, lengths);
  }
  constexpr auto xlnet_large(Ids tokens, Ids segments, Lengths lengths) const {
    return xlnet_large_(tokens, segments, lengths);
  }
  constexpr auto roberta_large(Ids tokens, Lengths lengths) const { return roberta_large_(tokens, lengths); }
  constexpr auto gpt2_small(Context<C1> tokens) const { return gpt2_small_(tokens); }
  constexpr auto gpt2_medium(Context<C1> tokens) const { return gpt2_medium_(tokens); }
  constexpr auto gpt2_large(Context<C1> tokens) const { return gpt2_large_(tokens); }
  constexpr auto gpt2_xl(Context<C1> tokens) const { return gpt2_xl_(tokens); }
  constexpr auto megatron_1b(Context<C1> tokens) const { return megatron_1b_(tokens); }
  constexpr auto megatron_2b(Context<C1> tokens) const { return megatron_2b_(tokens); }
  constexpr auto megatron_4b(Context<C1> tokens) const { return megatron_4b_(tokens); }
  constexpr auto megatron_8b(Context<C1> tokens) const { return megatron_8b_(tokens); }
  constexpr auto gpt3(Context<C2> tokens) const { return gpt3_(tokens); }
  constexpr auto megatron_turing(Context<C2> tokens) const { return megatron_turing_(tokens); }

  static constexpr auto entries() {
    using Self = ScalingTable;
    return std::tuple{kiln::entry("transformer_base", &Self::transformer_base),
                      kiln::entry("transformer_large", &Self::transformer_large),
                      kiln::entry("bert_base", &Self::bert_base),
                      kiln::entry("bert_large", &Self::bert_large),
                      kiln::entry("xlnet_large", &Self::xlnet_large),
                      kiln::entry("roberta_large", &Self::roberta_large),
                      kiln::entry("gpt2_small", &Self::gpt2_small),
                      kiln::entry("gpt2_medium", &Self::gpt2_medium),
                      kiln::entry("gpt2_large", &Self::gpt2_large),
                      kiln::entry("gpt2_xl", &Self::gpt2_xl),
                      kiln::entry("megatron_1b", &Self::megatron_1b),
                      kiln::entry("megatron_2b", &Self::megatron_2b),
                      kiln::entry("megatron_4b", &Self::megatron_4b),
                      kiln::entry("megatron_8b", &Self::megatron_8b),
                      kiln::entry("gpt3", &Self::gpt3),
                      kiln::entry("megatron_turing", &Self::megatron_turing)};
  }
};

KILN_MODEL(scaling_table, ScalingTable)
