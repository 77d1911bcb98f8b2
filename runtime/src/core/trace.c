// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Notifies a trace of the kernels of a call and their tasks. */
#include "core/run.h"

kiln_tracing_t *kiln_trace_call(kiln_tracing_t *tracing, const kiln_call_t *call, const kiln_entry_t *entry) {
  if (!call->trace)
    return NULL;
  *tracing = (kiln_tracing_t){.trace = call->trace, .event = {.entry = entry->name}};
  return tracing;
}

void kiln_trace_begin(kiln_tracing_t *tracing, const char *kernel, const char *layer, int64_t number, uint64_t flops,
                      uint64_t bytes) {
  tracing->event = (kiln_event_t){tracing->event.entry, kernel, layer, number, flops, bytes, -1, 0};
  tracing->trace->begin(tracing->trace->self, &tracing->event);
}

void kiln_trace_end(kiln_tracing_t *tracing) {
  if (tracing->wait)
    tracing->wait(tracing->worker);
  tracing->trace->end(tracing->trace->self, &tracing->event);
}

void kiln_trace_begin_task(const kiln_tracing_t *tracing, kiln_event_t *event, int64_t task, uint32_t worker) {
  *event = tracing->event;
  event->task = task;
  event->worker = worker;
  tracing->trace->begin(tracing->trace->self, event);
}

void kiln_trace_end_task(const kiln_tracing_t *tracing, const kiln_event_t *event) {
  tracing->trace->end(tracing->trace->self, event);
}
