// SPDX-License-Identifier: Apache-2.0
#include "CompiledModel.h"

#include "GuardedBuffer.h"
#include "Random.h"
#include "TaskOrder.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/interpreter/Storage.h"
#include "tests/models/half_floats.h"
#include <unistd.h>

namespace kiln::fuzz {

std::vector<char> toBytes(const interpreter::Tensor &tensor) {
  std::vector<char> bytes(stored_bytes(tensor.element, tensor.size()));
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    const double value = tensor.values[i];
    auto put = [&](auto element) { std::memcpy(&bytes[i * sizeof element], &element, sizeof element); };
    switch (tensor.element) {
    case ElementType::f32:
      put(static_cast<float>(value));
      break;
    case ElementType::f16:
      put(testing::to_f16(static_cast<float>(value)));
      break;
    case ElementType::bf16:
      put(testing::to_bf16(static_cast<float>(value)));
      break;
    case ElementType::i32:
      put(static_cast<std::int32_t>(value));
      break;
    default:
      put(static_cast<std::int8_t>(value));
    }
  }
  return bytes;
}

static std::string said(const kiln_error_t &error) { return error.message; }

/// Captures the standard error during its lifetime, since the compiler prints its diagnostics there.
class CapturedErrors {
public:
  CapturedErrors() : before(dup(STDERR_FILENO)), file(memfd_create("errors", MFD_CLOEXEC)) {
    dup2(file, STDERR_FILENO);
  }
  ~CapturedErrors() {
    dup2(before, STDERR_FILENO);
    close(before);
    close(file);
  }
  std::string text() const {
    std::string bytes(static_cast<size_t>(lseek(file, 0, SEEK_END)), 0);
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(0, pread(file, bytes.data(), bytes.size(), 0))));
    return bytes;
  }

private:
  int before, file;
};

/// Draws a legal schedule configuration of the search space.
static ScheduleConfig drawConfig(const SearchSpace &space, Random &random) {
  for (int tries = 0; tries < 100; ++tries) {
    ScheduleConfig config;
    for (const TuningParameter &parameter : space)
      config[parameter.key] = random.from(parameter.values);
    if (obeysRules(space, config))
      return config;
  }
  return defaultConfigOf(space);
}

/// Returns the name of one copy of a weight in the weight file.
static std::string nameOf(const WeightInterface &weight, int64_t copy) {
  std::string name = weight.name;
  if (size_t at = name.find("{}"); at != std::string::npos)
    name.replace(at, 2, std::to_string(copy));
  return name;
}

CompiledModel::CompiledModel(CompileReport made) : report(std::move(made)) {
  if (report.model.parallel &&
      report.model.parallel->stages > 1) // which have separate placements each, and no quantised weights
    return;
  for (auto [weight, place] : llvm::zip_equal(report.model.weights, report.variants.front().placements))
    if (place.element != weight.element) {
      const bool isGrouped = place.group >= KILN_LEAST_GROUP; // else i8 are interleaved
      const Format *format = find_placed_format(place.element, place.group, place.zeros != 0);
      for (int64_t copy = 0; copy < weight.copies; ++copy)
        storages[nameOf(weight, copy)] = {place.element, place.dim, isGrouped ? place.group : 0,
                                          format && format->has_zeros};
    }
}

/// Parses the storage formats; fails with a message if the text is not valid.
static llvm::Error setWeights(StorageChoices &weights, const std::string &text) {
  if (text.empty())
    return llvm::Error::success();
  std::string error;
  std::optional<StorageChoices> choices = parseStorageChoices(text, error);
  if (!choices)
    return llvm::createStringError(error);
  weights = std::move(*choices);
  return llvm::Error::success();
}

