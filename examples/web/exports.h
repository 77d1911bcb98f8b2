/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the page calls. Pointers are integers to the page, addresses in WebAssembly's memory. */
#pragma once

#include "writer.h"

#define EXPORT(name) __attribute__((export_name(#name)))

/* The error of the last call that failed. */
extern kiln_error_t last_error;
/* Allocates zeroed memory. Returns null if there is none. */
void *take_memory(size_t bytes);
/* The executor of calls: one thread and no executor, or the threads of use_threads (workers.c). */
extern uint32_t threads;
extern const kiln_executor_t *executor;
