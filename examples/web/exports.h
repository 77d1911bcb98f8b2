/* SPDX-License-Identifier: Apache-2.0 */
/* What the page calls. Memory is WebAssembly's, so pointers are numbers to the page. */
#pragma once

#include "writer.h"

#define EXPORT(name) __attribute__((export_name(#name)))

/* What went wrong in the last call that failed. */
extern kiln_error_t last_error;
/* Memory of so many bytes, zero; null if there is none. */
void *take_memory(size_t bytes);
/* What calls run on: one thread and no executor, or what use_threads was told (workers.c). */
extern uint32_t threads;
extern const kiln_executor_t *executor;
