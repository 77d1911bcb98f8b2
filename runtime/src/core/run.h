// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Calls of entries, run.c, and their traces, trace.c. */
#ifndef KILN_RUN_H
#define KILN_RUN_H

#include "core/instance.h"

#ifdef __cplusplus
extern "C" {
#endif

/* trace.c */

/* A traced call. */
typedef struct kiln_tracing_t {
  const kiln_trace_t *trace;
  kiln_event_t event; /* of the running kernel */
  /* Waits for the kernels that worker 0 has launched; null: kernels are synchronous. */
  void (*wait)(kiln_worker_t *worker);
  kiln_worker_t *worker;
} kiln_tracing_t;
/* Initialises *tracing for a call of an entry and returns it; null if the call is not traced. */
kiln_tracing_t *kiln_trace_call(kiln_tracing_t *tracing, const kiln_call_t *call, const kiln_entry_t *entry);
/* Called around a task of the running kernel. */
void kiln_trace_begin_task(const kiln_tracing_t *tracing, kiln_event_t *event, int64_t task, uint32_t worker);
void kiln_trace_end_task(const kiln_tracing_t *tracing, const kiln_event_t *event);

/* run.c */

/* The value of a dimension, and the number of elements of an argument, for the dimensions of a call. */
int64_t kiln_extent_value(const kiln_extent_t *extent, const int64_t *extents);
int64_t kiln_argument_elements(const kiln_argument_t *argument, const int64_t *extents);
/* Runs an entry, or the body after the last entry, with dimensions that have been checked. */
kiln_status_t kiln_run_checked(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry,
                               const kiln_extents_t *extents, void *const *arguments);
/* Runs the body of an entry and returns its result as a status. */
kiln_status_t kiln_body_run(const kiln_model_t *model, uint32_t entry, const kiln_frame_t *frame, kiln_error_t *error);

#ifdef __cplusplus
}
#endif
#endif /* KILN_RUN_H */
