/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Writes the kernels of a call to a file that Chrome (chrome://tracing) and Perfetto (ui.perfetto.dev) display. C11
 * and C++11, self-contained: include a model's header first, or have kiln/runtime.h in the include path.
 *
 *   static kiln_chrome_moment_t moments[4096];
 *   kiln_chrome_trace_t trace;
 *   kiln_chrome_trace_begin(&trace, moments, 4096);
 *   kiln_call_t call = {.arena = arena, .arena_bytes = sizeof arena, .trace = &trace.trace};
 *   gpt_forward(model, &call, count, tokens, logits);
 *   kiln_chrome_trace_write(&trace, "trace.json");
 *
 * Recording neither allocates nor takes a lock. Events beyond the capacity are counted and dropped. */
#ifndef KILN_CHROME_TRACE_H
#define KILN_CHROME_TRACE_H

#ifndef KILN_RUNTIME_H
#include "kiln/runtime.h"
#endif
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The begin or the end of a kernel or task. */
typedef struct kiln_chrome_moment_t {
  kiln_event_t event;
  int64_t nanoseconds;
  bool is_end;
} kiln_chrome_moment_t;

/* A trace of consecutive calls. Its address is `self` of its kiln_trace_t, so it must not move while calls use it. */
typedef struct kiln_chrome_trace_t {
  kiln_trace_t trace;
  kiln_chrome_moment_t *moments; /* owned by the caller */
  size_t capacity, count;        /* count: all moments, including dropped ones */
} kiln_chrome_trace_t;

/* Stores a moment with the current time, unless the memory is full. Several threads may call it. */
KILN_INLINE void kiln_chrome_note(kiln_chrome_trace_t *trace, const kiln_event_t *event, bool is_end) {
  const size_t at = __atomic_fetch_add(&trace->count, 1, __ATOMIC_RELAXED);
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  if (at >= trace->capacity)
    return;
  trace->moments[at].event = *event;
  trace->moments[at].nanoseconds = KILN_CAST(int64_t, now.tv_sec) * 1000000000 + now.tv_nsec;
  trace->moments[at].is_end = is_end;
}
/* The callback of kiln_trace_t for the beginning of an event. */
KILN_INLINE void kiln_chrome_begin(void *self, const kiln_event_t *event) {
  kiln_chrome_note(KILN_CAST(kiln_chrome_trace_t *, self), event, false);
}
/* The same for the end of an event. */
KILN_INLINE void kiln_chrome_end(void *self, const kiln_event_t *event) {
  kiln_chrome_note(KILN_CAST(kiln_chrome_trace_t *, self), event, true);
}

/* Begins a trace in the caller's memory; pass &trace->trace in kiln_call_t. Calling this again discards earlier
 * moments. */
KILN_INLINE void kiln_chrome_trace_begin(kiln_chrome_trace_t *trace, kiln_chrome_moment_t *moments, size_t capacity) {
  trace->trace.self = trace;
  trace->trace.begin = kiln_chrome_begin;
  trace->trace.end = kiln_chrome_end;
  trace->moments = moments;
  trace->capacity = capacity;
  trace->count = 0;
}

/* Formats the layer of an event with its number, "h.3.mlp.fc1", truncated to `bytes`. If the layer is nested in
 * several stacks, the number counts over all of them and is appended. Returns text. */
KILN_INLINE const char *kiln_event_layer(const kiln_event_t *event, char *text, size_t bytes) {
  const char *hole = strstr(event->layer, "{}");
  if (!hole || event->number < 0)
    snprintf(text, bytes, "%s", event->layer);
  else if (strstr(hole + 2, "{}"))
    snprintf(text, bytes, "%s %" PRId64, event->layer, event->number);
  else
    snprintf(text, bytes, "%.*s%" PRId64 "%s", KILN_CAST(int, hole - event->layer), event->layer, event->number,
             hole + 2);
  return text;
}

/* Writes the file. Returns 0, or -1 with errno if it cannot be written. Each worker is a track; tasks are nested in
 * kernels. */
KILN_INLINE int kiln_chrome_trace_write(const kiln_chrome_trace_t *trace, const char *path) {
  FILE *file = fopen(path, "w");
  const size_t count = trace->count < trace->capacity ? trace->count : trace->capacity;
  char layer[256];
  bool is_wrong = false;
  if (!file)
    return -1;
  fprintf(file, "{\"otherData\": {\"left out\": %zu}, \"traceEvents\": [", trace->count - count);
  for (size_t i = 0; i < count; ++i) {
    const kiln_chrome_moment_t *moment = &trace->moments[i];
    const kiln_event_t *event = &moment->event;
    const int64_t since = moment->nanoseconds - trace->moments[0].nanoseconds;
    fprintf(file, "%s\n{\"ph\": \"%c\", \"pid\": 1, \"tid\": %" PRIu32 ", \"ts\": %" PRId64 ".%03d", i ? "," : "",
            moment->is_end ? 'E' : 'B', event->worker, since / 1000, KILN_CAST(int, since % 1000));
    if (!moment->is_end) {
      kiln_event_layer(event, layer, sizeof layer);
      fprintf(file, ", \"cat\": \"%s\", \"name\": \"%s", event->task < 0 ? "kernel" : "task",
              event->task < 0 && layer[0] ? layer : event->kernel);
      if (event->task >= 0)
        fprintf(file, " %" PRId64, event->task);
      fprintf(file,
              "\", \"args\": {\"entry\": \"%s\", \"kernel\": \"%s\", \"layer\": \"%s\", \"flops\": %" PRIu64
              ", \"bytes\": %" PRIu64 "}",
              event->entry, event->kernel, layer, event->flops, event->bytes);
    }
    fprintf(file, "}");
  }
  fprintf(file, "\n]}\n");
  is_wrong = ferror(file) != 0;
  return fclose(file) != 0 || is_wrong ? -1 : 0;
}

#ifdef __cplusplus
}
#endif
#endif /* KILN_CHROME_TRACE_H */
