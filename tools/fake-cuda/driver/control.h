/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions with which a test inspects and controls the fake driver. The library exports them in addition to the
 * driver's own: a test opens the library that the code under test opens (RTLD_NOW; the loader gives both the same one)
 * and finds them by dlsym. Errors are CUresult values. All functions may be called from any thread.
 *
 *   auto inject = (decltype(&kiln_fake_cuda_inject))dlsym(library, "kiln_fake_cuda_inject");
 */
#ifndef KILN_FAKE_CUDA_CONTROL_H
#define KILN_FAKE_CUDA_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#define KILN_FAKE_CUDA_CONTROL __attribute__((visibility("default")))

/** Objects that a client has not released. */
typedef struct {
  unsigned contexts;           /**< by cuCtxCreate_v2 */
  unsigned primary_references; /**< retained and not released */
  unsigned modules, allocations, pinned, streams, events, graphs, executables, links;
  uint64_t allocated_bytes; /**< device memory of `allocations` */
  /** Objects that were destroyed with their context. The driver allows it; a library that shares its caller's
   * primary context must not rely on it. Those of a context with a sticky error are not counted: they cannot be
   * released. */
  unsigned orphans;
} kiln_fake_cuda_leaks_t;

/** Counts the objects that exist at present. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_alive(kiln_fake_cuda_leaks_t *leaks);

/** Resets to the state after loading the library: no object, no record, no injection, not initialised, and the
 * configuration of the environment variables. `leaks` (may be NULL) receives the objects that existed. No other call
 * may be in progress. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_reset(kiln_fake_cuda_leaks_t *leaks);

/** Sets the machine, before cuInit. `devices` as in KILN_FAKE_CUDA_DEVICES: capabilities, each with its MiB if they
 * are not 1024, as in "9.0,8.0:64"; "none". Returns 0, or 1 if the text cannot be parsed. */
KILN_FAKE_CUDA_CONTROL int kiln_fake_cuda_set_devices(const char *devices);

/** Sets the driver version. 12040 (the default) is CUDA 12.4. It determines the supported PTX versions, and whether
 * the driver has cuLaunchKernelEx (11080) and cuTensorMapEncodeTiled (12000): a missing function returns
 * CUDA_ERROR_NOT_SUPPORTED. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_set_driver_version(int version);

/** Sets the functions, by names separated by commas, that return CUDA_ERROR_NOT_SUPPORTED. dlsym still finds them:
 * for missing symbols, load the library of the folder `old`. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_set_absent(const char *functions);

/** Sets the order of streams. Lazy (0, the default): only the work that a synchronising call waits for runs. Eager
 * (1): before it, all other streams run as far as they can. A client whose streams lack an order fails in one of the
 * modes. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_set_eager(int eager);

/** Sets the number of warp instructions after which a kernel is considered hung (CUDA_ERROR_LAUNCH_TIMEOUT); 0
 * restores the interpreter's limit. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_set_instruction_limit(uint64_t limit);

/** Makes the nth call from now (1: the next one) of `function` return `error` and do nothing else. Several
 * injections may be pending. "*" matches any function of the driver. "kernel" matches no call but the execution of a
 * kernel, which then fails as if the interpreter had found an error. Errors that a real driver's contexts do not
 * survive (700, 702, 710, 714 to 719) become sticky in the current context. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_inject(const char *function, unsigned nth, int error);

/** Removes the pending injections. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_inject_nothing(void);

/** Returns the number of pending injections. It is 0 once the program has made the calls that were to fail. */
KILN_FAKE_CUDA_CONTROL unsigned kiln_fake_cuda_injections_waiting(void);

/** A recorded call of the driver. The texts live until the next reset. */
typedef struct {
  const char *function;
  int result;
  uint64_t bytes;     /**< of an allocation, copy or memset; else 0 */
  const void *stream; /**< of asynchronous work; NULL: the legacy stream, or none */
  const char *kernel; /**< of a launch; "" for other calls */
  unsigned grid[3], block[3], cluster[3];
  unsigned shared_bytes; /**< dynamic shared memory */
} kiln_fake_cuda_call_t;

/** The calls since the last reset, in their order. kiln_fake_cuda_call returns 0 and fills `call`, or returns 1 if
 * there is no call `index`. */
KILN_FAKE_CUDA_CONTROL size_t kiln_fake_cuda_calls(void);
KILN_FAKE_CUDA_CONTROL int kiln_fake_cuda_call(size_t index, kiln_fake_cuda_call_t *call);
/** Returns how many calls of a function there were, whatever they returned. "*" counts all calls. */
KILN_FAKE_CUDA_CONTROL size_t kiln_fake_cuda_count(const char *function);

/** Counts of executed work, which differ from those of calls: work is queued, and graphs run repeatedly. */
typedef struct {
  uint64_t kernels, copies; /**< memsets are copies */
  uint64_t waiting;         /**< work that is queued and has not run */
  uint64_t warp_instructions;
} kiln_fake_cuda_totals_t;
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_totals(kiln_fake_cuda_totals_t *totals);

/** Returns the error message of the work that failed last, or "". Valid until this thread's next call of this
 * function. */
KILN_FAKE_CUDA_CONTROL const char *kiln_fake_cuda_failure(void);

#ifdef __cplusplus
}
#endif
#endif
