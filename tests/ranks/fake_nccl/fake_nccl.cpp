// SPDX-License-Identifier: Apache-2.0
//
// NCCL between threads. The thread of a stream runs the operations of a group when their turn comes in the stream: a
// collective waits for all ranks, and a send waits for its receive. A stream can therefore hang as a real one does,
// until the comm is aborted. A nonblocking comm stays in progress for a few polls, and initially until all ranks have
// called; its work is enqueued in the stream only then.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fake_cuda.h"
#include "fake_nccl.h"

namespace {

enum class Kind { allReduce, reduceScatter, allGather, send, receive };

struct Operation {
  Kind kind;
  const char *from;
  char *to;
  size_t count;
  ncclDataType_t type;
  int peer;
};

struct Message {
  std::vector<char> data;
  size_t count;
  ncclDataType_t type;
  bool isTaken = false;
};

/// State that the comms of one id share. The mutex guards all of it.
struct Clique {
  explicit Clique(int size) : size(size), posted(size) {}
  int size;
  std::mutex mutex;
  std::condition_variable changed;
  int arrived = 0, joined = 0, connected = 0, finalized = 0;
  unsigned generation = 0;
  std::vector<Operation> posted; // by rank
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Message>>> messages;
};

std::atomic<int> violationCount = 0;

ncclResult_t violate(const char *words) {
  std::fprintf(stderr, "fake of NCCL: %s\n", words);
  ++violationCount;
  return ncclInvalidUsage;
}

size_t bytesOf(ncclDataType_t type) {
  return type == ncclInt32 || type == ncclFloat32 ? 4 : type == ncclFloat16 || type == ncclBfloat16 ? 2 : 1;
}

/// Reads an element as an integer. The tests use small integers, which every type represents exactly.
int number(const char *from, ncclDataType_t type, size_t at) {
  uint32_t bits = 0;
  std::memcpy(&bits, from + at * bytesOf(type), bytesOf(type));
  if (type == ncclInt8)
    return static_cast<int8_t>(bits);
  if (type == ncclInt32)
    return static_cast<int32_t>(bits);
  if (type == ncclBfloat16)
    bits <<= 16;
  if (type == ncclFloat16)
    bits = bits & 0x7FFF ? (bits & 0x8000) << 16 | ((bits & 0x7FFF) + (112 << 10)) << 13 : 0;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<int>(value);
}

void put(char *to, ncclDataType_t type, size_t at, int value) {
  uint32_t bits;
  const auto real = static_cast<float>(value);
  std::memcpy(&bits, &real, sizeof bits);
  if (type == ncclInt8 || type == ncclInt32)
    bits = static_cast<uint32_t>(value);
  if (type == ncclBfloat16)
    bits >>= 16;
  if (type == ncclFloat16)
    bits = value ? (bits >> 16 & 0x8000) | (((bits & 0x7FFFFFFF) >> 13) - (112 << 10)) : 0;
  std::memcpy(to + at * bytesOf(type), &bits, bytesOf(type));
}

} // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank;
  bool isBlocking;
  bool isGone = false, isFinalized = false, hasConnected = false; // aborted or destroyed
  int looks = 0;                                                  // polls for which it stays in progress
  std::function<bool()> isReady; // a further condition that it waits for after these polls
  std::function<void()> then;    // runs once the condition holds
  ncclResult_t error = ncclSuccess;
  std::string words;

  /// Waits for a condition; returns false if the comm was aborted. The caller holds the mutex.
  template <class Condition> bool wait(std::unique_lock<std::mutex> &lock, Condition condition) {
    clique->changed.wait(lock, [&] { return isGone || condition(); });
    return !isGone;
  }

  /// A barrier of all ranks.
  bool meet(std::unique_lock<std::mutex> &lock) {
    const unsigned generation = clique->generation;
    if (isGone)
      return false;
    if (++clique->arrived == clique->size) {
      clique->arrived = 0;
      ++clique->generation;
      clique->changed.notify_all();
    }
    if (wait(lock, [&] { return clique->generation != generation; }))
      return true;
    clique->arrived -= clique->generation == generation;
    return false;
  }

  std::vector<char> result(const Operation &own) const {
    const size_t bytes = own.count * bytesOf(own.type);
    std::vector<char> all(bytes);
    if (own.kind == Kind::allGather) {
      all.clear();
      for (const Operation &each : clique->posted)
        all.insert(all.end(), each.from, each.from + bytes);
      return all;
    }
    const size_t first = own.kind == Kind::allReduce ? 0 : rank * own.count;
    for (size_t i = 0; i < own.count; ++i) {
      int sum = 0;
      for (const Operation &each : clique->posted)
        sum += number(each.from, own.type, first + i);
      put(all.data(), own.type, i, sum);
    }
    return all;
  }

  void collect(const Operation &own) {
    std::unique_lock lock(clique->mutex);
    clique->posted[rank] = own;
    if (!meet(lock))
      return;
    for (const Operation &each : clique->posted)
      if (each.kind != own.kind || each.count != own.count || each.type != own.type)
        violate("ranks call different collectives");
    const std::vector<char> all = result(own);
    if (!meet(lock)) // all have read
      return;
    std::copy(all.begin(), all.end(), own.to);
    meet(lock);
  }

  /// Runs the sends and receives of one group concurrently.
  void exchange(const std::vector<Operation> &operations) {
    std::unique_lock lock(clique->mutex);
    std::vector<std::shared_ptr<Message>> sent;
    for (const Operation &each : operations) {
      if (each.kind != Kind::send)
        continue;
      const std::vector<char> data(each.from, each.from + each.count * bytesOf(each.type));
      sent.push_back(std::make_shared<Message>(Message{data, each.count, each.type}));
      clique->messages[{rank, each.peer}].push_back(sent.back());
    }
    clique->changed.notify_all();
    for (const Operation &each : operations) {
      if (each.kind != Kind::receive)
        continue;
      auto &queue = clique->messages[{each.peer, rank}];
      if (!wait(lock, [&] { return !queue.empty(); }))
        return;
      Message &message = *queue.front();
      if (message.count != each.count || message.type != each.type)
        violate("another count or type is sent than received");
      std::copy(message.data.begin(), message.data.end(), each.to);
      message.isTaken = true;
      queue.pop_front();
      clique->changed.notify_all();
    }
    wait(lock, [&] { return std::all_of(sent.begin(), sent.end(), [](const auto &each) { return each->isTaken; }); });
  }

  void run(const std::vector<Operation> &operations) {
    if (operations[0].kind == Kind::send || operations[0].kind == Kind::receive)
      exchange(operations);
    else
      collect(operations[0]);
  }

  /// Checks that the comm may be used: while it is in progress, only polling and aborting are permitted.
  ncclResult_t use() const {
    if (isGone)
      return violate("a comm is used that was aborted or destroyed");
    return looks || isReady ? violate("a comm is used that is in progress") : ncclSuccess;
  }

  /// Puts a nonblocking comm in progress; runs `thenDoes` at once on a blocking comm.
  ncclResult_t progress(std::function<bool()> wantsTo, std::function<void()> thenDoes) {
    if (isBlocking) {
      thenDoes();
      return ncclSuccess;
    }
    looks = 3;
    isReady = std::move(wantsTo);
    then = std::move(thenDoes);
    return ncclInProgress;
  }

  ncclResult_t fail(ncclResult_t result, const char *what) {
    words = what;
    return result;
  }
};

