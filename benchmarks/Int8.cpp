// SPDX-License-Identifier: Apache-2.0
//
// Rows and weights of int8 beside f32: our own libraries of the same specs, for one instruction set each. "ratio" is
// f32's time over int8's.
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "contraction_f32_v3.hpp"
#include "contraction_f32_v4.hpp"
#include "contraction_int8_v3.hpp"
#include "contraction_int8_v4.hpp"
#include "contraction_int8_v4_vnni.hpp"
#include "gpt2_prefill_f32_v3.hpp"
#include "gpt2_prefill_f32_v4.hpp"
#include "gpt2_prefill_int8_v3.hpp"
#include "gpt2_prefill_int8_v4.hpp"
#include "gpt2_prefill_int8_v4_vnni.hpp"

namespace kiln::bench {

namespace {

/// A library's call with an arena, and the bytes of that.
struct Call {
  std::function<kiln_status_t(const kiln_call_t &)> run;
  std::function<std::size_t(int workers)> arenaBytes;
};

struct Shape {
  const char *name; // of the entry
  int rows, columns, depth;
};
constexpr Shape shapes[] = {{"qkv", 512, 2304, 768},  {"out", 512, 768, 768}, {"up", 512, 3072, 768},
                            {"down", 512, 768, 3072}, {"up", 128, 3072, 768}, {"up", 32, 3072, 768},
                            {"up", 8, 3072, 768},     {"up", 1, 3072, 768},   {"down", 1, 768, 3072}};

/// The call of a contraction's entry, by the shape's name.
#define KILN_PRODUCT(library, LIBRARY, entry, ENTRY)                                                                   \
  if (std::string_view(shape.name) == #entry)                                                                          \
    return {                                                                                                           \
        [=, &x](const kiln_call_t &call) { return library##_##entry(model->get(), &call, shape.rows, x.data(), y); },  \
        [](int workers) { return LIBRARY##_##ENTRY##_ARENA_BYTES(workers); }};
#define KILN_PRODUCTS(library, LIBRARY)                                                                                \
  Call library##Call(const Shape &shape, const std::vector<float> &x, float *y) {                                      \
    static const auto model = makeModel<library::Model>({LIBRARY##_WEIGHTS(KILN_BENCH_WEIGHT)});                       \
    KILN_PRODUCT(library, LIBRARY, qkv, QKV)                                                                           \
    KILN_PRODUCT(library, LIBRARY, out, OUT)                                                                           \
    KILN_PRODUCT(library, LIBRARY, up, UP)                                                                             \
    KILN_PRODUCT(library, LIBRARY, down, DOWN)                                                                         \
    std::abort();                                                                                                      \
  }
KILN_PRODUCTS(contraction_f32_v3, CONTRACTION_F32_V3)
KILN_PRODUCTS(contraction_f32_v4, CONTRACTION_F32_V4)
KILN_PRODUCTS(contraction_int8_v3, CONTRACTION_INT8_V3)
KILN_PRODUCTS(contraction_int8_v4, CONTRACTION_INT8_V4)
KILN_PRODUCTS(contraction_int8_v4_vnni, CONTRACTION_INT8_V4_VNNI)

constexpr int promptTokens = 512;

#define KILN_PREFILL(library, LIBRARY)                                                                                 \
  Call library##Call(const std::vector<std::int32_t> &tokens, float *logits) {                                         \
    static const auto model = makeModel<library::Model>({LIBRARY##_WEIGHTS(KILN_BENCH_WEIGHT)});                       \
    return {[=, &tokens](const kiln_call_t &call) {                                                                    \
              static constexpr std::int32_t last = promptTokens - 1;                                                   \
              return library##_forward(model->get(), &call, promptTokens, tokens.data(), &last, logits);               \
            },                                                                                                         \
            [](int workers) { return LIBRARY##_FORWARD_ARENA_BYTES(workers); }};                                       \
  }
KILN_PREFILL(gpt2_prefill_f32_v3, GPT2_PREFILL_F32_V3)
KILN_PREFILL(gpt2_prefill_f32_v4, GPT2_PREFILL_F32_V4)
KILN_PREFILL(gpt2_prefill_int8_v3, GPT2_PREFILL_INT8_V3)
KILN_PREFILL(gpt2_prefill_int8_v4, GPT2_PREFILL_INT8_V4)
KILN_PREFILL(gpt2_prefill_int8_v4_vnni, GPT2_PREFILL_INT8_V4_VNNI)

/// Of an instruction set: int8's and f32's.
struct Level {
  const char *name;
  decltype(&contraction_f32_v3Call) product, plainProduct;
  decltype(&gpt2_prefill_f32_v3Call) prefill, plainPrefill;
  bool (*isThere)();
};
constexpr Level levels[] = {{"x86-64-v3", contraction_int8_v3Call, contraction_f32_v3Call, gpt2_prefill_int8_v3Call,
                             gpt2_prefill_f32_v3Call, [] { return __builtin_cpu_supports("x86-64-v3") != 0; }},
                            {"x86-64-v4", contraction_int8_v4Call, contraction_f32_v4Call, gpt2_prefill_int8_v4Call,
                             gpt2_prefill_f32_v4Call, [] { return __builtin_cpu_supports("x86-64-v4") != 0; }},
                            {"x86-64-v4-vnni", contraction_int8_v4_vnniCall, contraction_f32_v4Call,
                             gpt2_prefill_int8_v4_vnniCall, gpt2_prefill_f32_v4Call, [] {
                               return __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vnni");
                             }}};

/// Outputs are not compared: those of int8 are others.
void compareCalls(benchmark::State &state, const Threads &threads, const Work &work, const Call &int8,
                  const Call &plain) {
  Contender first = ours(threads, int8.arenaBytes(threads.count()), {}, int8.run);
  Contender second = ours(threads, plain.arenaBytes(threads.count()), {}, plain.run);
  second.name = "f32";
  compare(state, threads, work, {first, second});
}

} // namespace

void registerAll() {
  for (int threads : {1, 2})
    for (const Level &level : levels) {
      if (!level.isThere())
        continue;
      const std::string family = std::string("int8/") + level.name + "/";
      for (const Shape &shape : shapes)
        add(family + std::to_string(shape.rows) + "x" + std::to_string(shape.columns) + "x" +
                std::to_string(shape.depth),
            threads, 31, [&level, &shape](benchmark::State &state, const Threads &pool) {
              const std::vector<float> x = makeInput("x", static_cast<std::size_t>(shape.rows) * shape.depth);
              std::vector<float> y(static_cast<std::size_t>(shape.rows) * shape.columns);
              compareCalls(state, pool, {Unit::GigaflopsPerSecond, 2.0 * shape.rows * shape.columns * shape.depth},
                           level.product(shape, x, y.data()), level.plainProduct(shape, x, y.data()));
            });
      add(family + "gpt2 prefill, 512 tokens", threads, 15, [&level](benchmark::State &state, const Threads &pool) {
        const std::vector<std::int32_t> tokens = makeTokens("tokens", promptTokens, 50257);
        std::vector<float> logits(50257);
        compareCalls(state, pool, {Unit::Milliseconds, 0}, level.prefill(tokens, logits.data()),
                     level.plainPrefill(tokens, logits.data()));
      });
    }
}

} // namespace kiln::bench
