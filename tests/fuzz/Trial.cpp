// SPDX-License-Identifier: Apache-2.0
//
// 1. Compile; draw the weights. The library gets the original weights, the interpreter the quantised ones.
// 2. For each assignment of extents: call every entry in turn, twice, so that states have a history; the interpreter
//    first.
// 3. One worker; the same with another poison value; threads; tasks in random order. The first run is compared with the
//    interpreter, the others with the first, bit for bit. On a device: tensors on the host, on the device, and on the
//    device at odd addresses.
// 4. Batched entries: several sequences with different extents, compared with separate calls for each sequence.
// 5. Several ranks and stages are compared with one process. With sums in parts, the results of one rank, two ranks and
//    so on are bit-identical; so are those of pipeline stages without tensor parallelism.
#include "Trial.h"

#include "Batches.h"
#include "CompiledModel.h"
#include "Random.h"
#include "StoredWeights.h"

#include "compiler/interpreter/Compare.h"
#include "compiler/interpreter/Interpreter.h"
#include "kiln/names.h"
#include "tests/models/half_floats.h"
#include <fmt/format.h>
#include <memory>

namespace kiln::fuzz {

using interpreter::Tensor;
using Bytes = std::vector<char>;

const char *toString(Verdict::Kind kind) {
  static constexpr const char *names[] = {"right",  "refused", "failed", "wrong",      "unlike",
                                          "broken", "crashed", "hung",   "passed over"};
  return names[static_cast<int>(kind)];
}

namespace {

/// A call of an entry, with its inputs and expected outputs.
struct Call {
  size_t entry;
  std::vector<Bytes> inputs;
  std::vector<Tensor> expected;
};

Tensor draw(Random &random, ElementType element, const interpreter::TensorShape &shape, double low, double high) {
  Tensor tensor = Tensor::zeros(element, shape);
  for (double &value : tensor.values)
    if (floating(element))
      value = interpreter::roundTo(element, static_cast<float>(random.number(low, high)));
    else if (element == ElementType::boolean)
      value = static_cast<double>(random.below(2));
    else
      value = static_cast<double>(random.between(static_cast<int64_t>(low), static_cast<int64_t>(high)));
  return tensor;
}

class Trial {
public:
  /// `inOrder`: the results of the same calls with another schedule of batch-invariant kernels; if empty, it is filled.
  Trial(const RandomModel &model, CompiledModel &compiled, std::uint64_t seed, std::vector<std::vector<Bytes>> *inOrder)
      : model(model), compiled(compiled), random(seed), inOrder(inOrder), isKnown(inOrder && !inOrder->empty()) {}

  Verdict run(std::uint64_t seed) {
    for (const auto &[name, like] : compiled.weightShapes()) {
      auto range = model.parameters.find(withoutNumbers(name));
      auto [low, high] =
          range == model.parameters.end() ? std::pair(-1.0, 1.0) : std::pair(range->second.low, range->second.high);
      weights[name] = draw(random, like.element, like.shape, low, high);
      if (compiled.isStored(name))
        refine(weights[name]);
    }
    if (llvm::Error error = compiled.bind(weights))
      return failed(std::move(error));
    weights = compiled.asStored(std::move(weights));
    for (const interpreter::Extents &extents : sizesToTry(model.graph, seed))
      if (!trySize(extents))
        return verdict;
    for (const CallStyle &style : stylesToTry())
      if (hasBatches() && !tryBatches(style, seed))
        break;
    return verdict;
  }

private:
  /// For example "h0.2.w" -> "h0.{}.w".
  static std::string withoutNumbers(const std::string &name) {
    std::string result;
    for (size_t at = 0; at < name.size();) {
      const size_t end = std::min(name.find('.', at), name.size());
      const std::string part = name.substr(at, end - at);
      const bool isNumber = part.find_first_not_of("0123456789") == std::string::npos;
      result += (at ? "." : "") + (isNumber ? "{}" : part);
      at = end + 1;
    }
    return result;
  }

