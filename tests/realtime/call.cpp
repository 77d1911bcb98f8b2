// SPDX-License-Identifier: Apache-2.0
#include "call.h"

#include "half_floats.h"
#include <algorithm>
#include <cstring>

namespace kiln::realtime {

static int64_t between(int64_t least, int64_t most, Random &random) {
  return std::uniform_int_distribution<int64_t>(least, most)(random);
}

/// Returns a random value for each symbol.
static std::vector<int64_t> drawExtents(const kiln_symbol_t *symbols, uint32_t count, int64_t span, Random &random) {
  std::vector<int64_t> extents;
  for (uint32_t i = 0; i < count; ++i)
    extents.push_back(between(symbols[i].min, std::min(symbols[i].max, symbols[i].min + span), random));
  for (uint32_t repeat = 0; repeat < count; ++repeat) // a lower bound may depend on another one that depends on a third
    for (uint32_t i = 0; i < count; ++i)
      if (symbols[i].least)
        extents[i] = std::max(extents[i], extents[symbols[i].least - 1]);
  return extents;
}

Call::Call(Model &model, size_t number, Guard guard, int64_t span, Random &random)
    : model(model), number(number), entry(library.descriptor.entries[number]), guard(guard) {
  if (entry.is_batch)
    drawSequences(span, random);
  else
    extents = drawExtents(entry.symbols, entry.symbol_count, span, random);
  for (uint32_t i = 0; i < entry.argument_count; ++i)
    tensors.push_back(draw(entry.arguments[i], random));
}

/// Draws a number of sequences such that each can have a few rows.
void Call::drawSequences(int64_t span, Random &random) {
  const int64_t count = between(1, std::min<int64_t>({span + 1, 5, entry.symbols[0].max}), random);
  int64_t rows = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t share = entry.own_rows ? std::min(span, entry.symbols[1].max / count - 1) : span;
    std::vector<int64_t> own = drawExtents(entry.own_symbols, entry.own_symbol_count, share, random);
    rows += entry.own_rows ? own[entry.own_rows - 1] : 0;
    sequences.push_back({std::move(own), allocate(entry.state_bytes)});
  }
  extents = {count, rows};
}

int64_t Call::valueOf(const kiln_extent_t &extent) const {
  auto valueOf = [&](int32_t symbol) { return symbol < 0 ? 1 : extents[static_cast<size_t>(symbol)]; };
  return extent.offset + extent.factor * valueOf(extent.symbol[0]) * valueOf(extent.symbol[1]) +
         extent.second * valueOf(extent.symbol[2]) * valueOf(extent.symbol[3]);
}

Call::Tensor Call::draw(const kiln_argument_t &argument, Random &random) const {
  static constexpr size_t bits[] = {
#define KILN_ELEMENT_TYPE(name, NAME, file, kind, bits, digits, c_type, mlir) bits,
#include "kiln/element_types.def"
  };
  int64_t elements = 1;
  for (uint32_t d = 0; d < argument.rank; ++d)
    elements *= valueOf(argument.extents[d]);
  Tensor tensor{allocate(static_cast<uint64_t>(elements) * bits[argument.dtype] / 8), {}};
  if (argument.is_output)
    return tensor;
  auto put = [&](auto value) {
    const auto *bytes = reinterpret_cast<const unsigned char *>(&value);
    tensor.given.insert(tensor.given.end(), bytes, bytes + sizeof value);
  };
  const int64_t least = argument.is_checked ? argument.minimum : 0;
  const int64_t most = argument.is_checked ? valueOf(argument.limit) - 1 : 7; // such as a seed or a label
  std::uniform_real_distribution<float> unit(-1, 1);
  for (int64_t i = 0; i < elements; ++i)
    switch (argument.dtype) {
    case KILN_F32:
      put(unit(random));
      break;
    case KILN_F16:
      put(testing::to_f16(unit(random)));
      break;
    case KILN_BF16:
      put(testing::to_bf16(unit(random)));
      break;
    case KILN_I32:
      put(static_cast<int32_t>(between(least, most, random)));
      break;
    default:
      put(static_cast<uint8_t>(random() & 1));
    }
  return tensor;
}

