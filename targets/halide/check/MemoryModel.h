// SPDX-License-Identifier: Apache-2.0
//
// The memory checker's model of memory: buffers that record for each element whether it was written, and which tasks
// wrote and read it. An invalid access is thrown as a MemoryFault with a message. Tasks are the iterations of parallel
// loops, numbered in the order in which the checker runs them, one after the other.
#pragma once

#include "targets/halide/check/Lanes.h"
#include <string>
#include <vector>

namespace kiln::halide {

/// An invalid access. It is thrown, since nothing after it has a meaning.
struct MemoryFault {
  std::string words;
};

/// Thrown if a run takes more steps than allowed.
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

  /// Whether two tasks are unordered: they are in different iterations of the same run of a loop.
  bool areConcurrent(Task a, Task b) const;
  /// Returns a description: tasks 0 and 1 of the loop "out0.s0.d1.block".
  std::string describe(Task a, Task b) const;

private:
  struct Node {
    Task parent = noTask;
    uint32_t run = 0, depth = 0;
    int64_t number = 0;
  };
  /// Returns the concurrent iterations that two tasks are in; equal if there are none.
  std::pair<Task, Task> divergence(Task a, Task b) const;

  std::vector<Node> nodes{Node()};
  std::vector<std::string> runs; // names of loops
  std::vector<std::pair<uint32_t, Task>> open;
  Task now = noTask;
};

/// The role of a buffer in the kernel.
enum class MemoryRole { Argument, Result, Scratch };

struct Memory {
  MemoryRole role = MemoryRole::Scratch;
  std::string title; // argument 1, result 0, "stage2"
  Halide::Type type;
  std::vector<int64_t> shape; // outermost first; one extent for scratch
  int64_t size = 0;           // elements
  int64_t padding = 0;        // undefined elements after them, which loads may read
  uint64_t seed = 0;          // seed of the integer inputs
  std::string overwrites;     // title of the argument whose memory a result reuses
  bool isFreed = false;
  Task owner = noTask;

  std::vector<Mark> marks;     // marks of the stored elements; empty for arguments
  std::vector<int64_t> values; // stored integers
  /// The tasks other than the owner that accessed an element; empty before the first of them.
  struct Users {
    Task writer = noTask, reader = noTask, otherReader = noTask;
  };
  std::vector<Users> users;

  /// Returns a description: element (2, 4) of result 0.
  std::string describe(int64_t element) const;
};

/// The memory of a name in the statement. An argument that a result overwrites has the result's memory.
struct MemoryView {
  Memory *memory = nullptr;
  bool isArgument = false;
};

/// A null predicate means that all lanes are active.
class MemoryModel {
public:
  TaskTree tasks;

  Lanes load(const MemoryView &view, Halide::Type type, const Lanes &index, const Lanes *predicate);
  void store(const MemoryView &view, const Lanes &index, const Lanes &value, const Lanes *predicate);

  /// Makes room for the stored elements; call before the memory is used. Its owner is the current task.
  void allocate(Memory &memory);
  /// Throws if an element of a result was not written.
  void requireWritten(const Memory &memory) const;

  /// Throws if the memory has no such element. `what` describes the access: "a load reads".
  void requireInside(const Memory &memory, int64_t element, const char *what) const;
  /// Throws if a load must not read the element: it is neither in the memory nor in its padding.
  void requireReadable(const Memory &memory, int64_t element) const;
  /// Returns a mark for undefined lanes, with the reason `why`.
  Mark undefinedLane(std::string why);
  /// Throws if an active lane is undefined. `use` says what it is used for: "an index of a load of argument 1".
  void requireDefined(const Lanes &lanes, const std::string &use, const Lanes *predicate = nullptr) const;
  /// Returns the reason for a mark: "..., which was never written".
  std::string origin(Mark mark) const { return origins[mark - firstUndefined]; }

private:
  Lanes loadOne(const MemoryView &view, int64_t element);
  void noteRead(Memory &memory, int64_t element);
  void noteWrite(Memory &memory, int64_t element);
  bool isShared(const Memory &memory) const { return tasks.current() != memory.owner; }

  std::vector<std::string> origins; // reasons for the marks from firstUndefined on
};

/// Draws an integer input at random: extreme values, and small ones.
int64_t drawInteger(Halide::Type type, uint64_t seed, uint64_t number);

} // namespace kiln::halide
