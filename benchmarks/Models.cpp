// SPDX-License-Identifier: Apache-2.0
//
// Whole models of one call each: a call of many, the first call, and loading the weights beside reading their file.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "bert_base.hpp"
#include "gpt2_prefill.hpp"
#include "transformer_base.hpp"
#include "vgg_features.hpp"
#include "vit_base.hpp"

#include "benchmarks/specs/gpt2_prefill.h"
#include "bert/bert.h"
#include "models/specs/vgg.h"
#include "transformer/transformer.h"
#include "vit/vit.h"

#include <map>

namespace kiln::bench {

namespace {

/// A model with its inputs and the place of its first output, all of which live as long as the program.
struct Subject {
  WholeModel problem;
  std::span<const float> output;
  double flops;
  std::string weightFile;
  /// A model with the weights of that file.
  std::function<std::shared_ptr<const void>()> load;
  std::size_t (*arenaBytes)(int workers);
  std::function<kiln_status_t(const void *model, const kiln_call_t &call)> call;
};

/// Writes the generator's weights beside the program; the name of the file.
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

/// The parts of a Subject that follow from the names of a generated library.
#define KILN_BENCH_SUBJECT(subject, name, NAME)                                                                        \
  (subject).weightFile = writeWeights(#name, {NAME##_WEIGHTS(KILN_BENCH_WEIGHT)});                                     \
  (subject).load = [path = (subject).weightFile] { return loadModel<name::Model>(path); };                             \
  (subject).arenaBytes = [](int workers) { return NAME##_FORWARD_ARENA_BYTES(workers); }

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

/// Calls of a loaded model.
Contender calls(const Subject &subject, const Threads &threads, std::shared_ptr<const void> model) {
  return ours(threads, subject.arenaBytes(threads.count()), subject.output,
              [&subject, model](const kiln_call_t &call) { return subject.call(model.get(), call); });
}

void runCalls(benchmark::State &state, const Threads &threads, const Subject &subject) {
  std::vector<Contender> contenders{calls(subject, threads, subject.load())};
  auto peers = installedPeers();
  for (const auto &peer : peers) {
    peer->setThreads(threads.count());
    for (Contender &way : peer->model(subject.problem))
      contenders.push_back(std::move(way));
  }
  compare(state, threads, {Unit::Milliseconds, 0, subject.flops}, std::move(contenders));
}

/// What `load` makes, run once: the seconds of the run alone.
Contender firstRun(const std::string &name, const std::function<std::function<void()>()> &load) {
  return {name, [load] { load()(); }, {}, [load] { return secondsOf(load()); }};
}

/// The first call of a model that was just loaded, and of a session that was just made.
void runFirstCall(benchmark::State &state, const Threads &threads, const Subject &subject) {
  std::vector<Contender> contenders{firstRun("ours", [&] { return calls(subject, threads, subject.load()).run; })};
  auto peers = installedPeers();
  for (const auto &peer : peers) {
    peer->setThreads(threads.count());
    for (const auto &load : peer->loads(subject.problem))
      contenders.push_back(firstRun(peer->name(), load));
  }
  compare(state, threads, {Unit::Milliseconds, 0, subject.flops}, std::move(contenders));
}

/// From the file to a model that can be called.
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
  static std::map<Subject (*)(), std::unique_ptr<Subject>> made; // only those that the filter leaves
  auto addRow = [](const std::string &name, int threads, int rounds, Subject (*make)(), Run run) {
    add(name, threads, rounds, [make, run](benchmark::State &state, const Threads &pool) {
      std::unique_ptr<Subject> &subject = made[make];
      if (!subject)
        subject = std::make_unique<Subject>(make());
      run(state, pool, *subject);
    });
  };
  constexpr std::pair<const char *, Subject (*)()> subjects[] = {{"bert base, 128", makeBert},
                                                                 {"vit b/16", makeVit},
                                                                 {"vgg-13 features", makeVgg},
                                                                 {"transformer base, 64 + 64", makeTransformer},
                                                                 {"gpt2 small prefill, 128", makePrefill<128>},
                                                                 {"gpt2 small prefill, 512", makePrefill<512>}};
  for (int threads : {1, 2})
    for (const auto &[title, make] : subjects)
      addRow(std::string("model/") + title, threads, 7, make, runCalls);
  for (const auto &[title, make] : subjects)
    addRow(std::string("model first call/") + title, 1, 3, make, runFirstCall);
  for (const auto &[title, make] : subjects)
    addRow(std::string("model load/") + title, 1, 3, make, runLoad);
}

} // namespace kiln::bench
