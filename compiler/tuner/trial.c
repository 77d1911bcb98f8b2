// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Runs kernels like a model's entries do, for a tuner on another machine. Not part of a model's library. */
#define _DEFAULT_SOURCE /* sysconf, clock_gettime */
#include "compiler/tuner/trial.h"

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

typedef struct trial_t {
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
} trial_t;

/* Pipes. */

static void take(trial_t *trial, void *bytes, uint64_t count) {
  for (char *to = bytes; count > 0 && !trial->is_over;) {
    const int64_t some = read(0, to, count < CHUNK_BYTES ? (unsigned)count : CHUNK_BYTES);
    trial->is_over = some <= 0;
    to += some;
    count -= (uint64_t)some;
  }
}

static uint64_t take_number(trial_t *trial) {
  uint64_t number = 0;
  take(trial, &number, sizeof number);
  return trial->is_over ? 0 : number;
}

static void put(trial_t *trial, const void *bytes, uint64_t count) {
  for (const char *from = bytes; count > 0 && !trial->is_over;) {
    const int64_t some = write(1, from, count < CHUNK_BYTES ? (unsigned)count : CHUNK_BYTES);
    trial->is_over = some <= 0;
    from += some;
    count -= (uint64_t)some;
  }
}

static void put_number(trial_t *trial, uint64_t number) { put(trial, &number, sizeof number); }

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
static void tell_file(trial_t *trial) {
  char path[256] = "", text[4096];
  const uint64_t length = take_number(trial);
  if (length >= sizeof path) {
    trial->is_over = true;
    return;
  }
  take(trial, path, length);
  const int file = open(path, KILN_READ_FLAGS);
  const int64_t bytes = file >= 0 ? read(file, text, sizeof text) : 0;
  if (file >= 0)
    close(file);
  put_number(trial, bytes > 0 ? (uint64_t)bytes : 0);
  put(trial, text, bytes > 0 ? (uint64_t)bytes : 0);
}

/* Memory. */

static void *allocate(trial_t *trial, uint64_t count, uint64_t bytes) {
  const uint64_t room = count * bytes > 0 ? KILN_ARENA_ROUND(count * bytes) : KILN_ARENA_ALIGNMENT;
  const bool is_sane = bytes == 0 || (room / bytes >= count && room <= SIZE_MAX);
  void *memory = is_sane ? kiln_aligned_allocate(KILN_ARENA_ALIGNMENT, (size_t)room) : NULL;
  if (!memory) {
    static const char words[] = "no memory for a kernel's arguments\n";
    trial->has_failed = trial->is_over = true;
    (void)!write(2, words, sizeof words - 1);
  }
  return memory;
}

static void begin(trial_t *trial) {
  const uint64_t threads = take_number(trial);
  const uint64_t stride = KILN_ARENA_ROUND(take_number(trial));
  if (threads > 1 && kiln_pool_create((uint32_t)threads, &trial->pool, NULL) != KILN_OK)
    trial->pool = NULL;
  const kiln_executor_t *executor = trial->pool ? kiln_pool_executor(trial->pool) : NULL;
  const uint32_t count = executor ? executor->workers : 1;
  trial->workers = allocate(trial, count, sizeof(kiln_worker_t));
  trial->scratch = allocate(trial, count, stride);
  if (trial->is_over)
    return;
  for (uint32_t i = 0; i < count; ++i) {
    char *top = trial->scratch + i * stride;
    trial->workers[i] = (kiln_worker_t){.workers = trial->workers, .top = top, .end = top + stride};
  }
  trial->workers[0].executor = executor;
  put_number(trial, count);
}

static void forget(trial_t *trial) {
  for (size_t i = 0; i < trial->tensor_count; ++i)
    kiln_aligned_free(trial->tensors[i].memory);
  kiln_aligned_free(trial->tensors);
  kiln_aligned_free(trial->words);
  trial->tensors = NULL;
  trial->words = NULL;
  trial->tensor_count = 0;
}

