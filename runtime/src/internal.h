// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* What the runtime's own files share, in parts. Every name keeps the kiln_ prefix, since the emitter renames all of
 * them to the model's when it makes an archive. Nothing here is seen by a user. */
#ifndef KILN_INTERNAL_H
#define KILN_INTERNAL_H

#include "bind.h"
#include "convert.h"
#include "cpu.h"
#include "instance.h"
#include "json.h"
#include "pack.h"
#include "sharding.h"

#ifdef __cplusplus
extern "C" {
#endif

/* computed.c */

/* What the elements of a tensor are computed from, by a form that is given them as parts. */
typedef struct kiln_computed_t {
  uint64_t key, seed;
  float number;
  uint32_t kind;
} kiln_computed_t;
/* `digest` is that of the tensor's name. */
typedef void (*kiln_describe_t)(const kiln_weight_t *weight, uint64_t digest, uint64_t seed, kiln_computed_t *computed);
/* Binds weights whose elements the form computes. */
kiln_status_t kiln_bind_computed(kiln_model_t *model, const kiln_form_t *form, kiln_describe_t describe, uint64_t seed,
                                 kiln_error_t *error);

/* counter.c */

/* Elements of an input of a call with these extents, computed from its name and a seed. */
void kiln_counter_fill(const kiln_argument_t *argument, const int64_t *extents, uint64_t seed, void *to,
                       uint64_t count);
/* Binds weights that are computed from their names. */
kiln_status_t kiln_bind_counter(kiln_model_t *model, kiln_error_t *error);

/* trace.c */

/* A traced call. */
typedef struct kiln_tracing_t {
  const kiln_trace_t *trace;
  kiln_event_t event; /* of the kernel that runs */
  /* Waits for the kernels that worker 0 has launched; null: they are done when they return. */
  void (*wait)(kiln_worker_t *worker);
  kiln_worker_t *worker;
} kiln_tracing_t;
/* Of an entry; null if the call is not traced, else *tracing. */
kiln_tracing_t *kiln_trace_call(kiln_tracing_t *tracing, const kiln_call_t *call, const kiln_entry_t *entry);
/* Around a task of the kernel that runs. */
void kiln_trace_begin_task(const kiln_tracing_t *tracing, kiln_event_t *event, int64_t task, uint32_t worker);
void kiln_trace_end_task(const kiln_tracing_t *tracing, const kiln_event_t *event);

/* run.c */

/* The value of an extent, and the elements of an argument, with the extents of a call. */
int64_t kiln_extent_value(const kiln_extent_t *extent, const int64_t *extents);
int64_t kiln_argument_elements(const kiln_argument_t *argument, const int64_t *extents);
/* Calls an entry, or what is after the last one, of whose extents it is known that they are right. */
kiln_status_t kiln_run_checked(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry,
                               const kiln_extents_t *extents, void *const *arguments);
/* Runs the body of an entry: its result as a status. */
kiln_status_t kiln_body_run(const kiln_model_t *model, uint32_t entry, const kiln_frame_t *frame, kiln_error_t *error);

#ifdef __cplusplus
}
#endif
#endif /* KILN_INTERNAL_H */
