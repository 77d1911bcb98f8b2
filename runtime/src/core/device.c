// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Creates a model with options, for programs with a choice of devices. */
#include "core/instance.h"

/* Checks the options of a library without parallelism. */
static kiln_status_t check_alone(const char *member, uint32_t number, uint32_t count, kiln_error_t *error) {
  if (kiln_descriptor.sharding || (count <= 1 && number == 0))
    return KILN_OK;
  return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                        "create_on: library is not for several %ss; expected %s 0, got %s %u of %u", member, member,
                        member, number, count);
}

/* Rejects options of a later version, or an uninitialised struct. */
static kiln_status_t check_options(const kiln_options_t *options, kiln_error_t *error) {
  kiln_status_t status;
  if (!options)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "create_on: null given; expected options");
  if ((unsigned)options->device > KILN_CUDA)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "create_on: unknown device; expected %d to %d, got %d",
                          KILN_ANY_DEVICE, KILN_CUDA, (int)options->device);
  if (options->flags & ~(uintptr_t)(KILN_LOAD_KERNELS_AT_CREATE | KILN_COPY_FILES))
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "create_on: unknown flags; expected %d, %d or both, got %llu",
                          KILN_LOAD_KERNELS_AT_CREATE, KILN_COPY_FILES, (unsigned long long)options->flags);
  if ((status = check_alone("rank", options->rank, options->ranks, error)) ||
      (status = check_alone("stage", options->stage, options->stages, error)))
    return status;
  for (size_t i = 0; i < sizeof options->reserved / sizeof options->reserved[0]; ++i)
    if (options->reserved[i])
      return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                            "create_on: reserved option set; expected null, got a pointer in field " KILN_SIZE, i);
  return KILN_OK;
}

kiln_status_t kiln_create_on(const kiln_options_t *options, kiln_model_t **model, kiln_error_t *error) {
  const kiln_cpu_t cpu = kiln_cpu_detect();
  kiln_status_t status = check_options(options, error);
  if (model)
    *model = NULL;
  return status ? status : kiln_model_create(&kiln_descriptor, &cpu, options, model, error);
}

kiln_device_t kiln_device(const kiln_model_t *model) {
  if (!model)
    return KILN_ANY_DEVICE;
  return model->variant->backend ? model->variant->backend->kind : KILN_CPU;
}

const char *kiln_target(const kiln_model_t *model) { return model ? model->variant->target : ""; }
