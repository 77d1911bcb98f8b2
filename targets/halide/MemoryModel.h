// SPDX-License-Identifier: Apache-2.0
//
// Memory as the memory checker sees it: buffers whose elements know whether they were written, by whom and read by
// whom. What must not be is a MemoryFault in words. Tasks, the iterations of parallel loops, are numbered in the order
// in which they are run here, one after the other.
#pragma once

#include "targets/halide/Lanes.h"
#include <string>
#include <vector>

namespace kiln::halide {

/// What is wrong; thrown, since nothing behind it has a meaning.
struct MemoryFault {
  std::string words;
};

/// More steps than allowed; thrown.
struct StepsExceeded {};

using Task = uint32_t;
constexpr Task noTask = 0; // outside of all parallel loops

/// Iterations of parallel loops, each within that of an outer one.
class TaskTree {
public:
  /// Starts a run of a loop, whose iterations may be concurrent.
  void enterLoop(const std::string &name);
  void startIteration(int64_t number);
  void leaveLoop();
  Task current() const { return now; }

  /// Whether nothing orders the two; they then are in different iterations of the same run of a loop.
  bool areConcurrent(Task a, Task b) const;
  /// tasks 0 and 1 of "out0.s0.d1.block"
  std::string describe(Task a, Task b) const;

private:
  struct Node {
    Task parent = noTask;
    uint32_t run = 0, depth = 0;
    int64_t number = 0;
  };
  /// The concurrent iterations that two tasks are in; equal if there are none.
  std::pair<Task, Task> divergence(Task a, Task b) const;

  std::vector<Node> nodes{Node()};
  std::vector<std::string> runs; // names of loops
  std::vector<std::pair<uint32_t, Task>> open;
  Task now = noTask;
};

/// What a buffer is to the kernel.
enum class MemoryRole { Argument, Result, Scratch };

struct Memory {
  MemoryRole role = MemoryRole::Scratch;
  std::string title; // argument 1, result 0, "stage2"
  Halide::Type type;
  std::vector<int64_t> shape; // outermost first; one extent for scratch
  int64_t size = 0;           // elements
  uint64_t seed = 0;          // of the integers given
  std::string overwrites;     // the title of the argument that a result takes the memory of
  bool isFreed = false;
  Task owner = noTask;

  std::vector<Mark> marks;     // of what was stored; none for arguments
  std::vector<int64_t> values; // the same of integers
  /// Of tasks other than the owner, from the first one on.
  struct Users {
    Task writer = noTask, reader = noTask, otherReader = noTask;
  };
  std::vector<Users> users;

  /// element (2, 4) of result 0
  std::string describe(int64_t element) const;
};

/// A name in the statement: an argument that a result overwrites has its memory.
struct MemoryView {
  Memory *memory = nullptr;
  bool isArgument = false;
};

/// All lanes of a null predicate are true.
class MemoryModel {
public:
  TaskTree tasks;

  Lanes load(const MemoryView &view, Halide::Type type, const Lanes &index, const Lanes *predicate);
  void store(const MemoryView &view, const Lanes &index, const Lanes &value, const Lanes *predicate);

  /// Before it is used: makes room for what is stored. Its owner is the current task.
  void allocate(Memory &memory);
  /// Each element of a result must have been written.
  void requireWritten(const Memory &memory) const;

  /// Throws if it has no such element: what is done to it, "a load reads".
  void requireInside(const Memory &memory, int64_t element, const char *what) const;
  /// The mark of lanes that are computed from nothing.
  Mark undefinedLane(std::string why);
  /// Throws if the lane is undefined: what it is used for, "an index of a load of argument 1".
  void requireDefined(const Lanes &lanes, const std::string &use, const Lanes *predicate = nullptr) const;
  /// which was never written
  std::string origin(Mark mark) const { return origins[mark - firstUndefined]; }

private:
  Lanes loadOne(const MemoryView &view, int64_t element);
  void noteRead(Memory &memory, int64_t element);
  void noteWrite(Memory &memory, int64_t element);
  bool isShared(const Memory &memory) const { return tasks.current() != memory.owner; }

  std::vector<std::string> origins; // of marks from firstUndefined on
};

/// An integer input: extreme values, and small ones.
int64_t drawInteger(Halide::Type type, uint64_t seed, uint64_t number);

} // namespace kiln::halide
