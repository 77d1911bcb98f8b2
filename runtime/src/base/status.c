// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Status codes and their messages. */
#include "base/status.h"

#include <stdarg.h>
#include <string.h>
#if !defined(_WIN32)
#include <stdio.h>
#endif

enum { PATH_SHOWN = 2 * KILN_NAME_SHOWN };

#if defined(_WIN32)
/* The function that every C library for Windows has; the headers there replace it by others. */
int print(char *to, size_t room, const char *format, va_list values) __asm__("vsnprintf");
#else
static int print(char *to, size_t room, const char *format, va_list values) {
  return vsnprintf(to, room, format, values);
}
#endif

const char *kiln_status_text(kiln_status_t status) {
  switch (status) {
  case KILN_OK:
    return "the call succeeded.";
  case KILN_NULL_ARGUMENT:
    return "a required pointer was null; pass every pointer that the header does not call optional.";
  case KILN_EXTENT_OUT_OF_RANGE:
    return "a dynamic dimension is out of range; keep it between the constants in the header.";
  case KILN_INDEX_OUT_OF_RANGE:
    return "an index or length in an input is out of range; check the values that you pass.";
  case KILN_ARENA_TOO_SMALL:
    return "the arena is too small; give at least the ARENA_BYTES of the entry for your number of workers.";
  case KILN_ARENA_MISALIGNED:
    return "the arena is not aligned; allocate it with KILN_ARENA_ALIGNMENT.";
  case KILN_WEIGHTS_NOT_BOUND:
    return "the model has no weights yet; call bind_weights or bind_packed first and check what it returns.";
  case KILN_OUT_OF_MEMORY:
    return "the allocator or the device gave no memory; free some, or give one that has more.";
  case KILN_UNSUPPORTED_CPU:
    return "no instruction set in the archive runs on this CPU; compile the model for one that it has.";
  case KILN_FILE_ERROR:
    return "a file could not be opened, read or mapped; check the path and the permissions.";
  case KILN_FILE_MALFORMED:
    return "the weight file is not well-formed; write or copy it again.";
  case KILN_WEIGHT_MISSING:
    return "the weight file lacks a tensor that the model needs; export it under the name that the model uses.";
  case KILN_WEIGHT_UNEXPECTED:
    return "the weight file has a tensor that the model lacks; leave it out, or use the right model.";
  case KILN_WEIGHT_SHAPE:
    return "a tensor in the weight file has a wrong shape; use the model's file.";
  case KILN_WEIGHT_TYPE:
    return "a tensor in the weight file has a wrong element type; convert it to one named in the message.";
  case KILN_THREAD_ERROR:
    return "the pool could not start its threads; ask for fewer, or raise the system's limit.";
  case KILN_INVALID_ARGUMENT:
    return "an argument is not valid; see the message for which one.";
  case KILN_INTERNAL_ERROR:
    return "this is a defect of Kiln; please report it with the message.";
  case KILN_NO_DEVICE:
    return "no driver or device here runs the archive's code; see the message, or create the model on the CPU.";
  case KILN_DEVICE_ERROR:
    return "the device's driver reported an error; see the message for which one.";
  case KILN_DEVICE_LOST:
    return "the device had a fatal error; destroy the model and create a new one.";
  case KILN_WEIGHT_VALUE:
    return "a value in the weight file does not fit the type in which the model stores it; correct it, or store that "
           "weight in another type.";
  case KILN_FILE_MISMATCH:
    return "the packed file was written for another library, target or version; pack the weights again with this one.";
  case KILN_NOT_FINITE:
    return "the loss, its gradients or the learning rate are NaN or infinite, or the step is below 1, and no weight "
           "was changed; lower the learning rate, or check the inputs.";
  case KILN_SELFTEST_FAILED:
    return "the library's results are wrong; it or this machine is damaged: get the library from its source again.";
  case KILN_RANK_LOST:
    return "another rank missed the deadline or has ended; end this one, and start all ranks again.";
  case KILN_SESSION_NOT_BEGUN:
    return "the arena has no session or training; call NAME_begin_session, or NAME_begin_training, "
           "once before the first call.";
  }
  return "not a status of Kiln; check that header and library belong together.";
}

size_t kiln_text_print(char *to, size_t room, const char *format, ...) {
  va_list values;
  va_start(values, format);
  const int length = print(to, room, format, values);
  va_end(values);
  return (size_t)length;
}

kiln_status_t kiln_error_set(kiln_error_t *error, kiln_status_t status, const char *format, ...) {
  if (error) {
    va_list values;
    va_start(values, format);
    error->status = status;
    error->message[0] = '\0';
    print(error->message, sizeof error->message, format, values);
    va_end(values);
  }
  return status;
}

kiln_status_t kiln_error_clear(kiln_error_t *error) {
  if (error) {
    error->status = KILN_OK;
    error->message[0] = '\0';
  }
  return KILN_OK;
}

kiln_status_t kiln_error_name_file(kiln_error_t *error, kiln_status_t status, const char *file, size_t length) {
  if (!error)
    return status;
  const kiln_error_t words = *error;
  return kiln_error_set(error, status, "file \"%.*s\": %s", kiln_shown(length), file, words.message);
}

kiln_status_t kiln_file_error(kiln_error_t *error, const char *action, const char *path, const char *reason) {
  /* Shows the end of a long path, which is more informative. */
  const size_t length = strlen(path), hidden = length > PATH_SHOWN ? length - PATH_SHOWN : 0;
  return kiln_error_set(error, KILN_FILE_ERROR, "cannot %s weight file \"%s%s\": %s", action, hidden ? "..." : "",
                        path + hidden, reason);
}