llvm::Expected<CompiledModel> CompiledModel::compile(const Graph &graph, const std::string &target,
                                                     const CompileChoices &choices) {
  CompileOptions options;
  if (llvm::Error error = setWeights(options.lowering.weights, choices.weights))
    return error;
  options.lowering.weights.quantizesRows = choices.int8Rows;
  options.lowering.batchInvariant = choices.isBatchInvariant;
  options.lowering.ranks = choices.ranks;
  options.name = "fuzzed";
  options.targets = {target};
  options.form = EmitForm::Memory;
  options.kernels.isolates = choices.isolatesKernels;
  options.kernels.checksMemory = choices.checksMemory;
  Random random(choices.scheduleSeed.value_or(0));
  int drawn = 0;
  if (choices.scheduleSeed)
    options.configOf = [&](const Schedulable &kernel) {
      ScheduleConfig config = drawConfig(kernel.space, random);
      drawn += config != defaultConfigOf(kernel.space);
      return config;
    };
  std::string words;
  llvm::raw_string_ostream errors(words);
  CapturedErrors captured;
  auto report = compileModel(graph, options, errors);
  if (mlir::failed(report)) {
    words += captured.text();
    return llvm::createStringError(words.empty() ? "compiling failed without a message" : words);
  }
  CompiledModel model(std::move(*report));
  model.drawn = drawn;
  model.hasInt8Rows = choices.int8Rows;
  model.ranks = static_cast<uint32_t>(choices.ranks.ranks);
  model.handles.resize(static_cast<size_t>(choices.ranks.ranks * choices.ranks.stages));
  model.script = choices.emulator;
  if (!model.isEmulated())
    if (llvm::Error error = model.link())
      return error;
  return model;
}

llvm::Error CompiledModel::link() {
  std::vector<llvm::StringRef> objects;
  for (const ObjectFile &member : report.members)
    objects.push_back(member.bytes);
  auto objectsHere = LinkedObjects::link(objects);
  if (!objectsHere)
    return objectsHere.takeError();
  linked.emplace(std::move(*objectsHere));
  llvm::Error missing = llvm::Error::success();
  auto find = [&](auto &pointer, const char *name) {
    auto found = function<std::remove_pointer_t<std::remove_reference_t<decltype(pointer)>>>(name);
    if (found)
      pointer = *found;
    else
      missing = llvm::joinErrors(std::move(missing), found.takeError());
  };
  find(run, "run");
  find(runBatch, "run_batch");
  find(createPool, "pool_create");
  find(poolExecutor, "pool_executor");
  find(destroyPool, "pool_destroy");
  return missing;
}

std::vector<std::pair<std::string, interpreter::Tensor>> CompiledModel::weightShapes() const {
  std::vector<std::pair<std::string, interpreter::Tensor>> result;
  for (const WeightInterface &weight : fileWeights(report.model))
    for (int64_t copy = 0; copy < weight.copies; ++copy)
      result.emplace_back(nameOf(weight, copy), interpreter::Tensor::zeros(weight.element, weight.shape));
  return result;
}

bool CompiledModel::takesInt8(const std::string &name, int dim) const {
  const auto found = storages.find(name);
  return hasInt8Rows && found != storages.end() && takes_int8_rows(found->second.element, found->second.group) &&
         found->second.dim == dim;
}

CompiledModel::Weights CompiledModel::asStored(Weights weights) const {
  for (const auto &[name, storage] : storages) {
    interpreter::Tensor &weight = weights.at(name);
    interpreter::roundToStored(weight.values, weight.shape, storage);
    weight = interpreter::Tensor::of(weight.element, weight.shape, std::move(weight.values));
    // A kernel may multiply by the scale after the sum. Then the dequantised weight is not rounded, but the result is
    // rounded once more.
    if (find_format(storage.element, int(storage.group), storage.zero)->scale_bits)
      for (size_t i = 0; i < weight.values.size(); ++i)
        weight.errors[i] += std::abs(weight.values[i]) * 0x1p-23;
  }
  return weights;
}

