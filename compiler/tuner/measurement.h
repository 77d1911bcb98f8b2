/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The protocol of `kiln tune --runner`, which runs and times kernels on another machine: it and kiln_measurement_main()
 * there communicate through pipes. All values are 64-bit numbers, and byte strings prefixed by their length,
 * little-endian. The program sends KILN_MEASURE_MAGIC, then answers:
 *
 *   CPUS                                                -> number of CPUs
 *   FILE   path                                         -> its bytes; none if there is no such file
 *   BEGIN  threads, bytes of scratch of one worker      -> number of workers
 *   DATA   whether calls alternate the task order,      -> 0
 *          number of words of a call, number of
 *          dimensions, dimensions, number of tensors;
 *          for each: whether it is a result, copies, rank,
 *          dimensions, bytes (of a result only their number)
 *   CALL   kernel, 0 or 1                               -> its status, and if that is 0 each result's bytes
 *   TIME   kernel, repeats                              -> nanoseconds of all repeats
 *
 * Each DATA replaces the previous one. The calls of TIME rotate through the copies of a tensor. */
#ifndef KILN_MEASUREMENT_H
#define KILN_MEASUREMENT_H

#include "runtime/src/core/model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_MEASURE_MAGIC UINT64_C(0x316C72546E6C694B) /* "KilnTrl1" */
enum {
  KILN_MEASURE_CPUS,
  KILN_MEASURE_FILE,
  KILN_MEASURE_BEGIN,
  KILN_MEASURE_DATA,
  KILN_MEASURE_CALL,
  KILN_MEASURE_TIME
};

/* Generated for each measurement: calls one of its kernels. `words`: the dimensions, then the address and the
 * dimensions of each tensor. */
int32_t kiln_measurement_call(uint64_t kernel, kiln_worker_t *worker, const uint64_t *words);

/* Serves requests until the end of standard input. Returns 0, or 1 if there is no memory, which it reports on
 * standard error. */
int32_t kiln_measurement_main(void);

#ifdef __cplusplus
}
#endif
#endif /* KILN_MEASUREMENT_H */
