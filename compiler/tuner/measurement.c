// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Runs kernels like a model's entries do, for a tuner on another machine. Not part of a model's library. */
#define _DEFAULT_SOURCE /* sysconf, clock_gettime */
#include "compiler/tuner/measurement.h"

#include "runtime/src/os/aligned.h"
#include "runtime/src/os/clock.h"

#include <fcntl.h>
#include <string.h>
#if defined(_WIN32)
#include <io.h>
#define KILN_READ_FLAGS (_O_RDONLY | _O_BINARY)
#else
#include <unistd.h>
#define KILN_READ_FLAGS O_RDONLY
#endif

/* The maximum number of bytes of a read or write call. */
enum { CHUNK_BYTES = 1 << 20 };

typedef struct tensor_t {
  bool is_result;
  uint64_t copies, bytes, stride; /* bytes of a copy; distance between copies */
  char *memory;
  uint64_t *word; /* its address among the words of a call */
} tensor_t;

typedef struct measurement_t {
  bool is_over; /* end of the input, or out of memory */
  bool has_failed;
  kiln_pool_t *pool;
  kiln_worker_t *workers;
  char *scratch;
  uint32_t worker_count;
  bool is_step;
  tensor_t *tensors;
  size_t tensor_count;
  uint64_t *words;
  uint64_t turn;
} measurement_t;

/* Pipes. */

static void take(measurement_t *measurement, void *bytes, uint64_t count) {
  for (char *to = bytes; count > 0 && !measurement->is_over;) {
    const int64_t some = read(0, to, count < CHUNK_BYTES ? (unsigned)count : CHUNK_BYTES);
    measurement->is_over = some <= 0;
    to += some;
    count -= (uint64_t)some;
  }
}

static uint64_t take_number(measurement_t *measurement) {
  uint64_t number = 0;
  take(measurement, &number, sizeof number);
  return measurement->is_over ? 0 : number;
}

static void put(measurement_t *measurement, const void *bytes, uint64_t count) {
  for (const char *from = bytes; count > 0 && !measurement->is_over;) {
    const int64_t some = write(1, from, count < CHUNK_BYTES ? (unsigned)count : CHUNK_BYTES);
    measurement->is_over = some <= 0;
    from += some;
    count -= (uint64_t)some;
  }
}

static void put_number(measurement_t *measurement, uint64_t number) { put(measurement, &number, sizeof number); }

/* The machine. */

static uint64_t count_cpus(void) {
#if defined(_WIN32)
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return info.dwNumberOfProcessors;
#elif defined(__wasi__)
  return 1;
#else
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  return cpus > 0 ? (uint64_t)cpus : 1;
#endif
}

/* Sends the contents of a short file, such as those that the kernel generates on reading. */
static void tell_file(measurement_t *measurement) {
  char path[256] = "", text[4096];
  const uint64_t length = take_number(measurement);
  if (length >= sizeof path) {
    measurement->is_over = true;
    return;
  }
  take(measurement, path, length);
  const int file = open(path, KILN_READ_FLAGS);
  const int64_t bytes = file >= 0 ? read(file, text, sizeof text) : 0;
  if (file >= 0)
    close(file);
  put_number(measurement, bytes > 0 ? (uint64_t)bytes : 0);
  put(measurement, text, bytes > 0 ? (uint64_t)bytes : 0);
}

/* Memory. */

static void *allocate(measurement_t *measurement, uint64_t count, uint64_t bytes) {
  const uint64_t room = count * bytes > 0 ? KILN_ARENA_ROUND(count * bytes) : KILN_ARENA_ALIGNMENT;
  const bool is_sane = bytes == 0 || (room / bytes >= count && room <= SIZE_MAX);
  void *memory = is_sane ? kiln_aligned_allocate(KILN_ARENA_ALIGNMENT, (size_t)room) : NULL;
  if (!memory) {
    static const char words[] = "no memory for a kernel's arguments\n";
    measurement->has_failed = measurement->is_over = true;
    (void)!write(2, words, sizeof words - 1);
  }
  return memory;
}

static void begin(measurement_t *measurement) {
  const uint64_t threads = take_number(measurement);
  const uint64_t stride = KILN_ARENA_ROUND(take_number(measurement));
  if (threads > 1 && kiln_pool_create((uint32_t)threads, &measurement->pool, NULL) != KILN_OK)
    measurement->pool = NULL;
  const kiln_executor_t *executor = measurement->pool ? kiln_pool_executor(measurement->pool) : NULL;
  const uint32_t count = executor ? executor->workers : 1;
  measurement->workers = allocate(measurement, count, sizeof(kiln_worker_t));
  measurement->scratch = allocate(measurement, count, stride);
  if (measurement->is_over)
    return;
  for (uint32_t i = 0; i < count; ++i) {
    char *top = measurement->scratch + i * stride;
    measurement->workers[i] = (kiln_worker_t){.workers = measurement->workers, .top = top, .end = top + stride};
  }
  measurement->workers[0].executor = executor;
  put_number(measurement, count);
}