/// Serialises the weights as a safetensors file.
static std::string imageOf(const CompiledModel::Weights &weights) {
  std::string header = "{", data;
  for (const auto &[name, tensor] : weights) {
    const char *types[] = {"F32", "F16", "BF16", "I32", "I8", "BOOL"};
    std::vector<char> bytes = toBytes(tensor);
    std::string shape;
    for (int64_t extent : tensor.shape)
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    header += (header.size() > 1 ? ",\"" : "\"") + name + "\":{\"dtype\":\"" + types[static_cast<int>(tensor.element)] +
              "\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(data.size()) + "," +
              std::to_string(data.size() + bytes.size()) + "]}";
    data.append(bytes.begin(), bytes.end());
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char *>(&length), sizeof length) + header + data;
}

llvm::Error CompiledModel::bind(const Weights &weights) {
  const std::string image = imageOf(weights);
  if (isEmulated()) {
    auto started = Emulator::start(script, report.members);
    if (!started)
      return started.takeError();
    emulator = std::move(*started);
    put(emulator->messages(), Message::Bind);
    emulator->messages().put(std::vector<char>(image.begin(), image.end()));
    return emulator->answer();
  }
  auto create = function<decltype(kiln_create_on)>("create_on");
  auto destroy = function<decltype(kiln_destroy)>("destroy");
  auto bindWeights = function<decltype(kiln_bind_weights_from_memory)>("bind_weights_from_memory");
  if (!create || !destroy || !bindWeights)
    return llvm::joinErrors(llvm::joinErrors(create.takeError(), destroy.takeError()), bindWeights.takeError());
  kiln_options_t options{};
  const auto stages = static_cast<uint32_t>(handles.size() / ranks);
  options.ranks = ranks > 1 ? ranks : 0;
  options.stages = stages > 1 ? stages : 0;
  for (auto [process, handle] : llvm::enumerate(handles)) {
    kiln_error_t error{};
    kiln_model_t *made = nullptr;
    options.rank = static_cast<uint32_t>(process % ranks);
    options.stage = static_cast<uint32_t>(process / ranks);
    if ((*create)(&options, &made, &error) != KILN_OK)
      return llvm::createStringError(said(error));
    handle = Handle(made, Destroyer{*destroy});
    if ((*bindWeights)(made, image.data(), image.size(), &error) != KILN_OK)
      return llvm::createStringError(said(error));
  }
  return llvm::Error::success();
}

llvm::Error CompiledModel::initialise(std::uint64_t seed) {
  auto initialiseWeights = function<decltype(kiln_initialise_weights)>("initialise_weights");
  if (!initialiseWeights)
    return initialiseWeights.takeError();
  for (const Handle &handle : handles) {
    kiln_error_t error{};
    if ((*initialiseWeights)(handle.get(), seed, &error) != KILN_OK)
      return llvm::createStringError(said(error));
  }
  return llvm::Error::success();
}

llvm::Expected<interpreter::Tensor> CompiledModel::read(const std::string &name,
                                                        const interpreter::TensorShape &shape) {
  auto readWeight = function<decltype(kiln_read_weight)>("read_weight");
  if (!readWeight)
    return readWeight.takeError();
  interpreter::Tensor result = interpreter::Tensor::zeros(ElementType::f32, shape);
  std::vector<float> values(result.values.size());
  kiln_error_t error{};
  if ((*readWeight)(handles.front().get(), name.c_str(), 0, shape.empty() ? 1 : static_cast<uint64_t>(shape[0]),
                    values.data(), &error) != KILN_OK)
    return llvm::createStringError(said(error));
  std::copy(values.begin(), values.end(), result.values.begin());
  return result;
}

CompiledModel::Session::Session(CompiledModel &model, CallStyle style)
    : model(model), style(style),
      held(model.handles.size(),
           std::vector<char>(std::max(model.report.model.stateBytes, model.report.model.trainingBytes))) {
  if (style.order == TaskOrder::Threads && !model.isEmulated())
    model.createPool(style.workers, &pool, nullptr);
}

CompiledModel::Session::~Session() {
  if (pool)
    model.destroyPool(pool);
}