  /// Drawn numbers are exact in f16. This function gives them all digits of f32, and sets some to 0.
  void refine(Tensor &weight) {
    for (double &value : weight.values) {
      const auto digits = static_cast<double>(random.below(1 << 13));
      value = random.percent(3) ? 0 : static_cast<float>(value * (1 - digits * 0x1p-24));
    }
  }

  Verdict &failed(llvm::Error error) {
    verdict.kind = Verdict::Kind::Failed;
    verdict.words = llvm::toString(std::move(error));
    return verdict;
  }

  Tensor drawInput(size_t entry, size_t number, const interpreter::Extents &extents) {
    const ArgumentInterface &argument = compiled.interface().entries[entry].arguments[number];
    const RandomModel::Input &input = model.inputs[entry][number];
    double low = input.low, high = input.high;
    if (!input.limit.empty())
      high = static_cast<double>(limitOf(input.limit, extents) - 1);
    if (argument.check) { // the range that the runtime checks
      low = static_cast<double>(argument.check->minimum);
      high = std::min(high, static_cast<double>(interpreter::evaluate(argument.check->limit, extents) - 1));
    }
    // A reduction may have removed the node that set the input's limit.
    Tensor drawn =
        draw(random, argument.element, interpreter::evaluate(argument.shape, extents), low, std::max(low, high));
    if (input.hasSpecials && floating(argument.element) && random.percent(30))
      for (double &value : drawn.values)
        if (random.percent(3))
          value = random.of({__builtin_inf(), -__builtin_inf(), __builtin_nan("")});
    return drawn;
  }

  std::vector<Call> makeCalls(const interpreter::Extents &extents) {
    interpreter::Interpreter oracle(model.graph, [&](const std::string &name) { return weights.at(name); });
    oracle.takesInt8 = [&](const std::string &name, int dim) { return compiled.takesInt8(name, dim); };
    std::vector<Call> calls;
    for (int round = 0; round < (compiled.interface().states.empty() ? 1 : 2); ++round)
      for (size_t entry = 0; entry < model.graph.entries.size(); ++entry) {
        std::vector<Tensor> inputs;
        Call call{entry, {}, {}};
        for (size_t i = 0; i < model.inputs[entry].size(); ++i) {
          inputs.push_back(drawInput(entry, i, extents));
          call.inputs.push_back(toBytes(inputs.back()));
        }
        call.expected = oracle.run(entry, extents, inputs);
        calls.push_back(std::move(call));
      }
    return calls;
  }

  std::vector<CallStyle> stylesToTry() const {
    using Order = TaskOrder;
    using Tensors = CallStyle::Tensors;
    if (compiled.isOnDevice())
      return {{.poison = 0xff, .fillsArena = false},
              {.poison = 0x41, .tensors = Tensors::OnDevice},
              {.poison = 0xff, .tensors = Tensors::Displaced}};
    if (compiled.isOfProcesses()) // processes are threads already
      return {{Order::Serial, 1, 0xff}, {Order::Shuffled, 3, 0x41}};
    return {{Order::Serial, 1, 0xff}, {Order::Serial, 1, 0x41}, {Order::Threads, 2, 0xff}, {Order::Shuffled, 3, 0x41}};
  }

  bool trySize(const interpreter::Extents &extents) {
    std::string at;
    for (const auto &[name, value] : extents)
      at += fmt::format(" {}={}", name, value);
    std::vector<Call> calls;
    try {
      calls = makeCalls(extents);
    } catch (const std::exception &error) {
      verdict.kind = Verdict::Kind::Broken;
      verdict.words = fmt::format("interpreter: {};{}", error.what(), at);
      return false;
    }
    std::vector<std::vector<Bytes>> first;
    for (const CallStyle &style : stylesToTry()) {
      CompiledModel::Session session(compiled, style);
      for (size_t i = 0; i < calls.size(); ++i) {
        auto outputs = session.call(calls[i].entry, extents, calls[i].inputs);
        if (!outputs) {
          failed(outputs.takeError()).words += at;
          return false;
        }
        verdict.together += compiled.isOfProcesses();
        if (first.size() <= i) {
          if (!compare(calls[i], *outputs, at) || !compareInOrder(calls[i], *outputs, at))
            return false;
          first.push_back(std::move(*outputs));
        } else if (first[i] != *outputs) {
          verdict.kind = Verdict::Kind::Unlike;
          verdict.words = fmt::format("{}: results differ with {} workers, order {}, poison {:#x}, tensors {};{}",
                                      model.graph.entries[calls[i].entry].name, style.workers,
                                      static_cast<int>(style.order), style.poison, static_cast<int>(style.tensors), at);
          return false;
        }
      }
    }
    return true;
  }

