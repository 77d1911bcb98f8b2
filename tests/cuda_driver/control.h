/* SPDX-License-Identifier: Apache-2.0
 *
 * How a test looks behind the fake driver and steers it. The functions are exported beside the driver's own: a test
 * opens the library that the code under test opens (RTLD_NOW; the loader gives both the same one) and takes them by
 * dlsym. Errors are CUresult values. Everything may be called from any thread.
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

/** What a client has not given back. */
typedef struct {
  unsigned contexts;           /**< by cuCtxCreate_v2 */
  unsigned primary_references; /**< retained and not released */
  unsigned modules, allocations, pinned, streams, events, graphs, executables, links;
  uint64_t allocated_bytes; /**< device memory of `allocations` */
  /** Objects that went with their context. The driver allows it; a library that shares its caller's primary context
   * must not rely on it. Those of a context with a sticky error are not counted: they cannot be given back. */
  unsigned orphans;
} kiln_fake_cuda_leaks_t;

/** What is alive at present. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_alive(kiln_fake_cuda_leaks_t *leaks);

/** As if the library were loaded anew: no object, no record, no injection, not initialised, and the configuration of
 * the environment variables. `leaks` (may be NULL): what was alive. No other call may be going on. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_reset(kiln_fake_cuda_leaks_t *leaks);

/** The machine, before cuInit. `devices` as in KILN_FAKE_CUDA_DEVICES: capabilities, each with its MiB if they are not
 * 1024, as in "9.0,8.0:64"; "none". Returns 0, or 1 for a text that it does not understand. */
KILN_FAKE_CUDA_CONTROL int kiln_fake_cuda_set_devices(const char *devices);

/** 12040 (the default) is CUDA 12.4. PTX versions follow from it, and whether the driver has cuLaunchKernelEx (11080)
 * and cuTensorMapEncodeTiled (12000): one that is not there returns CUDA_ERROR_NOT_SUPPORTED. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_set_driver_version(int version);

/** Names, separated by commas, of functions that return CUDA_ERROR_NOT_SUPPORTED. dlsym still finds them: for symbols
 * that are really not there, load the library of the folder `old`. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_set_absent(const char *functions);

/** Lazy (0, the default): only what a synchronising call waits for runs. Eager (1): before it, all other streams run as
 * far as they can. A client whose streams lack an order fails under one of them. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_set_eager(int eager);

/** Instructions of warps after which a kernel is taken to hang (CUDA_ERROR_LAUNCH_TIMEOUT); 0: the interpreter's. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_set_instruction_limit(uint64_t limit);

/** The nth call from now (1: the next one) of `function` returns `error` and does nothing else. Several injections may
 * wait at a time. "*" is any function of the driver. "kernel" is no call but the
 * run of a kernel, which then fails as if the interpreter had found something. Errors that a real driver's contexts do
 * not survive (700, 702, 710, 714 to 719) stay with the context that is current. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_inject(const char *function, unsigned nth, int error);

/** Takes back those that wait. */
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_inject_nothing(void);

/** How many injections wait for their turn: none of them, when a program that was to fail has come to that call. */
KILN_FAKE_CUDA_CONTROL unsigned kiln_fake_cuda_injections_waiting(void);

/** A call of the driver. The texts live until the next reset. */
typedef struct {
  const char *function;
  int result;
  uint64_t bytes;     /**< of an allocation, copy or memset; 0: none */
  const void *stream; /**< of asynchronous work; NULL: the legacy stream, or none */
  const char *kernel; /**< of a launch; "" for other calls */
  unsigned grid[3], block[3], cluster[3];
  unsigned shared_bytes; /**< dynamic */
} kiln_fake_cuda_call_t;

/** The calls since the last reset, in their order. Returns 0 and fills `call`, or 1 if there is no call `index`. */
KILN_FAKE_CUDA_CONTROL size_t kiln_fake_cuda_calls(void);
KILN_FAKE_CUDA_CONTROL int kiln_fake_cuda_call(size_t index, kiln_fake_cuda_call_t *call);
/** How many calls of a function there were, whatever they returned. "*": of all. */
KILN_FAKE_CUDA_CONTROL size_t kiln_fake_cuda_count(const char *function);

/** What has run, which is not what was called: work waits, and graphs run again. */
typedef struct {
  uint64_t kernels, copies; /**< memsets are copies */
  uint64_t waiting;         /**< work that is queued and has not run */
  uint64_t warp_instructions;
} kiln_fake_cuda_totals_t;
KILN_FAKE_CUDA_CONTROL void kiln_fake_cuda_totals(kiln_fake_cuda_totals_t *totals);

/** What was wrong with the work that failed last; "": nothing. Valid until the next call of it by this thread. */
KILN_FAKE_CUDA_CONTROL const char *kiln_fake_cuda_failure(void);

#ifdef __cplusplus
}
#endif
#endif
