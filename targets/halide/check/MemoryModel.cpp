// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/check/MemoryModel.h"

#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>
#include <limits>

namespace kiln::halide {

/// The mark of an element to which nothing was stored.
constexpr Mark neverWritten = std::numeric_limits<Mark>::max();

//===- Tasks -------------------------------------------------------------===//

void TaskTree::enterLoop(const std::string &name) {
  runs.push_back(name);
  open.emplace_back(uint32_t(runs.size() - 1), now);
}

void TaskTree::startIteration(int64_t number) {
  auto [run, parent] = open.back();
  nodes.push_back({parent, run, nodes[parent].depth + 1, number});
  now = Task(nodes.size() - 1);
}

void TaskTree::leaveLoop() {
  now = open.back().second;
  open.pop_back();
}

std::pair<Task, Task> TaskTree::divergence(Task a, Task b) const {
  while (nodes[a].depth > nodes[b].depth)
    a = nodes[a].parent;
  while (nodes[b].depth > nodes[a].depth)
    b = nodes[b].parent;
  while (a != b && nodes[a].parent != nodes[b].parent)
    a = nodes[a].parent, b = nodes[b].parent;
  return nodes[a].run == nodes[b].run ? std::pair(a, b) : std::pair(a, a);
}

bool TaskTree::areConcurrent(Task a, Task b) const {
  if (a == b)
    return false;
  auto [x, y] = divergence(a, b);
  return x != y;
}

std::string TaskTree::describe(Task a, Task b) const {
  auto [x, y] = divergence(a, b);
  return fmt::format("tasks {} and {} of the loop \"{}\"", nodes[x].number, nodes[y].number, runs[nodes[x].run]);
}

//===- Words -------------------------------------------------------------===//

std::string Memory::describe(int64_t element) const {
  std::vector<int64_t> position(shape.size());
  int64_t rest = element;
  for (size_t i = shape.size(); i-- > 0;) {
    position[i] = rest % shape[i];
    rest /= shape[i];
  }
  if (role == MemoryRole::Scratch)
    return fmt::format("element {} of {}", element, title);
  return fmt::format("element ({}) of {}", fmt::join(position, ", "), title);
}

void MemoryModel::requireInside(const Memory &memory, int64_t element, const char *what) const {
  if (memory.isFreed)
    throw MemoryFault{fmt::format("{} {} after it was freed", what, memory.title)};
  if (element < 0 || element >= memory.size)
    throw MemoryFault{fmt::format("{} element {} of {}, which has {}", what, element, memory.title, memory.size)};
}

void MemoryModel::requireReadable(const Memory &memory, int64_t element) const {
  if (memory.isFreed || element < memory.size || element >= memory.size + memory.padding)
    requireInside(memory, element, "a load reads");
}

Mark MemoryModel::undefinedLane(std::string why) {
  origins.push_back(std::move(why));
  return firstUndefined + Mark(origins.size() - 1);
}

void MemoryModel::requireDefined(const Lanes &lanes, const std::string &use, const Lanes *predicate) const {
  if (lanes.hasOneMark() && lanes.mark(0) < firstUndefined)
    return;
  for (int i = 0; i < lanes.count(); ++i)
    if (lanes.mark(i) >= firstUndefined && (!predicate || predicate->value(i)))
      throw MemoryFault{fmt::format("{} is computed from {}", use, origin(lanes.mark(i)))};
}

int64_t drawInteger(Halide::Type type, uint64_t seed, uint64_t number) {
  uint64_t bits = seed + number * 0x9e3779b97f4a7c15; // splitmix64
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  bits ^= bits >> 31;
  if (type.bits() == 8 && type.is_uint()) // a boolean
    return int64_t(bits & 1);
  const uint64_t drawn = bits >> 8;
  switch (bits % 8) {
  case 0:
    return wrap(type, int64_t(1) << (type.bits() - 1)); // the least value
  case 1:
    return wrap(type, (uint64_t(1) << (type.bits() - 1)) - 1);
  case 2:
    return wrap(type, -1);
  case 3:
    return 0;
  case 4:
    return wrap(type, int64_t(drawn));
  default:
    return wrap(type, int64_t(drawn % (bits % 2 ? 8 : 100)));
  }
}

//===- Accesses ----------------------------------------------------------===//

void MemoryModel::allocate(Memory &memory) {
  memory.owner = tasks.current();
  memory.marks.assign(size_t(memory.size + memory.padding), neverWritten);
  if (!memory.type.is_float())
    memory.values.assign(memory.marks.size(), 0);
}

void MemoryModel::noteRead(Memory &memory, int64_t element) {
  if (memory.users.empty())
    memory.users.resize(memory.marks.size());
  Memory::Users &users = memory.users[size_t(element)];
  Task now = tasks.current();
  if (users.writer != noTask && tasks.areConcurrent(users.writer, now))
    throw MemoryFault{fmt::format("{}: one reads what the other one writes, {}", tasks.describe(users.writer, now),
                                  memory.describe(element))};
  if (users.reader == now || users.otherReader == now)
    return;
  users.otherReader = users.reader;
  users.reader = now;
}

void MemoryModel::noteWrite(Memory &memory, int64_t element) {
  if (memory.users.empty())
    memory.users.resize(memory.marks.size());
  Memory::Users &users = memory.users[size_t(element)];
  Task now = tasks.current();
  if (users.writer != noTask && tasks.areConcurrent(users.writer, now))
    throw MemoryFault{fmt::format("{} both write {}", tasks.describe(users.writer, now), memory.describe(element))};
  for (Task reader : {users.reader, users.otherReader})
    if (reader != noTask && tasks.areConcurrent(reader, now))
      throw MemoryFault{fmt::format("{}: one reads what the other one writes, {}", tasks.describe(reader, now),
                                    memory.describe(element))};
  users.writer = now;
}

/// Loads one lane.
Lanes MemoryModel::loadOne(const MemoryView &view, int64_t element) {
  Memory &memory = *view.memory;
  const Mark given = memory.type.is_float() ? isDrawn : isKnown;
  auto drawn = [&] { return memory.type.is_float() ? 0 : drawInteger(memory.type, memory.seed, uint64_t(element)); };
  if (memory.marks.empty())
    return Lanes::scalar(drawn(), given);
  if (isShared(memory))
    noteRead(memory, element);
  Mark &mark = memory.marks[size_t(element)];
  if (view.isArgument) {
    if (mark != neverWritten)
      throw MemoryFault{
          fmt::format("{} is read as {} after it was overwritten", memory.describe(element), memory.overwrites)};
    return Lanes::scalar(drawn(), given);
  }
  if (mark == neverWritten) {
    if (memory.role == MemoryRole::Result)
      throw MemoryFault{fmt::format("{} is read before it is written", memory.describe(element))};
    mark = undefinedLane(fmt::format("{}, which was never written", memory.describe(element)));
  }
  return Lanes::scalar(memory.values.empty() ? 0 : memory.values[size_t(element)], mark);
}

Lanes MemoryModel::load(const MemoryView &view, Halide::Type type, const Lanes &index, const Lanes *predicate) {
  Memory &memory = *view.memory;
  const int count = index.count();
  Lanes result = memory.type.is_float() ? Lanes::opaque(count) : Lanes::ramp(count, 0, 0);
  // The common case: a dense vector whose elements are all defined.
  if (!predicate && index.isRamp() && memory.type.is_float()) {
    requireReadable(memory, index.value(0));
    requireReadable(memory, index.value(count - 1));
    if (memory.marks.empty())
      return result;
    if (!isShared(memory) && !view.isArgument) {
      Mark largest = 0;
      for (int i = 0; i < count; ++i)
        largest = std::max(largest, memory.marks[size_t(index.value(i))]);
      if (largest < firstUndefined)
        return result;
    }
  }
  Mark masked = 0;
  for (int i = 0; i < count; ++i) {
    if (predicate && !predicate->value(i)) {
      if (!masked)
        masked = undefinedLane("a lane that a load leaves out");
      result.setMark(i, masked);
      continue;
    }
    requireReadable(memory, index.value(i));
    Lanes one = loadOne(view, index.value(i));
    result.setValue(i, wrap(type, one.value(0)));
    result.setMark(i, one.mark(0));
  }
  return result;
}

void MemoryModel::store(const MemoryView &view, const Lanes &index, const Lanes &value, const Lanes *predicate) {
  Memory &memory = *view.memory;
  for (int i = 0; i < index.count(); ++i) {
    if (predicate && !predicate->value(i))
      continue;
    int64_t element = index.value(i);
    requireInside(memory, element, "a store writes");
    if (memory.marks.empty())
      throw MemoryFault{fmt::format("a store writes {}", memory.describe(element))};
    if (isShared(memory))
      noteWrite(memory, element);
    Mark mark = value.mark(i);
    if (memory.role == MemoryRole::Result) {
      if (mark >= firstUndefined)
        throw MemoryFault{fmt::format("{} is computed from {}", memory.describe(element), origin(mark))};
      if (memory.marks[size_t(element)] != neverWritten)
        throw MemoryFault{fmt::format("{} is written twice", memory.describe(element))};
    }
    memory.marks[size_t(element)] = mark;
    if (!memory.values.empty())
      memory.values[size_t(element)] = value.value(i);
  }
}

void MemoryModel::requireWritten(const Memory &memory) const {
  for (int64_t element = 0; element < memory.size; ++element)
    if (memory.marks[size_t(element)] == neverWritten)
      throw MemoryFault{fmt::format("{} is never written", memory.describe(element))};
}

} // namespace kiln::halide