  /// A sequence of batched calls, and a session for the same calls without batching.
  struct Sequence {
    CompiledModel::Sequence batched;
    std::unique_ptr<CompiledModel::Session> alone;
    std::vector<Call> calls; // of all entries, in turn
    std::string at;
  };

  bool hasBatches() const {
    for (size_t entry = 0; entry < model.graph.entries.size(); ++entry)
      if (compiled.batchOf(entry))
        return true;
    return false;
  }

  /// Draws the extents of several sequences; together they have no more rows than one sequence may have.
  std::vector<interpreter::Extents> drawSequences(std::uint64_t seed) {
    const auto batch =
        llvm::find_if(compiled.interface().entries, [](const EntryInterface &entry) { return !entry.ownRows.empty(); });
    const bool hasRows = batch != compiled.interface().entries.end();
    const size_t wanted = 1 + random.below(mostSequences);
    int64_t rows = 0;
    std::vector<interpreter::Extents> drawn;
    for (int tries = 0; tries < 20 && drawn.size() < wanted; ++tries) {
      const std::vector<interpreter::Extents> sizes = sizesToTry(model.graph, seed + static_cast<unsigned>(tries));
      const interpreter::Extents &extents = sizes[random.below(sizes.size())];
      const int64_t more = hasRows ? extents.at(batch->ownRows) : 0;
      if (hasRows && rows + more > batch->symbols.back().max)
        continue;
      rows += more;
      drawn.push_back(extents);
    }
    return drawn;
  }

  bool tryBatches(const CallStyle &style, std::uint64_t seed) {
    CompiledModel::Session session(compiled, style);
    std::vector<Sequence> sequences;
    for (const interpreter::Extents &extents : drawSequences(seed)) {
      std::string at = " as one of several sequences:";
      for (const auto &[name, value] : extents)
        at += fmt::format(" {}={}", name, value);
      sequences.push_back({{std::vector<char>(compiled.interface().stateBytes), extents, {}},
                           std::make_unique<CompiledModel::Session>(compiled, CallStyle{.poison = style.poison}),
                           makeCalls(extents),
                           at});
    }
    for (size_t i = 0; i < sequences.front().calls.size(); ++i)
      if (!tryBatch(session, sequences, i))
        return false;
    return true;
  }

  /// Makes call number `i` of each sequence. An entry that is not batched is called for each sequence separately.
  bool tryBatch(CompiledModel::Session &session, std::vector<Sequence> &sequences, size_t i) {
    const size_t entry = sequences.front().calls[i].entry;
    std::vector<std::vector<Bytes>> expected;
    std::vector<CompiledModel::Sequence> given;
    for (Sequence &sequence : sequences) {
      auto outputs = sequence.alone->call(entry, sequence.batched.extents, sequence.calls[i].inputs);
      if (!outputs) {
        failed(outputs.takeError()).words += sequence.at;
        return false;
      }
      expected.push_back(std::move(*outputs));
      given.push_back(std::move(sequence.batched));
      given.back().inputs = sequence.calls[i].inputs;
    }
    if (compiled.batchOf(entry)) {
      auto outputs = session.callBatch(entry, given);
      if (!outputs) {
        failed(outputs.takeError()).words += sequences.front().at;
        return false;
      }
      ++verdict.batches;
      for (auto [sequence, alone, got, after] : llvm::zip_equal(sequences, expected, *outputs, given)) {
        if (!compare(sequence.calls[i], got, sequence.at))
          return false;
        if (isToTheBit() && (alone != got || after.states != sequence.alone->states())) {
          verdict.kind = Verdict::Kind::Unlike;
          verdict.words = fmt::format("{} for {} sequences: differs from a call for one in its {};{}",
                                      model.graph.entries[entry].name, sequences.size(),
                                      alone != got ? describeDifference(alone, got) : "states", sequence.at);
          return false;
        }
      }
    }
    for (auto [sequence, after] : llvm::zip_equal(sequences, given)) {
      sequence.batched = std::move(after);
      if (!compiled.batchOf(entry))
        sequence.batched.states = sequence.alone->states();
    }
    return true;
  }