std::optional<size_t> CompiledModel::batchOf(size_t entry) const {
  const std::vector<EntryInterface> &entries = report.model.entries;
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].single == entries[entry].name)
      return i;
  return std::nullopt;
}

static std::vector<int64_t> valuesOf(const std::vector<Symbol> &symbols, const interpreter::Extents &extents) {
  std::vector<int64_t> values;
  for (const Symbol &symbol : symbols)
    values.push_back(extents.at(symbol.name));
  return values;
}

llvm::Expected<CompiledModel::Buffers> CompiledModel::Session::call(size_t entry, const interpreter::Extents &extents,
                                                                    const Buffers &inputs) {
  if (model.isOnDevice())
    return callOnDevice(entry, extents, inputs);
  if (model.isEmulated())
    return callEmulated(entry, extents, inputs);
  return model.isOfProcesses() ? callOnProcesses(entry, extents, inputs) : callOnHost(entry, extents, inputs, {});
}

llvm::Expected<CompiledModel::Buffers> CompiledModel::Session::callOnHost(size_t entry,
                                                                          const interpreter::Extents &extents,
                                                                          const Buffers &inputs, Process process) {
  std::vector<int64_t> values = valuesOf(model.report.model.entries[entry].symbols, extents);
  return runOnHost(entry, extents, inputs, [&](kiln_call_t &call, void *const *arguments) {
    const uint64_t own = model.report.model.entries[entry].stateBytes;
    std::vector<char> &states = held[process.number];
    call.communicator = process.ranks;
    call.stages = process.stages;
    std::copy_n(states.begin(), own, static_cast<char *>(call.arena));
    const kiln_status_t status =
        model.run(model.handles[process.number].get(), &call, static_cast<uint32_t>(entry), values.data(), arguments);
    std::copy_n(static_cast<const char *>(call.arena), own, states.data());
    return status;
  });
}

llvm::Error CompiledModel::Session::saveTraining(const std::string &path, const kiln_training_t &training) const {
  auto save = model.function<decltype(kiln_save_training)>("save_training");
  kiln_error_t error = {};
  if (!save)
    return save.takeError();
  return (*save)(model.handles.front().get(), held.front().data(), &training, path.c_str(), &error)
             ? llvm::createStringError(said(error))
             : llvm::Error::success();
}

llvm::Expected<kiln_training_t> CompiledModel::Session::loadTraining(const std::string &path) {
  auto load = model.function<decltype(kiln_load_training)>("load_training");
  kiln_error_t error = {};
  kiln_training_t training = {};
  if (!load)
    return load.takeError();
  if ((*load)(model.handles.front().get(), held.front().data(), &training, path.c_str(), &error))
    return llvm::createStringError(said(error));
  return training;
}

llvm::Error CompiledModel::Session::swapAverage() {
  auto swap = model.function<decltype(kiln_swap_average)>("swap_average");
  kiln_error_t error = {};
  if (!swap)
    return swap.takeError();
  return (*swap)(model.handles.front().get(), held.front().data(), &error) ? llvm::createStringError(said(error))
                                                                           : llvm::Error::success();
}

llvm::Error CompiledModel::Session::beginTraining() {
  auto begin = model.function<decltype(kiln_begin_training)>("begin_training");
  kiln_error_t error = {};
  if (!begin)
    return begin.takeError();
  return (*begin)(model.handles.front().get(), held.front().data(), &error) ? llvm::createStringError(said(error))
                                                                            : llvm::Error::success();
}

