// SPDX-License-Identifier: Apache-2.0
//
// int8 activations and weights compared with f32: generated libraries of the same specs, one per instruction set.
// "ratio" is the f32 time over the int8 time. In the rows that end with "compared with peers", for the widest
// instruction set, it is the time of ONNX Runtime's dynamic quantisation over ours.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "bert_base_f32_v3.hpp"
#include "bert_base_f32_v4.hpp"
#include "bert_base_int8_v3.hpp"
#include "bert_base_int8_v4.hpp"
#include "bert_base_int8_v4_vnni.hpp"
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

/// A library's call with an arena, and the arena's size.
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

/// The call of the entry of a GEMM, by the shape's name.
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

/// A whole model's call and its outputs, the first of which the peers compute, too.
struct ModelCall {
  Call call;
  std::span<const float> output;
};

/// Inputs and outputs of GPT-2 small's prefill; static lifetime.
struct Prompt {
  static constexpr int count = 512, vocabulary = 50257;
  static constexpr std::int32_t last = count - 1;
  std::vector<std::int32_t> tokens = makeTokens("tokens", count, vocabulary);
  std::vector<float> logits = std::vector<float>(vocabulary);
  WholeModel problem{"gpt2_prefill_512", {{"tokens", {1, count}, tokens, {}}}, {"logits", {1, vocabulary}}};

  static Prompt &get() {
    static Prompt prompt;
    return prompt;
  }
};

/// Inputs and outputs of BERT-base for one sequence.
struct Sentence {
  static constexpr int batch = 1, count = 128, width = 768;
  static constexpr std::int32_t length = count;
  std::vector<std::int32_t> tokens = makeTokens("tokens", count, 30522), segments = makeTokens("segments", count, 2);
  std::vector<float> hidden = std::vector<float>(std::size_t{count} * width), pooled = std::vector<float>(width);
  WholeModel problem{"bert_base",
                     {{"tokens", {1, count}, tokens, {}}, {"segments", {1, count}, segments, {}}},
                     {"hidden", {1, count, width}}};

  static Sentence &get() {
    static Sentence sentence;
    return sentence;
  }
};