  static std::string describeDifference(const std::vector<Bytes> &alone, const std::vector<Bytes> &got) {
    for (size_t i = 0; i < alone.size(); ++i)
      for (size_t at = 0; at < alone[i].size(); ++at)
        if (alone[i][at] != got[i][at])
          return fmt::format("results, first at byte {} of output {} ({:#04x}, for one {:#04x}),", at, i,
                             static_cast<unsigned char>(got[i][at]), static_cast<unsigned char>(alone[i][at]));
    return "results";
  }

  /// Two entries may tile a convolution's channels differently.
  bool isToTheBit() const {
    return llvm::none_of(model.graph.nodes, [](const Node &node) { return node.op == Op::conv2d; });
  }

  bool compare(const Call &call, const std::vector<Bytes> &outputs, const std::string &at) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor &expected = call.expected[i];
      const interpreter::Comparison found = compareBytes(expected, outputs[i]);
      verdict.elements += expected.size();
      verdict.undetermined += static_cast<int64_t>(found.undetermined);
      verdict.tight += static_cast<int64_t>(std::llround(interpreter::tightShare(expected) * double(expected.size())));
      if (found.isRight)
        continue;
      const Entry &entry = model.graph.entries[call.entry];
      verdict.kind = Verdict::Kind::Wrong;
      verdict.words =
          fmt::format("{} of {}: {};{}", entry.output_names[i], entry.name, interpreter::describe(found), at);
      return false;
    }
    return true;
  }

  /// Compares the outputs with those of the same call with other schedules, or with another number of processes.
  bool compareInOrder(const Call &call, const std::vector<Bytes> &outputs, const std::string &at) {
    if (!inOrder)
      return true;
    if (!isKnown) {
      inOrder->push_back(outputs);
      return true;
    }
    if (inOrder->at(numCalls++) == outputs)
      return true;
    verdict.kind = Verdict::Kind::Unlike;
    verdict.words =
        fmt::format("{}: results differ with other {};{}", model.graph.entries[call.entry].name,
                    compiled.isOfProcesses() ? "numbers of processes" : "schedules of batch-invariant kernels", at);
    return false;
  }

  static interpreter::Comparison compareBytes(const Tensor &expected, const Bytes &bytes) {
    auto as = [&](auto element) {
      std::vector<decltype(element)> values(bytes.size() / sizeof element);
      std::memcpy(values.data(), bytes.data(), bytes.size());
      return interpreter::compare(expected, std::span<const decltype(element)>(values));
    };
    if (expected.element == ElementType::f32)
      return as(float());
    if (half_float(expected.element)) {
      std::vector<std::uint16_t> bits(bytes.size() / 2);
      std::memcpy(bits.data(), bytes.data(), bytes.size());
      std::vector<float> values;
      for (std::uint16_t each : bits)
        values.push_back(expected.element == ElementType::f16 ? testing::from_f16(each) : testing::from_bf16(each));
      return interpreter::compare(expected, std::span<const float>(values));
    }
    return expected.element == ElementType::i32 ? as(std::int32_t()) : as(std::uint8_t());
  }

  const RandomModel &model;
  CompiledModel &compiled;
  Random random;
  CompiledModel::Weights weights;
  Verdict verdict;
  std::vector<std::vector<Bytes>> *inOrder;
  const bool isKnown;
  size_t numCalls = 0;
};

} // namespace

Graph triedGraph(const RandomModel &model, const TrialOptions &options) {
  return options.isBatched ? withBatches(model.graph) : model.graph;
}