static void forget(measurement_t *measurement) {
  for (size_t i = 0; i < measurement->tensor_count; ++i)
    kiln_aligned_free(measurement->tensors[i].memory);
  kiln_aligned_free(measurement->tensors);
  kiln_aligned_free(measurement->words);
  measurement->tensors = NULL;
  measurement->words = NULL;
  measurement->tensor_count = 0;
}

/* Receives a tensor and its words, starting at `word`; returns the next word. */
static uint64_t *take_tensor(measurement_t *measurement, tensor_t *tensor, uint64_t *word) {
  tensor->is_result = take_number(measurement) != 0;
  tensor->copies = take_number(measurement);
  tensor->word = word++;
  for (uint64_t rank = take_number(measurement); rank > 0 && !measurement->is_over; --rank)
    *word++ = take_number(measurement);
  tensor->bytes = take_number(measurement);
  tensor->stride = KILN_ARENA_ROUND(tensor->bytes);
  tensor->memory = allocate(measurement, tensor->copies, tensor->stride);
  if (tensor->is_result || measurement->is_over)
    return word;
  take(measurement, tensor->memory, tensor->bytes);
  for (uint64_t copy = 1; copy < tensor->copies; ++copy)
    memcpy(tensor->memory + copy * tensor->stride, tensor->memory, (size_t)tensor->bytes);
  return word;
}

static void take_data(measurement_t *measurement) {
  forget(measurement);
  measurement->is_step = take_number(measurement) != 0;
  uint64_t *word = measurement->words = allocate(measurement, take_number(measurement), sizeof *measurement->words);
  for (uint64_t extents = take_number(measurement); extents > 0 && !measurement->is_over; --extents)
    *word++ = take_number(measurement);
  const uint64_t count = take_number(measurement);
  measurement->tensors = allocate(measurement, count, sizeof *measurement->tensors);
  for (uint64_t i = 0; i < count && !measurement->is_over; ++i) {
    word = take_tensor(measurement, &measurement->tensors[i], word);
    measurement->tensor_count = (size_t)i + 1;
  }
  put_number(measurement, 0);
}

/* Calls. */

static int32_t call_once(measurement_t *measurement, uint64_t kernel, uint64_t turn) {
  for (size_t i = 0; i < measurement->tensor_count; ++i) {
    const tensor_t *tensor = &measurement->tensors[i];
    *tensor->word = (uintptr_t)(tensor->memory + turn % tensor->copies * tensor->stride);
  }
  return kiln_measurement_call(kernel, measurement->workers, measurement->words);
}

/* Fills the results with NaN, or integers with the same bits, before the call. */
static void call(measurement_t *measurement) {
  const uint64_t kernel = take_number(measurement);
  for (size_t i = 0; i < measurement->tensor_count; ++i)
    if (measurement->tensors[i].is_result)
      memset(measurement->tensors[i].memory, 0xff, (size_t)measurement->tensors[i].bytes);
  measurement->workers[0].is_backward = 0;
  const int32_t status = call_once(measurement, kernel, 0);
  put_number(measurement, (uint64_t)(int64_t)status);
  for (size_t i = 0; i < measurement->tensor_count && status == 0; ++i)
    if (measurement->tensors[i].is_result) {
      put_number(measurement, measurement->tensors[i].bytes);
      put(measurement, measurement->tensors[i].memory, measurement->tensors[i].bytes);
    }
}

static void time_calls(measurement_t *measurement) {
  const uint64_t kernel = take_number(measurement);
  const uint64_t repeats = take_number(measurement);
  const int64_t start = kiln_nanoseconds();
  for (uint64_t i = 0; i < repeats; ++i, ++measurement->turn) {
    measurement->workers[0].is_backward = measurement->is_step && measurement->turn % 2;
    call_once(measurement, kernel, measurement->turn);
  }
  put_number(measurement, (uint64_t)(kiln_nanoseconds() - start));
}

static void answer(measurement_t *measurement, uint64_t question) {
  switch (question) {
  case KILN_MEASURE_CPUS:
    put_number(measurement, count_cpus());
    break;
  case KILN_MEASURE_FILE:
    tell_file(measurement);
    break;
  case KILN_MEASURE_BEGIN:
    begin(measurement);
    break;
  case KILN_MEASURE_DATA:
    take_data(measurement);
    break;
  case KILN_MEASURE_CALL:
    call(measurement);
    break;
  case KILN_MEASURE_TIME:
    time_calls(measurement);
    break;
  default:
    measurement->has_failed = measurement->is_over = true;
  }
}

int32_t kiln_measurement_main(void) {
#if defined(_WIN32)
  _setmode(0, _O_BINARY);
  _setmode(1, _O_BINARY);
#endif
  measurement_t measurement = {.is_over = false};
  put_number(&measurement, KILN_MEASURE_MAGIC);
  for (;;) {
    const uint64_t question = take_number(&measurement);
    if (measurement.is_over)
      break;
    answer(&measurement, question);
  }
  forget(&measurement);
  kiln_aligned_free(measurement.scratch);
  kiln_aligned_free(measurement.workers);
  kiln_pool_destroy(measurement.pool);
  return measurement.has_failed;
}