#define KILN_MODEL_CALL(library, LIBRARY, Inputs, output, ...)                                                         \
  ModelCall library##Call() {                                                                                          \
    static const auto model = makeModel<library::Model>({LIBRARY##_WEIGHTS(KILN_BENCH_WEIGHT)});                       \
    static Inputs &in = Inputs::get();                                                                                 \
    return {{[](const kiln_call_t &call) { return library##_forward(model->get(), &call, __VA_ARGS__); },              \
             [](int workers) { return LIBRARY##_FORWARD_ARENA_BYTES(workers); }},                                      \
            in.output};                                                                                                \
  }
#define KILN_PREFILL(library, LIBRARY)                                                                                 \
  KILN_MODEL_CALL(library, LIBRARY, Prompt, logits, Prompt::count, in.tokens.data(), &Prompt::last, in.logits.data())
KILN_PREFILL(gpt2_prefill_f32_v3, GPT2_PREFILL_F32_V3)
KILN_PREFILL(gpt2_prefill_f32_v4, GPT2_PREFILL_F32_V4)
KILN_PREFILL(gpt2_prefill_int8_v3, GPT2_PREFILL_INT8_V3)
KILN_PREFILL(gpt2_prefill_int8_v4, GPT2_PREFILL_INT8_V4)
KILN_PREFILL(gpt2_prefill_int8_v4_vnni, GPT2_PREFILL_INT8_V4_VNNI)
#define KILN_BERT(library, LIBRARY)                                                                                    \
  KILN_MODEL_CALL(library, LIBRARY, Sentence, hidden, Sentence::batch, Sentence::count, in.tokens.data(),              \
                  in.segments.data(), &Sentence::length, in.hidden.data(), in.pooled.data())
KILN_BERT(bert_base_f32_v3, BERT_BASE_F32_V3)
KILN_BERT(bert_base_f32_v4, BERT_BASE_F32_V4)
KILN_BERT(bert_base_int8_v3, BERT_BASE_INT8_V3)
KILN_BERT(bert_base_int8_v4, BERT_BASE_INT8_V4)
KILN_BERT(bert_base_int8_v4_vnni, BERT_BASE_INT8_V4_VNNI)

/// An instruction set: the calls with int8 and with f32.
struct Level {
  const char *name;
  decltype(&contraction_f32_v3Call) product, plainProduct;
  decltype(&bert_base_f32_v3Call) prefill, plainPrefill, bert, plainBert;
  bool (*isThere)();
};
constexpr Level levels[] = {
    {"x86-64-v3", contraction_int8_v3Call, contraction_f32_v3Call, gpt2_prefill_int8_v3Call, gpt2_prefill_f32_v3Call,
     bert_base_int8_v3Call, bert_base_f32_v3Call, [] { return __builtin_cpu_supports("x86-64-v3") != 0; }},
    {"x86-64-v4", contraction_int8_v4Call, contraction_f32_v4Call, gpt2_prefill_int8_v4Call, gpt2_prefill_f32_v4Call,
     bert_base_int8_v4Call, bert_base_f32_v4Call, [] { return __builtin_cpu_supports("x86-64-v4") != 0; }},
    {"x86-64-v4-vnni", contraction_int8_v4_vnniCall, contraction_f32_v4Call, gpt2_prefill_int8_v4_vnniCall,
     gpt2_prefill_f32_v4Call, bert_base_int8_v4_vnniCall, bert_base_f32_v4Call,
     [] { return __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vnni"); }}};

/// Outputs are not compared, since int8 results differ from f32 results.
void compareCalls(benchmark::State &state, const Threads &threads, const Work &work, const Call &int8,
                  const Call &plain) {
  Contender first = ours(threads, int8.arenaBytes(threads.count()), {}, int8.run);
  Contender second = ours(threads, plain.arenaBytes(threads.count()), {}, plain.run);
  second.name = "f32";
  compare(state, threads, work, {first, second});
}

/// Both quantise weights and activations to int8, with different rounding.
void compareWithPeers(benchmark::State &state, const Threads &threads, const ModelCall &int8,
                      const WholeModel &problem) {
  std::vector<Contender> contenders{ours(threads, int8.call.arenaBytes(threads.count()), int8.output, int8.call.run)};
  auto peers = installedPeers();
  for (const auto &peer : peers) {
    peer->setThreads(threads.count());
    for (Contender &way : peer->quantisedModel(problem))
      contenders.push_back(std::move(way));
  }
  Work work{Unit::Milliseconds, 0};
  work.tolerance = 0.1;
  compare(state, threads, work, std::move(contenders));
}

void addProducts(const std::string &family, int threads, const Level &level) {
  for (const Shape &shape : shapes)
    add(family + std::to_string(shape.rows) + "x" + std::to_string(shape.columns) + "x" + std::to_string(shape.depth),
        threads, 31, [&level, &shape](benchmark::State &state, const Threads &pool) {
          const std::vector<float> x = makeInput("x", static_cast<std::size_t>(shape.rows) * shape.depth);
          std::vector<float> y(static_cast<std::size_t>(shape.rows) * shape.columns);
          compareCalls(state, pool, {Unit::GigaflopsPerSecond, 2.0 * shape.rows * shape.columns * shape.depth},
                       level.product(shape, x, y.data()), level.plainProduct(shape, x, y.data()));
        });
}

void addModel(const std::string &name, int threads, decltype(Level::bert) int8, decltype(Level::bert) plain) {
  add(name, threads, 15, [int8, plain](benchmark::State &state, const Threads &pool) {
    compareCalls(state, pool, {Unit::Milliseconds, 0}, int8().call, plain().call);
  });
}

void addWithPeers(const std::string &name, int threads, decltype(Level::bert) int8, const WholeModel &problem) {
  add(name + ", compared with peers", threads, 15, [int8, &problem](benchmark::State &state, const Threads &pool) {
    compareWithPeers(state, pool, int8(), problem);
  });
}

} // namespace

void registerAll() {
  for (int threads : {1, 2}) {
    const Level *widest = nullptr;
    for (const Level &level : levels) {
      if (!level.isThere())
        continue;
      widest = &level;
      const std::string family = std::string("int8/") + level.name + "/";
      addProducts(family, threads, level);
      addModel(family + "gpt2 prefill, 512", threads, level.prefill, level.plainPrefill);
      addModel(family + "bert base, 128", threads, level.bert, level.plainBert);
    }
    if (!widest)
      continue;
    addWithPeers("int8/gpt2 prefill, 512", threads, widest->prefill, Prompt::get().problem);
    addWithPeers("int8/bert base, 128", threads, widest->bert, Sentence::get().problem);
  }
}

} // namespace kiln::bench
