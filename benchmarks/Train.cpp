// SPDX-License-Identifier: Apache-2.0
//
// Training steps: loss, gradients and AdamW, with a learning rate of 0, so that every step is the same.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "bert_train.hpp"
#include "gpt2_train.hpp"
#include "lstm_train.hpp"
#include "vit_train.hpp"

#include "benchmarks/specs/bert_train.h"
#include "benchmarks/specs/gpt2_train.h"
#include "benchmarks/specs/lstm_train.h"
#include "benchmarks/specs/vit_train.h"

#include <map>

namespace kiln::bench {

namespace {

constexpr float rate = 0;
constexpr std::int32_t first = 1;

struct Subject {
  WholeModel problem;
  double flops = 0; // of the loss; the gradients take twice as many
  float loss = 0;
  std::function<std::size_t(int workers)> arenaBytes;
  std::function<kiln_status_t(const kiln_call_t &call)> call;
};
using Made = std::shared_ptr<Subject>;

template <int Batch, int Length, bool Recomputes> Made makeGpt2() {
  constexpr int vocabulary = 50257;
  static const std::vector<std::int32_t> ids = makeTokens("tokens", std::size_t{Batch} * Length, vocabulary),
                                         targets = makeTokens("targets", std::size_t{Batch} * Length, vocabulary);
  static const auto model = makeModel<gpt2_train::Model>({GPT2_TRAIN_WEIGHTS(KILN_BENCH_WEIGHT)});
  auto subject = std::make_shared<Subject>();
  subject->problem = {"gpt2_train_" + std::to_string(Batch),
                      {{"tokens", {Batch, Length}, ids, {}}, {"targets", {Batch, Length}, targets, {}}},
                      {"loss", {1}}};
  subject->flops = static_cast<double>(flops<specs::Gpt2Train>({{"batch", Batch}, {"length", Length}}, 2));
  subject->arenaBytes = [](int workers) {
    return Recomputes ? GPT2_TRAIN_TRAIN_AGAIN_ARENA_BYTES(workers) : GPT2_TRAIN_TRAIN_ARENA_BYTES(workers);
  };
  subject->call = [to = subject.get()](const kiln_call_t &call) {
    return (Recomputes ? gpt2_train_train_again : gpt2_train_train)(model->get(), &call, Batch, Length, ids.data(),
                                                                    targets.data(), &rate, &first, &to->loss);
  };
  return subject;
}

Made makeBert() {
  constexpr int batch = 8, tokens = 128;
  static const std::vector<std::int32_t> ids = makeTokens("tokens", std::size_t{batch} * tokens, 30522),
                                         segments = makeTokens("segments", std::size_t{batch} * tokens, 2),
                                         lengths(batch, tokens);
  static const auto model = makeModel<bert_train::Model>({BERT_TRAIN_WEIGHTS(KILN_BENCH_WEIGHT)});
  auto subject = std::make_shared<Subject>();
  subject->problem = {
      "bert_train", {{"tokens", {batch, tokens}, ids, {}}, {"segments", {batch, tokens}, segments, {}}}, {"loss", {1}}};
  subject->flops = static_cast<double>(flops<specs::BertTrain>({}, 1));
  subject->arenaBytes = [](int workers) { return BERT_TRAIN_TRAIN_ARENA_BYTES(workers); };
  subject->call = [to = subject.get()](const kiln_call_t &call) {
    return bert_train_train(model->get(), &call, ids.data(), segments.data(), lengths.data(), &rate, &first, &to->loss);
  };
  return subject;
}

Made makeVit() {
  constexpr int batch = 4;
  static const std::vector<float> images = makeInput("images", std::size_t{batch} * 3 * 224 * 224);
  static const std::vector<std::int32_t> labels = makeTokens("labels", batch, 1000);
  static const auto model = makeModel<vit_train::Model>({VIT_TRAIN_WEIGHTS(KILN_BENCH_WEIGHT)});
  auto subject = std::make_shared<Subject>();
  subject->problem = {
      "vit_train", {{"images", {batch, 3, 224, 224}, {}, images}, {"labels", {batch}, labels, {}}}, {"loss", {1}}};
  subject->flops = static_cast<double>(flops<specs::VitTrain>({}, 1));
  subject->arenaBytes = [](int workers) { return VIT_TRAIN_TRAIN_ARENA_BYTES(workers); };
  subject->call = [to = subject.get()](const kiln_call_t &call) {
    return vit_train_train(model->get(), &call, images.data(), labels.data(), &rate, &first, &to->loss);
  };
  return subject;
}

Made makeLstm() {
  static const std::vector<float> x = makeInput("x", std::size_t{128} * 8 * 256);
  static const auto model = makeModel<lstm_train::Model>({LSTM_TRAIN_WEIGHTS(KILN_BENCH_WEIGHT)});
  auto subject = std::make_shared<Subject>();
  subject->problem = {"lstm_train", {{"x", {128, 8, 256}, {}, x}}, {"loss", {1}}};
  subject->flops = static_cast<double>(flops<specs::LstmTrain>({}, 1));
  subject->arenaBytes = [](int workers) { return LSTM_TRAIN_TRAIN_ARENA_BYTES(workers); };
  subject->call = [to = subject.get()](const kiln_call_t &call) {
    return lstm_train_train(model->get(), &call, x.data(), &rate, &first, &to->loss);
  };
  return subject;
}

void runSteps(benchmark::State &state, const Threads &threads, const Subject &subject) {
  std::vector<Contender> contenders{
      ours(threads, subject.arenaBytes(threads.count()), {&subject.loss, 1}, subject.call)};
  auto peers = installedPeers();
  for (const auto &peer : peers) {
    peer->setThreads(threads.count());
    if (peer->name() == "pytorch")
      for (Contender &way : peer->model(subject.problem))
        contenders.push_back(std::move(way));
  }
  Work work{Unit::Milliseconds, 0};
  work.flops = 3 * subject.flops;
  compare(state, threads, work, std::move(contenders));
}

} // namespace

void registerAll() {
  struct Row {
    const char *title;
    Made (*make)();
    int rounds;
  };
  constexpr Row rows[] = {{"gpt2 small, 4 x 64", makeGpt2<4, 64, false>, 3},
                          {"gpt2 small, 1 x 512", makeGpt2<1, 512, false>, 3},
                          {"gpt2 small, 1 x 512, checkpointed", makeGpt2<1, 512, true>, 3},
                          {"bert base, 8 x 128", makeBert, 3},
                          {"vit b/16, 4 images", makeVit, 3},
                          {"lstm 256, 128 x 8", makeLstm, 9}};
  for (int threads : {1, 2})
    for (const Row &row : rows)
      add(std::string("train/") + row.title, threads, row.rounds, [row](benchmark::State &state, const Threads &pool) {
        const Made subject = row.make();
        runSteps(state, pool, *subject);
      });
}

} // namespace kiln::bench
