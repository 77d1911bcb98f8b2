// SPDX-License-Identifier: Apache-2.0
//
// Storage formats that a spec states: to which parameters they apply, and what they do not change.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "digest.h"
#include "kiln/dsl.h"

namespace {

using namespace kiln;

static_assert(WeightType(f16).element == f16 && !WeightType(f16).storage.is_stated);
static_assert(WeightType(int8).element == f32 && WeightType(int8).storage == Storage(i8));
static_assert(int8.has_fewer_bits() && stored<bf16>.has_fewer_bits() && !stored<f32>.has_fewer_bits());
static_assert(stored<f32> != Storage() && find_storage("f32") == stored<f32> && !find_storage("int9").is_stated);

constexpr bool are_known(auto... storages) { return (is_known(storages) && ...); }
static_assert(are_known(Storage(), int8, stored<f16>, stored<bf16>, stored<f32>) && !is_known(Storage(i32)));

static_assert(int4<> == int4<32> && int4<64> != int4_zero<64> && int4<128>.has_fewer_bits());
static_assert(find_storage("int4") == int4<32> && find_storage("int4_zero<128>") == int4_zero<128>);
static_assert(are_known(int4<32>, int4_zero<64>) && !is_known(Storage(i4)) && !is_known(Storage(i4, 48)));

// A format with outer scales is found by its name, by its storage, and by the arrays of a placement.
constexpr bool is_format(const Storage &storage, std::string_view name, bool has_outer_scales) {
  return find_storage(name) == storage && name_of(storage) == name &&
         find_placed_format(storage.element, storage.group, has_outer_scales) == find_format(storage) &&
         !find_placed_format(storage.element, storage.group, !has_outer_scales);
}
static_assert(is_format(q8_0, "q8_0", false) && is_format(fp8_block, "fp8_block", false));
static_assert(is_format(nvfp4, "nvfp4", true) && is_format(q4_k, "q4_k", true) && is_format(q6_k, "q6_k", true));
static_assert(whole_of(int8) == 1 && whole_of(nvfp4) == 16 && whole_of(q4_k) == 256 && whole_of(q6_k) == 256);
static_assert(!is_known(Storage(ElementType::u4, 64)) && !is_known(Storage(ElementType::i6)) &&
              !is_known(Storage(i8, 64)));
static_assert(find_placed_format(i8, 4, true) == find_format(int8) && find_placed_format(i8, 0, false)->group == 0);

constexpr std::array<kiln_format_array_t, KILN_FORMAT_ARRAYS> arrays_of(const Storage &storage) {
  std::array<kiln_format_array_t, KILN_FORMAT_ARRAYS> arrays{};
  kiln_format_arrays(find_format(storage), storage.group, arrays.data());
  return arrays;
}
// 4 + 16 / 32 + 32 / 256, and 6 + 8 / 16 + 16 / 256 bits for each number.
static_assert(kiln_format_items(&arrays_of(q4_k)[0], 256) == 32 && arrays_of(q4_k)[0].bytes == 4);
static_assert(kiln_format_items(&arrays_of(q4_k)[1], 256) == 8 && arrays_of(q4_k)[1].bytes == 2);
static_assert(kiln_format_items(&arrays_of(q4_k)[2], 256) == 1 && arrays_of(q4_k)[2].bytes == 4);
static_assert(kiln_format_items(&arrays_of(q6_k)[0], 256) == 48 && arrays_of(q6_k)[0].bytes == 4);
static_assert(kiln_format_items(&arrays_of(q6_k)[1], 256) == 16 && arrays_of(q6_k)[1].bytes == 1);
static_assert(kiln_format_items(&arrays_of(q6_k)[2], 256) == 1 && arrays_of(q6_k)[2].bytes == 2);
static_assert(kiln_format_items(&arrays_of(nvfp4)[2], 256) == 1 && arrays_of(nvfp4)[2].bytes == 4); // of the output

static_assert(sizeof(WeightType) == 1 + sizeof(Storage) && sizeof(Storage) == 4, "no padding: see Storage");

constexpr Dim T{"tokens", 1, 16};

/// All layers whose weights may have the storage format; all other layers see `W` as f32.
template <WeightType W> struct Layers : Model {
  Embedding<50, 8, W> wte{"wte"};
  Stack<2, EncoderBlock<8, 2, 16, BlockOptions{.weight = W}>> h{"h"};
  Conv2d<1, 4, 3, Conv2dOptions{}, true, W> conv{"conv"};
  Lstm<8, 4, RecurrentOptions{.weight = W}> lstm{"lstm"};
  GruStep<4, 4, W> step{"step"};
  AdditiveAttention<4, 4, 2, W> look{"look"};
  constexpr auto forward(Tensor<i32, T> tokens, Tensor<f32, 8, 8, 1> image) const {
    auto x = h(wte(tokens));
    auto y = lstm(x).outputs;
    auto z = matmul(step(y, y), parameter<W, 4, 8>(x, "out"));
    return kiln::outputs(logits(z, wte), conv(image), look(y, y));
  }
};

std::map<std::string, std::string> storages_of(const Graph &graph) {
  std::map<std::string, std::string> storages;
  for (const Parameter &parameter : graph.parameters) {
    EXPECT_EQ(parameter.element, f32);
    if (parameter.storage.is_stated)
      storages[graph.name(parameter)] = name_of(parameter.storage);
  }
  return storages;
}

TEST(Storages, AreOfMatrices) {
  std::map<std::string, std::string> wanted;
  for (const char *name : {"wte.weight", "h.{}.self_attn.q_proj.weight", "h.{}.self_attn.k_proj.weight",
                           "h.{}.self_attn.v_proj.weight", "h.{}.self_attn.out_proj.weight", "h.{}.mlp.fc1.weight",
                           "h.{}.mlp.fc2.weight", "conv.weight", "lstm.weight_ih_l0", "lstm.weight_hh_l0",
                           "step.weight_ih", "step.weight_hh", "look.q_proj.weight", "look.k_proj.weight", "out"})
    wanted[name] = "int8";
  EXPECT_EQ(storages_of(trace<Layers<int8>>()), wanted);
  EXPECT_TRUE(storages_of(trace<Layers<f32>>()).empty());
}

TEST(Storages, ChangeNothingElse) {
  constexpr std::uint64_t at_compile_time = digest::of(trace<Layers<stored<f16>>>());
  Graph graph = trace<Layers<stored<f16>>>();
  EXPECT_EQ(digest::of(graph), at_compile_time);
  EXPECT_NE(digest::of(graph), digest::of(trace<Layers<stored<bf16>>>()));
  for (Parameter &parameter : graph.parameters)
    parameter.storage = {};
  EXPECT_EQ(digest::of(graph), digest::of(trace<Layers<f32>>()));
  // The checkpoint is the same.
  static_assert(weight_bytes<Layers<int8>>() == weight_bytes<Layers<f32>>());
}

} // namespace