/// Whether the compiler refused a model for this reason.
static bool isAbout(const std::string &words, const char *reason) { return words.find(reason) != std::string::npos; }

/// Whether the model cannot be split among that number of processes.
static bool cannotBeSplit(const std::string &words) {
  return isAbout(words, "ranks: no layers can be split") || isAbout(words, "--sequence-parallel: ") ||
         isAbout(words, "--stages");
}

bool canBeSplit(const Graph &graph, const RankChoices &ranks) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string words;
  mlir::ScopedDiagnosticHandler collect(&context, [&](mlir::Diagnostic &diagnostic) {
    words += diagnostic.str();
    return mlir::success();
  });
  return importModel(graph, &context, "fuzzed", {}, ranks) || !cannotBeSplit(words);
}

/// Returns the configurations of processes to try, in order. If they must give the same bits, smaller ones come first.
static std::vector<RankChoices> processesFor(const TrialOptions &options) {
  std::vector<RankChoices> all;
  RankChoices one = options.ranks;
  one.stages = 1;
  if (options.ranks.reductionParts)
    for (one.ranks = 1; one.ranks < options.ranks.ranks; one.ranks *= 2)
      all.push_back(one);
  else if (options.ranks.ranks == 1 && options.ranks.stages > 1)
    all.push_back(one);
  all.push_back(options.ranks);
  return all;
}

/// Returns the configurations to compile the model with, in order: random schedules, several numbers of ranks.
static std::vector<CompileChoices> choicesFor(const RandomModel &model, std::uint64_t seed,
                                              const TrialOptions &options) {
  const std::string weights = weightsFor(model.graph, options.weights);
  CompileChoices choices;
  choices.checksMemory = options.checksMemory;
  choices.isolatesKernels = options.isolatesKernels;
  choices.weights = weights;
  choices.int8Rows = options.int8Rows && multipliesInt8(model.graph, weights);
  choices.isBatchInvariant = options.isBatchInvariant;
  choices.emulator = options.emulator;
  std::vector<CompileChoices> all;
  for (const RankChoices &ranks : processesFor(options))
    for (int i = 0; i <= options.schedules; ++i) {
      choices.ranks = ranks;
      choices.scheduleSeed = i ? std::optional(seed + i) : std::nullopt;
      all.push_back(choices);
    }
  return all;
}

Verdict tryModel(const RandomModel &model, const std::string &target, std::uint64_t seed, const TrialOptions &options) {
  Verdict sum;
  const Graph graph = triedGraph(model, options);
  std::vector<std::vector<Bytes>> inOrder;
  for (const CompileChoices &choices : choicesFor(model, seed, options)) {
    auto compiled = CompiledModel::compile(graph, target, choices);
    if (!compiled) {
      sum.kind = Verdict::Kind::Refused;
      sum.words = llvm::toString(compiled.takeError());
      if (options.isSplit() && cannotBeSplit(sum.words))
        return {Verdict::Kind::PassedOver, sum.words};
      if (!options.isBatched || !isAbout(sum.words, "batched entry: "))
        return sum;
      // Not every entry can be batched. Without batching the model must compile.
      TrialOptions single = options;
      single.isBatched = false;
      return tryModel(model, target, seed, single);
    }
    const bool hasSameBits = options.isBatchInvariant || (choices.ranks.ranks == 1 && options.ranks.stages > 1);
    const Verdict verdict = Trial(model, *compiled, seed, hasSameBits ? &inOrder : nullptr).run(seed);
    sum.kind = verdict.kind;
    sum.words = verdict.words;
    sum.elements += verdict.elements;
    sum.tight += verdict.tight;
    sum.undetermined += verdict.undetermined;
    sum.schedules += compiled->drawnSchedules();
    sum.batches += verdict.batches;
    sum.together += verdict.together;
    if (compiled->hasBrokenEmulator())
      sum.kind = Verdict::Kind::PassedOver;
    if (sum.kind != Verdict::Kind::Right)
      break;
  }
  return sum;
}

} // namespace kiln::fuzz