namespace {

std::mutex everything; // guards the following variables
std::map<int, std::shared_ptr<Clique>> cliques;
std::list<ncclComm> comms; // including destroyed ones, to detect their use
thread_local int depth = 0;
thread_local ncclComm_t groupComm = nullptr;
thread_local cudaStream_t groupStream = nullptr;
thread_local std::vector<Operation> group;
thread_local ncclResult_t groupResult = ncclSuccess;

ncclResult_t check(ncclComm_t comm, const Operation &what) {
  const size_t bytes = what.count * bytesOf(what.type), parts = comm->clique->size;
  const bool gathers = what.kind == Kind::allGather, scatters = what.kind == Kind::reduceScatter;
  const std::lock_guard lock(comm->clique->mutex);
  if (comm->use())
    return ncclInvalidUsage;
  if (what.type < 0 || what.type >= ncclNumTypes || what.peer < 0 || what.peer >= comm->clique->size)
    return comm->fail(ncclInvalidArgument, "no such type or peer");
  if (what.kind != Kind::receive && !kiln::test::isOnDevice(what.from, scatters ? parts * bytes : bytes))
    return comm->fail(ncclInvalidArgument, "what is sent is not on the device");
  if (what.kind != Kind::send && !kiln::test::isOnDevice(what.to, gathers ? parts * bytes : bytes))
    return comm->fail(ncclInvalidArgument, "what receives is not on the device");
  if (!group.empty() && (comm != groupComm || what.kind < Kind::send || group[0].kind < Kind::send))
    return violate("the fake takes groups of sends and receives of one comm, and single collectives");
  return ncclSuccess;
}

ncclResult_t call(ncclComm_t comm, cudaStream_t stream, const Operation &what) {
  ncclGroupStart();
  const ncclResult_t result = check(comm, what);
  if (!stream || (!group.empty() && stream != groupStream))
    groupResult = violate("a group wants one stream");
  groupResult = result ? result : groupResult;
  groupComm = comm;
  groupStream = stream;
  group.push_back(what);
  const ncclResult_t ended = ncclGroupEnd();
  return result ? result : ended;
}

} // namespace