/* Receives a tensor and its words, starting at `word`; returns the next word. */
static uint64_t *take_tensor(trial_t *trial, tensor_t *tensor, uint64_t *word) {
  tensor->is_result = take_number(trial) != 0;
  tensor->copies = take_number(trial);
  tensor->word = word++;
  for (uint64_t rank = take_number(trial); rank > 0 && !trial->is_over; --rank)
    *word++ = take_number(trial);
  tensor->bytes = take_number(trial);
  tensor->stride = KILN_ARENA_ROUND(tensor->bytes);
  tensor->memory = allocate(trial, tensor->copies, tensor->stride);
  if (tensor->is_result || trial->is_over)
    return word;
  take(trial, tensor->memory, tensor->bytes);
  for (uint64_t copy = 1; copy < tensor->copies; ++copy)
    memcpy(tensor->memory + copy * tensor->stride, tensor->memory, (size_t)tensor->bytes);
  return word;
}

static void take_data(trial_t *trial) {
  forget(trial);
  trial->is_step = take_number(trial) != 0;
  uint64_t *word = trial->words = allocate(trial, take_number(trial), sizeof *trial->words);
  for (uint64_t extents = take_number(trial); extents > 0 && !trial->is_over; --extents)
    *word++ = take_number(trial);
  const uint64_t count = take_number(trial);
  trial->tensors = allocate(trial, count, sizeof *trial->tensors);
  for (uint64_t i = 0; i < count && !trial->is_over; ++i) {
    word = take_tensor(trial, &trial->tensors[i], word);
    trial->tensor_count = (size_t)i + 1;
  }
  put_number(trial, 0);
}

/* Calls. */

static int32_t call_once(trial_t *trial, uint64_t kernel, uint64_t turn) {
  for (size_t i = 0; i < trial->tensor_count; ++i) {
    const tensor_t *tensor = &trial->tensors[i];
    *tensor->word = (uintptr_t)(tensor->memory + turn % tensor->copies * tensor->stride);
  }
  return kiln_trial_call(kernel, trial->workers, trial->words);
}

/* Fills the results with NaN, or integers with the same bits, before the call. */
static void call(trial_t *trial) {
  const uint64_t kernel = take_number(trial);
  for (size_t i = 0; i < trial->tensor_count; ++i)
    if (trial->tensors[i].is_result)
      memset(trial->tensors[i].memory, 0xff, (size_t)trial->tensors[i].bytes);
  trial->workers[0].is_backward = 0;
  const int32_t status = call_once(trial, kernel, 0);
  put_number(trial, (uint64_t)(int64_t)status);
  for (size_t i = 0; i < trial->tensor_count && status == 0; ++i)
    if (trial->tensors[i].is_result) {
      put_number(trial, trial->tensors[i].bytes);
      put(trial, trial->tensors[i].memory, trial->tensors[i].bytes);
    }
}

static void time_calls(trial_t *trial) {
  const uint64_t kernel = take_number(trial);
  const uint64_t repeats = take_number(trial);
  const int64_t start = kiln_nanoseconds();
  for (uint64_t i = 0; i < repeats; ++i, ++trial->turn) {
    trial->workers[0].is_backward = trial->is_step && trial->turn % 2;
    call_once(trial, kernel, trial->turn);
  }
  put_number(trial, (uint64_t)(kiln_nanoseconds() - start));
}

static void answer(trial_t *trial, uint64_t question) {
  switch (question) {
  case KILN_TRIAL_CPUS:
    put_number(trial, count_cpus());
    break;
  case KILN_TRIAL_FILE:
    tell_file(trial);
    break;
  case KILN_TRIAL_BEGIN:
    begin(trial);
    break;
  case KILN_TRIAL_DATA:
    take_data(trial);
    break;
  case KILN_TRIAL_CALL:
    call(trial);
    break;
  case KILN_TRIAL_TIME:
    time_calls(trial);
    break;
  default:
    trial->has_failed = trial->is_over = true;
  }
}

int32_t kiln_trial_main(void) {
#if defined(_WIN32)
  _setmode(0, _O_BINARY);
  _setmode(1, _O_BINARY);
#endif
  trial_t trial = {.is_over = false};
  put_number(&trial, KILN_TRIAL_MAGIC);
  for (;;) {
    const uint64_t question = take_number(&trial);
    if (trial.is_over)
      break;
    answer(&trial, question);
  }
  forget(&trial);
  kiln_aligned_free(trial.scratch);
  kiln_aligned_free(trial.workers);
  kiln_pool_destroy(trial.pool);
  return trial.has_failed;
}
