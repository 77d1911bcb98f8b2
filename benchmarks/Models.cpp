// SPDX-License-Identifier: Apache-2.0
//
// Whole models: a call in steady state, the first call, and loading the weights compared with reading their file.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "bert_base.hpp"
#include "gpt2_prefill.hpp"
#include "gpt2_writer.hpp"
#include "swin_block.hpp"
#include "transformer_base.hpp"
#include "vgg_features.hpp"
#include "vit_base.hpp"

#include "benchmarks/specs/gpt2_prefill.h"
#include "benchmarks/specs/swin_block.h"
#include "models/bert/bert.h"
#include "models/vit/vit.h"
#include "tests/models/specs/vgg.h"
#include "transformer/transformer.h"

#include <cstring>
#include <map>

namespace kiln::bench {

namespace {

/// A model with its inputs and its first output; static lifetime.
struct Subject {
  WholeModel problem;
  std::span<const float> output;
  double flops = 0;
  double bytes = 0; // minimum bytes that a call reads, for memory-bound models
  std::string weightFile;
  /// Creates a model with the weights of that file.
  std::function<std::shared_ptr<const void>()> load;
  std::size_t (*arenaBytes)(int workers);
  std::function<kiln_status_t(const void *model, const kiln_call_t &call)> call;
};

/// Writes the generator's weights next to the program; returns the name of the file.
std::string writeWeights(const std::string &name, const std::vector<testing::WeightShape> &weights) {
  std::string path = std::string(KILN_BENCH_FOLDER) + "/" + name + ".safetensors";
  testing::WeightImage image(weights);
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (!file || std::fwrite(image.data(), 1, image.size(), file.get()) != image.size()) {
    std::fprintf(stderr, "error: cannot write \"%s\"\n", path.c_str());
    std::exit(1);
  }
  return path;
}

template <class Model> std::shared_ptr<const void> loadModel(const std::string &path) {
  auto model = std::make_shared<Model>();
  kiln_error_t error;
  if (model->bind(path.c_str(), &error) != KILN_OK) {
    std::fprintf(stderr, "error: %s\n", error.message);
    std::exit(1);
  }
  return model;
}

/// Sets the members of a Subject that depend on the names of a generated library and its entry.
#define KILN_BENCH_SUBJECT(subject, name, NAME) KILN_BENCH_SUBJECT_OF(subject, name, NAME, FORWARD)
#define KILN_BENCH_SUBJECT_OF(subject, name, NAME, ENTRY)                                                              \
  (subject).weightFile = writeWeights(#name, {NAME##_WEIGHTS(KILN_BENCH_WEIGHT)});                                     \
  (subject).load = [path = (subject).weightFile] { return loadModel<name::Model>(path); };                             \
  (subject).arenaBytes = [](int workers) { return NAME##_##ENTRY##_ARENA_BYTES(workers); }

template <class Model> decltype(std::declval<const Model &>().get()) handleOf(const void *model) {
  return static_cast<const Model *>(model)->get();
}

Subject makeBert() {
  constexpr int batch = 1, tokens = 128;
  static const std::vector<std::int32_t> ids = makeTokens("tokens", tokens, 30522),
                                         segments = makeTokens("segments", tokens, 2), lengths(batch, tokens);
  static std::vector<float> hidden(static_cast<std::size_t>(tokens) * 768), pooled(768);
  Subject subject;
  subject.problem = {"bert_base",
                     {{"tokens", {1, tokens}, ids, {}}, {"segments", {1, tokens}, segments, {}}},
                     {"hidden", {1, tokens, 768}}};
  subject.output = hidden;
  subject.flops = static_cast<double>(flops<specs::BertBase>({{"batch", batch}, {"tokens", tokens}}));
  KILN_BENCH_SUBJECT(subject, bert_base, BERT_BASE);
  subject.call = [](const void *model, const kiln_call_t &call) {
    return bert_base_forward(handleOf<bert_base::Model>(model), &call, batch, tokens, ids.data(), segments.data(),
                             lengths.data(), hidden.data(), pooled.data());
  };
  return subject;
}

Subject makeVit() {
  static const std::vector<float> image = makeInput("image", std::size_t{3} * 224 * 224);
  static std::vector<float> logits(1000);
  Subject subject;
  subject.problem = {"vit_base", {{"image", {3, 224, 224}, {}, image}}, {"logits", {1, 1000}}};
  subject.output = logits;
  subject.flops = static_cast<double>(flops<specs::VitBase>({}));
  KILN_BENCH_SUBJECT(subject, vit_base, VIT_BASE);
  subject.call = [](const void *model, const kiln_call_t &call) {
    return vit_base_forward(handleOf<vit_base::Model>(model), &call, image.data(), logits.data());
  };
  return subject;
}

Subject makeVgg() {
  static const std::vector<float> image = makeInput("image", std::size_t{3} * 224 * 224);
  static std::vector<float> features(std::size_t{512} * 7 * 7);
  Subject subject;
  subject.problem = {"vgg_features", {{"image", {1, 3, 224, 224}, {}, image}}, {"features", {1, 512, 7, 7}}};
  subject.output = features;
  subject.flops = static_cast<double>(flops<specs::Vgg13Features>({}));
  KILN_BENCH_SUBJECT(subject, vgg_features, VGG_FEATURES);
  subject.call = [](const void *model, const kiln_call_t &call) {
    return vgg_features_forward(handleOf<vgg_features::Model>(model), &call, image.data(), features.data());
  };
  return subject;
}

Subject makeSwin() {
  constexpr std::size_t count = std::size_t{56} * 56 * 96;
  static const std::vector<float> image = makeInput("image", count);
  static std::vector<float> y(count);
  Subject subject;
  subject.problem = {"swin_block", {{"image", {1, 56, 56, 96}, {}, image}}, {"y", {1, 56, 56, 96}}};
  subject.output = y;
  subject.flops = static_cast<double>(flops<specs::SwinBlock>({}));
  KILN_BENCH_SUBJECT(subject, swin_block, SWIN_BLOCK);
  subject.call = [](const void *model, const kiln_call_t &call) {
    return swin_block_forward(handleOf<swin_block::Model>(model), &call, image.data(), y.data());
  };
  return subject;
}

Subject makeTransformer() {
  constexpr int tokens = 64, vocabulary = 37000;
  static const std::vector<std::int32_t> source = makeTokens("source", tokens, vocabulary),
                                         target = makeTokens("target", tokens, vocabulary);
  static std::vector<float> logits(static_cast<std::size_t>(tokens) * vocabulary),
      memory(static_cast<std::size_t>(tokens) * 512);
  Subject subject;
  subject.problem = {"transformer_base",
                     {{"source", {1, tokens}, source, {}}, {"target", {1, tokens}, target, {}}},
                     {"logits", {1, tokens, vocabulary}}};
  subject.output = logits;
  subject.flops =
      static_cast<double>(flops<specs::TransformerBase>({{"source_tokens", tokens}, {"target_tokens", tokens}}));
  KILN_BENCH_SUBJECT(subject, transformer_base, TRANSFORMER_BASE);
  subject.call = [](const void *model, const kiln_call_t &call) {
    return transformer_base_forward(handleOf<transformer_base::Model>(model), &call, tokens, tokens, source.data(),
                                    target.data(), logits.data(), memory.data());
  };
  return subject;
}

template <int Tokens> Subject makePrefill() {
  constexpr int vocabulary = 50257;
  static const std::vector<std::int32_t> ids = makeTokens("tokens", Tokens, vocabulary), last{Tokens - 1};
  static std::vector<float> logits(vocabulary);
  Subject subject;
  subject.problem = {
      "gpt2_prefill_" + std::to_string(Tokens), {{"tokens", {1, Tokens}, ids, {}}}, {"logits", {1, vocabulary}}};
  subject.output = logits;
  subject.flops = static_cast<double>(flops<specs::Gpt2Prefill>({{"tokens", Tokens}}));
  KILN_BENCH_SUBJECT(subject, gpt2_prefill, GPT2_PREFILL);
  subject.call = [](const void *model, const kiln_call_t &call) {
    return gpt2_prefill_forward(handleOf<gpt2_prefill::Model>(model), &call, Tokens, ids.data(), last.data(),
                                logits.data());
  };
  return subject;
}

/// Decodes one token after 511 tokens whose keys and values are cached.
Subject makeDecode() {
  constexpr int vocabulary = 50257, context = 512, width = 768, layers = 12;
  constexpr std::size_t each = std::size_t{context - 1} * width;
  static const std::vector<std::int32_t> token = makeTokens("token", 1, vocabulary);
  static const std::vector<float> past = makeInput("past", 2 * layers * each);
  static std::vector<float> logits(vocabulary);
  Subject subject;
  subject.problem = {"gpt2_decode", {{"token", {1, 1}, token, {}}}, {"logits", {1, vocabulary}}};
  for (std::size_t i = 0; i < std::size_t{2 * layers}; ++i)
    subject.problem.inputs.push_back(
        {"past_" + std::to_string(i), {1, context - 1, width}, {}, std::span(past).subspan(i * each, each)});
  subject.output = logits;
  // All weights except the unused table rows, and the KV cache.
  subject.bytes =
      static_cast<double>(sizeof(float)) * (GPT2_WRITER_PARAMETERS - 1023.0 * width + 2.0 * layers * context * width);
  KILN_BENCH_SUBJECT_OF(subject, gpt2_writer, GPT2_WRITER, DECODE);
  subject.call = [](const void *model, const kiln_call_t &call) {
    // A new arena is filled with the past, keys of all layers, then values; the first row tells whether it has been.
    struct State {
      std::size_t offset, stride;
    };
#define KILN_BENCH_STATE(name, type, copies, offset, stride, ...) {offset, stride},
    constexpr State states[] = {GPT2_WRITER_STATES(KILN_BENCH_STATE)};
    auto *const arena = static_cast<char *>(call.arena);
    auto *const handle = handleOf<gpt2_writer::Model>(model);
    if (std::memcmp(arena + states[0].offset, past.data(), width * sizeof(float)) != 0) {
      if (const kiln_status_t status = gpt2_writer_begin_session(handle, arena, call.error))
        return status;
      for (std::size_t i = 0; i < std::size_t{2 * layers}; ++i)
        std::memcpy(arena + states[i % 2].offset + i / 2 * states[i % 2].stride, &past[i * each], each * sizeof(float));
    }
    return gpt2_writer_decode(handle, &call, context, token.data(), logits.data());
  };
  return subject;
}

/// The contender of a loaded model.
Contender calls(const Subject &subject, const Threads &threads, std::shared_ptr<const void> model) {
  return ours(threads, subject.arenaBytes(threads.count()), subject.output,
              [&subject, model](const kiln_call_t &call) { return subject.call(model.get(), call); });
}

Work limitedWork(const Subject &subject) {
  Work work{Unit::Milliseconds, 0};
  (subject.bytes > 0 ? work.bytesRead : work.flops) = subject.bytes > 0 ? subject.bytes : subject.flops;
  return work;
}

void runCalls(benchmark::State &state, const Threads &threads, const Subject &subject) {
  std::vector<Contender> contenders{calls(subject, threads, subject.load())};
  auto peers = installedPeers();
  for (const auto &peer : peers) {
    peer->setThreads(threads.count());
    for (Contender &way : peer->model(subject.problem))
      contenders.push_back(std::move(way));
  }
  compare(state, threads, limitedWork(subject), std::move(contenders));
}

/// Times a single run of the function that `load` returns, without `load` itself.
Contender firstRun(const std::string &name, const std::function<std::function<void()>()> &load) {
  return {name, [load] { load()(); }, {}, [load] { return secondsOf(load()); }};
}

/// The first call after loading a model or creating a session.
void runFirstCall(benchmark::State &state, const Threads &threads, const Subject &subject) {
  std::vector<Contender> contenders{firstRun("ours", [&] { return calls(subject, threads, subject.load()).run; })};
  auto peers = installedPeers();
  for (const auto &peer : peers) {
    peer->setThreads(threads.count());
    for (const auto &load : peer->loads(subject.problem))
      contenders.push_back(firstRun(peer->name(), load));
  }
  compare(state, threads, limitedWork(subject), std::move(contenders));
}

/// The time from the file to a model that can be called.
void runLoad(benchmark::State &state, const Threads &threads, const Subject &subject) {
  std::vector<Contender> contenders{{"ours", [&subject] { subject.load(); }, {}}};
  auto peers = installedPeers();
  for (const auto &peer : peers) {
    peer->setThreads(threads.count());
    for (const auto &load : peer->loads(subject.problem))
      contenders.push_back({peer->name(), [load] { load(); }, {}});
  }
  Work work{Unit::Milliseconds, 0};
  work.file = subject.weightFile;
  compare(state, threads, work, std::move(contenders));
}

} // namespace

void registerAll() {
  using Run = void (*)(benchmark::State &, const Threads &, const Subject &);
  static std::map<Subject (*)(), std::unique_ptr<Subject>> made; // only those that the filter selects
  auto addRow = [](const std::string &name, int threads, int rounds, Subject (*make)(), Run run) {
    add(name, threads, rounds, [make, run](benchmark::State &state, const Threads &pool) {
      std::unique_ptr<Subject> &subject = made[make];
      if (!subject)
        subject = std::make_unique<Subject>(make());
      run(state, pool, *subject);
    });
  };
  struct Row {
    const char *title;
    Subject (*make)();
    bool loads = true; // false if the file is that of another row
  };
  constexpr Row rows[] = {{"bert base, 128", makeBert},
                          {"vit b/16", makeVit},
                          {"vgg-13 features", makeVgg},
                          {"swin block, 56 x 56 x 96", makeSwin, false},
                          {"transformer base, 64 + 64", makeTransformer},
                          {"gpt2 small prefill, 128", makePrefill<128>},
                          {"gpt2 small prefill, 512", makePrefill<512>},
                          {"gpt2 small decode, 512", makeDecode, false}};
  for (int threads : {1, 2})
    for (const Row &row : rows)
      addRow(std::string("model/") + row.title, threads, 7, row.make, runCalls);
  for (const Row &row : rows)
    if (row.loads)
      addRow(std::string("model first call/") + row.title, 1, 3, row.make, runFirstCall);
  for (const Row &row : rows)
    if (row.loads)
      addRow(std::string("model load/") + row.title, 1, 3, row.make, runLoad);
}

} // namespace kiln::bench
