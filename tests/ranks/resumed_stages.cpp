// SPDX-License-Identifier: Apache-2.0
// Three or four pipeline stages of a training of five layers, for resumed_stages.sh. `resumed_stages begin FOLDER`:
// trains half of the steps, saves, and trains the others. `resumed_stages resume FOLDER`: resumes from the checkpoint,
// possibly with another number of stages, and must get the same numbers.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "../read_file.h"
#include "kiln/communicators/mpi.h"
#include "trained.h"
#include "trained5.h"
#include "trained5_stages3.h"
#include "trained5_stages4.h"

using namespace kiln::test;
using kiln::testing::readFile;

namespace {

KILN_TRAINED(trained5, TRAINED5);
KILN_TRAINED_TOGETHER(trained5_stages3, TRAINED5_STAGES3);
KILN_TRAINED_TOGETHER(trained5_stages4, TRAINED5_STAGES4);

constexpr auto half = static_cast<int32_t>(steps / 2), all = static_cast<int32_t>(steps);

/// Losses and norms of the second half, and the number of stages that computed them.
struct Results {
  uint32_t stages = 0;
  float numbers[2 * (steps - steps / 2)] = {};
};

template <class Api> class Resumed {
public:
  Resumed(const Inputs &inputs, const kiln_communicator_t &stages, std::string folder)
      : inputs(inputs), stages(stages), folder(std::move(folder)), process(inputs, {.stages = &stages}) {}

  void begin() {
    process.train(half);
    save("half");
    process.train(all);
    save("end");
    const Results own = results();
    if (stages.rank == 0)
      std::ofstream(folder + "/results", std::ios::binary).write(reinterpret_cast<const char *>(&own), sizeof own);
  }
  /// Whether the resumed training ends as the uninterrupted one: bit for bit if the number of stages is the same.
  bool resume() {
    load(process, "half");
    process.train(all);
    save("again");
    Results wanted;
    std::ifstream(folder + "/results", std::ios::binary).read(reinterpret_cast<char *>(&wanted), sizeof wanted);
    const Results own = results();
    if (wanted.stages == stages.size)
      return std::memcmp(&own, &wanted, sizeof own) == 0 && readFile(folder + "/again") == readFile(folder + "/end");
    return isNear(own, wanted) && isOfOneProcess("half") && isOfOneProcess("again");
  }

private:
  template <class Process> void load(Process &into, const std::string &name) {
    check(Process::Library::load(into.model.get(), into.call.arena, &into.training, (folder + "/" + name).c_str(),
                                 &into.error),
          into.error);
  }
  void save(const std::string &name) {
    check(Api::save(process.model.get(), &process.call, &process.training,
                    stages.rank ? nullptr : (folder + "/" + name).c_str()),
          process.error);
  }
  /// Whether one process that loads the file saves the same bytes.
  bool isOfOneProcess(const std::string &name) {
    if (stages.rank != 0)
      return true;
    TrainedProcess<trained5> one(inputs);
    load(one, name);
    const std::string path = folder + "/one";
    check(trained5::saveAlone(one.model.get(), one.call.arena, &one.training, path.c_str(), &one.error), one.error);
    return !readFile(path).empty() && readFile(path) == readFile(folder + "/" + name);
  }
  Results results() const {
    Results own{stages.size};
    const size_t count = std::size(own.numbers);
    std::copy(process.results.end() - count, process.results.end(), own.numbers);
    return own;
  }
  static bool isNear(const Results &own, const Results &wanted) {
    for (size_t i = 0; i < std::size(own.numbers); ++i)
      if (!(std::abs(own.numbers[i] - wanted.numbers[i]) <= 1e-4F * std::abs(wanted.numbers[i]) + 1e-5F))
        return false;
    return true;
  }
  static void check(kiln_status_t status, const kiln_error_t &error) {
    if (status)
      throw std::runtime_error(error.message);
  }

  const Inputs &inputs;
  const kiln_communicator_t &stages;
  const std::string folder;
  TrainedProcess<Api> process;
};

template <class Api> bool run(const std::string &what, const kiln_communicator_t &stages, const std::string &folder) {
  const Inputs inputs(1, 4);
  Resumed<Api> resumed(inputs, stages, folder);
  if (what != "begin")
    return resumed.resume();
  resumed.begin();
  return true;
}

} // namespace

int main(int argc, char **argv) {
  int isWrong = 1, sum = 0;
  MPI_Init(&argc, &argv);
  kiln_mpi_t mpi;
  const kiln_communicator_t stages = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, 20000);
  try {
    isWrong = argc != 3 || !(stages.size == 3 ? run<trained5_stages3>(argv[1], stages, argv[2])
                                              : run<trained5_stages4>(argv[1], stages, argv[2]));
    if (isWrong)
      std::printf("stage %u of %u ends otherwise\n", stages.rank, stages.size);
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "stage %u of %u: %s\n", stages.rank, stages.size, failure.what());
  }
  kiln_mpi_release(&mpi);
  MPI_Allreduce(&isWrong, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return sum;
}