llvm::Expected<std::vector<CompiledModel::Buffers>>
CompiledModel::Session::callBatch(size_t entry, std::vector<Sequence> &sequences) {
  const size_t batch = *model.batchOf(entry);
  const EntryInterface &single = model.report.model.entries[entry], &interface = model.report.model.entries[batch];
  interpreter::Extents extents{{interface.symbols[0].name, static_cast<int64_t>(sequences.size())}};
  Buffers inputs(sequences.front().inputs.size());
  std::vector<GuardedBuffer> states;
  std::vector<std::vector<int64_t>> values;
  std::vector<kiln_sequence_t> given;
  for (const Sequence &sequence : sequences) {
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs[i].insert(inputs[i].end(), sequence.inputs[i].begin(), sequence.inputs[i].end());
    if (!interface.ownRows.empty())
      extents[interface.symbols[1].name] += sequence.extents.at(interface.ownRows);
    std::copy(sequence.states.begin(), sequence.states.end(), states.emplace_back(sequence.states.size()).data());
    values.push_back(valuesOf(single.symbols, sequence.extents));
  }
  for (size_t i = 0; i < sequences.size(); ++i)
    given.push_back({states[i].data(), values[i].data()});
  auto outputs = runOnHost(batch, extents, inputs, [&](kiln_call_t &call, void *const *arguments) {
    return model.runBatch(model.handles.front().get(), &call, static_cast<uint32_t>(batch), given.size(), given.data(),
                          arguments);
  });
  if (!outputs)
    return outputs.takeError();
  for (size_t i = 0; i < sequences.size(); ++i)
    std::copy_n(states[i].data(), sequences[i].states.size(), sequences[i].states.data());

  std::vector<Buffers> split(sequences.size());
  for (size_t output = 0; output < outputs->size(); ++output) {
    const ArgumentInterface &argument = single.arguments[inputs.size() + output];
    auto from = (*outputs)[output].begin();
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto bytes = static_cast<std::ptrdiff_t>(stored_bytes(
          argument.element, interpreter::elementCount(interpreter::evaluate(argument.shape, sequences[i].extents))));
      split[i].emplace_back(from, from + bytes);
      from += bytes;
    }
  }
  return split;
}

/// Calls with arguments between guard pages, and an arena of exactly the requested size.
llvm::Expected<CompiledModel::Buffers>
CompiledModel::Session::runOnHost(size_t entry, const interpreter::Extents &extents, const Buffers &inputs,
                                  llvm::function_ref<kiln_status_t(kiln_call_t &call, void *const *arguments)> run) {
  const EntryInterface &interface = model.report.model.entries[entry];
  std::vector<GuardedBuffer> buffers;
  std::vector<void *> arguments;
  for (const ArgumentInterface &argument : interface.arguments) {
    const auto edge = arguments.size() % 3 == 2 ? GuardedBuffer::Edge::Begin : GuardedBuffer::Edge::End;
    if (argument.isOutput) {
      size_t bytes =
          stored_bytes(argument.element, interpreter::elementCount(interpreter::evaluate(argument.shape, extents)));
      buffers.emplace_back(bytes, edge).fill(style.poison);
    } else {
      const std::vector<char> &given = inputs[arguments.size()];
      GuardedBuffer &buffer = buffers.emplace_back(given.size(), edge);
      std::copy(given.begin(), given.end(), buffer.data());
      buffer.makeReadOnly();
    }
    arguments.push_back(buffers.back().data());
  }

  const ArenaBytes sizes = arenaBytes(model.report.variants, entry);
  GuardedBuffer arena(sizes.fixed + style.workers * sizes.perWorker);
  arena.fill(style.poison);
  ShuffledExecutor shuffled(style.workers, 1 + entry);
  kiln_error_t error{};
  kiln_call_t call{arena.data(), arena.bytes(), nullptr, &error};
  if (style.order == TaskOrder::Shuffled)
    call.executor = &shuffled.executor;
  else if (pool)
    call.executor = model.poolExecutor(pool);
  if (run(call, arguments.data()) != KILN_OK)
    return llvm::createStringError(said(error));

  Buffers outputs;
  for (size_t i = inputs.size(); i < buffers.size(); ++i)
    outputs.emplace_back(buffers[i].data(), buffers[i].data() + buffers[i].bytes());
  return outputs;
}

} // namespace kiln::fuzz
