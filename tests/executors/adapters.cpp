// SPDX-License-Identifier: Apache-2.0
#include "adapters.h"

#include "job_system.h"

#include "kiln/executors/threads.h"
#ifdef KILN_HAS_TBB
#include "kiln/executors/tbb.h"
#endif

extern "C" kiln_executor_t kiln_test_openmp_executor(uint32_t workers);

namespace kiln_test {

using Executor = std::shared_ptr<const kiln_executor_t>;

static Executor threads(uint32_t workers) {
  auto made = std::make_shared<kiln::ThreadExecutor>(workers);
  return {made, made->get()};
}

static Executor jobs(uint32_t workers) {
  struct Made {
    explicit Made(uint32_t workers)
        : system(workers),
          executor(workers, [this](kiln::JobExecutor::Job job, void *data) { system.submit({job, data}); }) {}
    JobSystem system;
    kiln::JobExecutor executor;
  };
  auto made = std::make_shared<Made>(workers);
  return {made, made->executor.get()};
}

static Executor openmp([[maybe_unused]] uint32_t workers) {
#ifdef KILN_HAS_OPENMP
  return std::make_shared<const kiln_executor_t>(kiln_test_openmp_executor(workers));
#else
  return nullptr;
#endif
}

static Executor tbb([[maybe_unused]] uint32_t workers) {
#ifdef KILN_HAS_TBB
  struct Made {
    explicit Made(uint32_t workers) : arena(static_cast<int>(workers)), executor(arena) {}
    ::tbb::task_arena arena;
    kiln::TbbExecutor executor;
  };
  auto made = std::make_shared<Made>(workers);
  return {made, made->executor.get()};
#else
  return nullptr;
#endif
}

const std::array<Adapter, 4> adapters = {{{"jobs", jobs}, {"openmp", openmp}, {"tbb", tbb}, {"threads", threads}}};

} // namespace kiln_test
