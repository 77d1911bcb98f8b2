// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Finds the CUDA driver when a model is created, and translates its errors to text. */
#define _GNU_SOURCE /* secure_getenv */
#include "cuda/cuda_driver.h"
#include "base/status.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The names are concatenated in the order of the table, so that no relocation is needed. */
#define KILN_CUDA_NAME(symbol, ...) #symbol "\0"
static const char required_names[] = KILN_CUDA_REQUIRED(KILN_CUDA_NAME);
static const char optional_names[] = KILN_CUDA_OPTIONAL(KILN_CUDA_NAME);
#undef KILN_CUDA_NAME

_Static_assert(sizeof(void *) == sizeof(void (*)(void)), "a symbol's address is that of a function");

/* Fills the table from `entry` on; returns the first missing name, or null. */
static const char *find_functions(void *library, const char *names, char **entry) {
  const char *missing = NULL;
  for (const char *name = names; *name; name += strlen(name) + 1, *entry += sizeof(void *)) {
    void *address = dlsym(library, name);
    memcpy(*entry, (const void *)&address, sizeof address);
    if (!address && !missing)
      missing = name;
  }
  return missing;
}

static kiln_status_t find_all(kiln_cuda_driver_t *driver, const char *path, kiln_error_t *error) {
  char *entry = (char *)driver;
  const char *missing = find_functions(driver->library, required_names, &entry);
  if (missing)
    return kiln_error_set(error, KILN_NO_DEVICE, "CUDA driver: function missing; expected %s in \"%.*s\"", missing,
                          KILN_NAME_SHOWN, path);
  find_functions(driver->library, optional_names, &entry);
  int result = driver->cuInit(0);
  if (result)
    return kiln_error_set(error, KILN_NO_DEVICE, "CUDA driver: start failed; expected success, got %s (%d): %s",
                          kiln_cuda_error_name(driver, result), result, kiln_cuda_error_text(driver, result));
  return KILN_OK;
}

kiln_status_t kiln_cuda_driver_open(kiln_cuda_driver_t *driver, kiln_error_t *error) {
  const char *path = secure_getenv("KILN_CUDA_DRIVER"); /* null in a set-user-ID program */
  if (!path || !*path)
    path = "libcuda.so.1";
  /* A library that has started threads must not be unloaded, so it stays after the last dlclose. */
  driver->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!driver->library) {
    const char *reason = dlerror();
    return kiln_error_set(error, KILN_NO_DEVICE, "CUDA driver: not found; expected one, got none: %s",
                          reason ? reason : path);
  }
  return find_all(driver, path, error);
}

void kiln_cuda_driver_close(kiln_cuda_driver_t *driver) {
  if (driver->library)
    dlclose(driver->library);
  driver->library = NULL;
}

const char *kiln_cuda_error_name(const kiln_cuda_driver_t *driver, int result) {
  const char *name = NULL;
  return driver->cuGetErrorName(result, &name) == 0 && name ? name : "an unknown error";
}

const char *kiln_cuda_error_text(const kiln_cuda_driver_t *driver, int result) {
  const char *text = NULL;
  return driver->cuGetErrorString(result, &text) == 0 && text ? text : "no description";
}

bool kiln_cuda_error_is_final(int result) {
  switch (result) {
  case 4:   /* DEINITIALIZED: the process is ending */
  case 201: /* INVALID_CONTEXT */
  case 214: /* ECC_UNCORRECTABLE */
  case 220: /* NVLINK_UNCORRECTABLE */
  case 226: /* CONTAINED */
  case 700: /* ILLEGAL_ADDRESS */
  case 702: /* LAUNCH_TIMEOUT */
  case 709: /* CONTEXT_IS_DESTROYED */
  case 710: /* ASSERT */
  case 714: /* HARDWARE_STACK_ERROR */
  case 715: /* ILLEGAL_INSTRUCTION */
  case 716: /* MISALIGNED_ADDRESS */
  case 717: /* INVALID_ADDRESS_SPACE */
  case 718: /* INVALID_PC */
  case 719: /* LAUNCH_FAILED */
  case 721: /* TENSOR_MEMORY_LEAK */
    return true;
  default:
    return false;
  }
}
