// SPDX-License-Identifier: Apache-2.0
//
// Calls a model that several ranks and pipeline stages run together, as threads that communicate by copies.
#include "CompiledModel.h"

#include "tests/ranks/thread_ranks.h"
#include <mutex>

namespace kiln::fuzz {

namespace {

/// The communicators of a grid; a process is rank `number % ranks` of stage `number / ranks`.
class Processes {
public:
  Processes(uint32_t ranks, uint32_t stages) : numRanks(ranks), numStages(stages) {
    for (uint32_t stage = 0; stage < stages; ++stage)
      ofStages.emplace_back(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank)
      ofRanks.emplace_back(stages).waitsForReceipt = true;
  }

  /// Returns the error message of the first process that fails; the others then get the error that it is lost.
  std::string run(llvm::function_ref<llvm::Error(size_t process, const kiln_communicator_t *ranks,
                                                 const kiln_communicator_t *stages)>
                      call) {
    std::string words;
    std::mutex mutex;
    test::ThreadRanks(numRanks * numStages).run([&](uint32_t process) {
      const uint32_t rank = process % numRanks, stage = process / numRanks;
      const kiln_communicator_t own = ofStages[stage].communicator(rank), along = ofRanks[rank].communicator(stage);
      if (llvm::Error error = call(process, numRanks > 1 ? &own : nullptr, numStages > 1 ? &along : nullptr)) {
        const std::string said = llvm::toString(std::move(error));
        const std::lock_guard lock(mutex);
        words = words.empty() ? said : words;
        ofStages[stage].lose(rank);
        ofRanks[rank].lose(stage);
      }
    });
    return words;
  }

private:
  const uint32_t numRanks, numStages;
  std::deque<test::ThreadRanks> ofStages, ofRanks; // the ranks of each stage, the stages of each rank
};

} // namespace

llvm::Expected<CompiledModel::Buffers>
CompiledModel::Session::callOnProcesses(size_t entry, const interpreter::Extents &extents, const Buffers &inputs) {
  const size_t count = model.handles.size(), last = count - model.ranks;
  std::vector<Buffers> outputs(count);
  const std::string words =
      Processes(model.ranks, static_cast<uint32_t>(count / model.ranks))
          .run([&](size_t process, const kiln_communicator_t *ranks, const kiln_communicator_t *stages) {
            auto result = callOnHost(entry, extents, inputs, {process, ranks, stages});
            if (result)
              outputs[process] = std::move(*result);
            return result.takeError();
          });
  if (!words.empty())
    return llvm::createStringError(words);
  for (size_t process = 0; process < last; ++process)
    for (const std::vector<char> &bytes : outputs[process])
      if (llvm::any_of(bytes, [&](char byte) { return static_cast<unsigned char>(byte) != style.poison; }))
        return llvm::createStringError("stage " + std::to_string(process / model.ranks) + " wrote to a result");
  for (size_t process = last; process < count; ++process)
    if (outputs[process] != outputs[last])
      return llvm::createStringError("rank " + std::to_string(process - last) + " has other results than rank 0");
  return outputs[last];
}

} // namespace kiln::fuzz