ncclResult_t ncclGroupStart(void) {
  if (depth++ == 0) {
    group.clear();
    groupResult = ncclSuccess;
  }
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
  if (--depth > 0 || group.empty())
    return ncclSuccess;
  if (groupResult)
    return groupResult;
  const ncclComm_t comm = groupComm;
  const std::shared_ptr<Clique> clique = comm->clique;
  const std::lock_guard lock(clique->mutex);
  clique->connected += !comm->hasConnected;
  comm->hasConnected = true;
  return comm->progress([clique] { return clique->connected == clique->size; },
                        [comm, stream = groupStream, operations = group] {
                          kiln::test::enqueue(stream, [=] { comm->run(operations); });
                        });
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static std::atomic<int> next = 0;
  const int number = next++;
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int count, ncclUniqueId id, int rank, ncclConfig_t *config) {
  int number;
  std::memcpy(&number, id.internal, sizeof number);
  std::shared_ptr<Clique> clique;
  {
    const std::lock_guard lock(everything);
    std::shared_ptr<Clique> &known = cliques[number];
    if (!known)
      known = std::make_shared<Clique>(count);
    clique = known;
    comms.emplace_back();
    *comm = &comms.back();
  }
  std::unique_lock lock(clique->mutex);
  (*comm)->clique = clique;
  (*comm)->rank = rank;
  (*comm)->isBlocking = config->blocking != 0;
  ++clique->joined;
  clique->changed.notify_all();
  if ((*comm)->isBlocking)
    (*comm)->wait(lock, [&] { return clique->joined == count; });
  return (*comm)->progress([clique, count] { return clique->joined == count; }, [] {});
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  const std::lock_guard lock(comm->clique->mutex);
  if (comm->isGone)
    return violate("a comm is looked at that was aborted or destroyed");
  comm->looks -= comm->looks > 0;
  if (comm->looks == 0 && comm->isReady && comm->isReady()) {
    comm->isReady = nullptr;
    comm->then();
  }
  *error = comm->error ? comm->error : comm->isReady ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const std::shared_ptr<Clique> clique = comm->clique;
  const std::lock_guard lock(clique->mutex);
  if (comm->use())
    return ncclInvalidUsage;
  comm->isFinalized = true;
  ++clique->finalized;
  return comm->progress([clique] { return clique->finalized == clique->size; }, [] {});
}

static ncclResult_t leave(ncclComm_t comm, bool isAborted) {
  const std::lock_guard lock(comm->clique->mutex);
  if (comm->isGone)
    return violate("a comm is destroyed twice");
  if (!isAborted && (comm->use() || !comm->isFinalized))
    return violate("a comm is destroyed that is not finalized");
  comm->isGone = true;
  comm->clique->changed.notify_all();
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return leave(comm, false); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return leave(comm, true); }

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  const std::lock_guard lock(comm->clique->mutex);
  *count = comm->clique->size;
  return comm->use();
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  const std::lock_guard lock(comm->clique->mutex);
  *rank = comm->rank;
  return comm->use();
}

const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclInvalidArgument:
    return "invalid argument";
  case ncclRemoteError:
    return "remote error";
  default:
    return "another error";
  }
}
const char *ncclGetLastError(ncclComm_t comm) { return comm->words.c_str(); }

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                           cudaStream_t stream) {
  return call(comm, stream,
              {Kind::allReduce, static_cast<const char *>(from), static_cast<char *>(to), count, type, 0});
}
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t,
                               ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream,
              {Kind::reduceScatter, static_cast<const char *>(from), static_cast<char *>(to), count, type, 0});
}
ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return call(comm, stream,
              {Kind::allGather, static_cast<const char *>(from), static_cast<char *>(to), count, type, 0});
}
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call(comm, stream, {Kind::send, static_cast<const char *>(from), nullptr, count, type, peer});
}
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, {Kind::receive, nullptr, static_cast<char *>(to), count, type, peer});
}

namespace kiln::test {

int violations() { return violationCount; }

void breakComm(ncclComm_t comm, ncclResult_t error, const char *words) {
  const std::lock_guard lock(comm->clique->mutex);
  comm->error = error;
  comm->words = words;
}

} // namespace kiln::test
