/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* How `kiln tune --runner` has kernels called and timed on another machine: what it and kiln_trial_main() there tell
 * each other through pipes. All are numbers of 64 bits, and bytes behind their number, little-endian. The program
 * begins with KILN_TRIAL_MAGIC, then answers:
 *
 *   CPUS                                                -> how many there are
 *   FILE   path                                         -> its bytes; none if there is no such file
 *   BEGIN  threads, bytes of scratch of one worker      -> how many workers there are
 *   DATA   whether calls turn the order of tasks, how   -> 0
 *          many words a call has, number of extents,
 *          extents, number of tensors, and of each
 *          whether it is a result, copies, rank, extents,
 *          and its bytes, of a result only their number
 *   CALL   kernel, 0 or 1                               -> its status, and if that is 0 each result's bytes
 *   TIME   kernel, repeats                              -> nanoseconds of all of these
 *
 * Each DATA takes the place of the one before. Copies of a tensor take turns with the calls of TIME. */
#ifndef KILN_TRIAL_H
#define KILN_TRIAL_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_TRIAL_MAGIC UINT64_C(0x316C72546E6C694B) /* "KilnTrl1" */
enum { KILN_TRIAL_CPUS, KILN_TRIAL_FILE, KILN_TRIAL_BEGIN, KILN_TRIAL_DATA, KILN_TRIAL_CALL, KILN_TRIAL_TIME };

/* Made for each trial: calls one of its kernels. `words`: the extents, and of each tensor its address and its
 * extents. */
int32_t kiln_trial_call(uint64_t kernel, kiln_worker_t *worker, const uint64_t *words);

/* Answers until the standard input ends. Returns 0, or 1 if there is no memory, which it says on standard error. */
int32_t kiln_trial_main(void);

#ifdef __cplusplus
}
#endif
#endif /* KILN_TRIAL_H */