/// Calls the entry, which RealtimeSanitizer checks if the compiler supports it.
static kiln_status_t callEntry(size_t number, const Model &model, const kiln_call_t &call,
                               const Values &values) noexcept KILN_NONBLOCKING {
  return library.entries[number](model.get(), &call, values);
}

/// Runs all tasks on one thread, as each worker in turn.
static void runInTurns(void *self, uint32_t count, void (*task)(void *, uint32_t, uint32_t), void *context) {
  for (uint32_t i = 0; i < count; ++i)
    task(context, i, i % static_cast<const kiln_executor_t *>(self)->workers);
}

/// Fills memory; the first `zeros` bytes are states with which a session begins, and are zeroed.
static void prepare(GuardedMemory &memory, unsigned char filling, uint64_t zeros) {
  memory.fill(filling);
  std::memset(memory.data(), 0, zeros);
}

Call::Result Call::run(unsigned char filling, uint32_t workers) {
  const kiln_body_t &body = model.body(number);
  const Memory arena = allocate(kiln_arena_fixed_bytes(body.plan_bytes, body.scratch_bytes, body.task_bytes) +
                                workers * kiln_arena_worker_bytes(body.task_bytes));
  prepare(*arena, filling, arenaStates());
  std::vector<kiln_sequence_t> given;
  for (Sequence &sequence : sequences) {
    prepare(*sequence.states, filling, entry.state_bytes);
    given.push_back({sequence.states->data(), sequence.extents.data()});
  }
  std::vector<void *> places;
  for (Tensor &tensor : tensors) {
    tensor.memory->fill(filling);
    std::copy(tensor.given.begin(), tensor.given.end(), tensor.memory->data());
    places.push_back(tensor.memory->data());
  }
  model.restore();

  kiln_executor_t executor = {&executor, workers, runInTurns};
  kiln_error_t error{};
  const kiln_call_t call = {.arena = arena->data(),
                            .arena_bytes = arena->size(),
                            .executor = workers > 1 ? &executor : nullptr,
                            .error = &error,
                            .communicator = model.communicator(),
                            .replicas = model.replicasCommunicator(),
                            .stages = model.stagesCommunicator()};
  if (callEntry(number, model, call, {extents.data(), places.data(), given.size(), given.data()}) != KILN_OK)
    return {error.message, {}};
  return look(*arena);
}

Call::Result Call::look(const GuardedMemory &arena) const {
  Result result;
  auto see = [&](const GuardedMemory &memory, uint64_t shown, const std::string &what) {
    result.bytes.insert(result.bytes.end(), memory.data(), memory.data() + shown);
    if (!memory.isIntact())
      result.mistake = "something was written outside of " + what;
  };
  see(arena, arenaStates(), "the arena");
  for (const Sequence &sequence : sequences)
    see(*sequence.states, entry.state_bytes, "states of a sequence");
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto &[memory, given] = tensors[i];
    see(*memory, memory->size(), entry.arguments[i].name);
    if (!std::equal(given.begin(), given.end(), memory->data()))
      result.mistake = entry.arguments[i].name + std::string(" is an input and was written to");
  }
  return result;
}

std::string Call::words() const {
  std::string text = entry.name + std::string("(");
  auto add = [&](const kiln_symbol_t *symbols, uint32_t count, const std::vector<int64_t> &values) {
    for (uint32_t i = 0; i < count; ++i)
      text += (text.back() == '(' ? "" : ", ") + std::string(symbols[i].name) + "=" + std::to_string(values[i]);
  };
  add(entry.symbols, entry.symbol_count, extents);
  for (const Sequence &sequence : sequences)
    add(entry.own_symbols, entry.own_symbol_count, sequence.extents);
  return text + ")";
}

} // namespace kiln::realtime
