// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Kernels on a GPU: chooses the image of each kernel and loads it; the driver assembles the PTX then. Since that
 * takes a noticeable part of a second, a kernel is loaded before it first runs and not at create, unless the caller
 * requests it. Kernels are found by the address of their constant data, in an open-addressing hash table that is
 * built once. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include "cuda/cuda_model.h"
#include "os/clock.h"

#include <string.h>

/* The size of the assembler's error log. */
enum { LOG_BYTES = 512 };

static uint64_t slot_count(const kiln_variant_t *variant) {
  uint64_t slots = 2;
  while (slots < 2 * variant->module_count)
    slots *= 2;
  return slots;
}

static uint64_t function_count(const kiln_cuda_module_t *module) { return module ? module->function_count : 0; }

uint64_t kiln_cuda_kernels_bytes(const kiln_variant_t *variant) {
  uint64_t functions = 0;
  for (uint64_t i = 0; i < variant->module_count; ++i)
    functions += function_count(variant->modules[i]) + function_count(variant->modules[i]->tma);
  return slot_count(variant) * sizeof(kiln_cuda_kernel_t) + functions * sizeof(kiln_cuda_entry_t);
}

/* Returns the kernel's slot, or the free slot where it belongs. */
static kiln_cuda_kernel_t *find_slot(const kiln_cuda_t *cuda, const kiln_cuda_module_t *module) {
  /* The upper half of a product, which depends on all bits of the address. */
  uint64_t at = ((uint64_t)(uintptr_t)module * UINT64_C(0x9E3779B97F4A7C15)) >> 32;
  kiln_cuda_kernel_t *slot;
  const kiln_cuda_module_t *found;
  while ((found = (slot = &cuda->kernels[at & cuda->kernel_mask])->forms[KILN_CUDA_PLAIN].module) && found != module)
    ++at;
  return slot;
}

void kiln_cuda_kernels_init(kiln_cuda_t *cuda, const kiln_variant_t *variant, void *memory) {
  const uint64_t slots = slot_count(variant);
  cuda->kernels = memory;
  cuda->kernel_mask = slots - 1;
  kiln_cuda_entry_t *functions = (kiln_cuda_entry_t *)(void *)(cuda->kernels + slots);
  for (uint64_t i = 0; i < slots; ++i)
    atomic_init(&cuda->kernels[i].is_loaded, false);
  for (uint64_t i = 0; i < variant->module_count; ++i) {
    kiln_cuda_kernel_t *kernel = find_slot(cuda, variant->modules[i]);
    kernel->forms[KILN_CUDA_PLAIN].module = variant->modules[i];
    kernel->forms[KILN_CUDA_TMA].module = variant->modules[i]->tma;
    for (uint32_t form = 0; form < KILN_CUDA_FORMS; ++form) {
      kernel->forms[form].functions = functions;
      functions += function_count(kernel->forms[form].module);
    }
  }
}

kiln_cuda_kernel_t *kiln_cuda_kernel_find(const kiln_cuda_t *cuda, const kiln_cuda_module_t *module) {
  kiln_cuda_kernel_t *slot = find_slot(cuda, module);
  return slot->forms[KILN_CUDA_PLAIN].module ? slot : NULL;
}

uint32_t kiln_cuda_find_ptx(const kiln_cuda_t *cuda, const kiln_cuda_module_t *module, uint32_t first) {
  while (first < module->image_count &&
         (module->images[first].is_for_that_alone ? cuda->capability != module->images[first].capability
                                                  : cuda->capability < module->images[first].capability))
    ++first;
  return first;
}

kiln_status_t kiln_cuda_kernels_check(const kiln_cuda_t *cuda, const kiln_model_t *model, kiln_error_t *error) {
  for (uint64_t i = 0; i < model->variant->module_count; ++i) {
    const kiln_cuda_module_t *module = model->variant->modules[i];
    if (kiln_cuda_find_ptx(cuda, module, 0) < module->image_count)
      continue;
    const kiln_cuda_image_t none = {0}, *last = module->image_count ? &module->images[module->image_count - 1] : &none;
    return kiln_error_set(error, KILN_NO_DEVICE,
                          "model \"%.*s\": unsupported GPU; expected compute capability %u.%u%s, got %u.%u",
                          KILN_NAME_SHOWN, model->descriptor->name, last->capability / 10, last->capability % 10,
                          last->is_for_that_alone ? "" : " or later", cuda->capability / 10, cuda->capability % 10);
  }
  return KILN_OK;
}

bool kiln_cuda_has_form(const kiln_cuda_t *cuda, const kiln_cuda_kernel_t *kernel, uint32_t form) {
  const kiln_cuda_module_t *module = kernel->forms[form].module;
  return form == KILN_CUDA_PLAIN ||
         (module && cuda->driver.cuTensorMapEncodeTiled && kiln_cuda_find_ptx(cuda, module, 0) < module->image_count);
}

static kiln_status_t fail_load(kiln_cuda_t *cuda, const kiln_cuda_module_t *module, int result, char *log,
                               kiln_error_t *error) {
  const char *name = module->function_count ? module->functions[0].name : "";
  if (!*log)
    return kiln_cuda_check(cuda, result, "cuModuleLoadDataEx", error);
  log[strcspn(log, "\n")] = '\0';
  kiln_status_t status = kiln_cuda_check(cuda, result, "cuModuleLoadDataEx", NULL);
  return kiln_error_set(error, status, "kernel \"%.*s\": driver cannot assemble it; expected success, got %s: %s",
                        KILN_NAME_SHOWN, name, kiln_cuda_error_name(&cuda->driver, result), log);
}

/* Loads the best supported image; if its PTX is newer than the driver supports, the next one. is_optional: there may
 * be none. */
static kiln_status_t load_image(kiln_cuda_t *cuda, kiln_cuda_form_t *form, bool is_optional, kiln_error_t *error) {
  const kiln_cuda_module_t *module = form->module;
  const int64_t begin = kiln_nanoseconds();
  char log[LOG_BYTES] = "";
  int options[] = {KILN_CUDA_ERROR_LOG, KILN_CUDA_ERROR_LOG_BYTES}, result = KILN_CUDA_UNSUPPORTED_PTX_VERSION;
  for (uint32_t i = kiln_cuda_find_ptx(cuda, module, 0);
       i < module->image_count && result == KILN_CUDA_UNSUPPORTED_PTX_VERSION;
       i = kiln_cuda_find_ptx(cuda, module, i + 1)) {
    void *values[] = {log, kiln_cuda_pointer(LOG_BYTES - 1)};
    form->image = i;
    result = cuda->driver.cuModuleLoadDataEx(&form->loaded, module->images[i].text, 2, options, values);
  }
  atomic_fetch_add(&cuda->assembling, (uint64_t)(kiln_nanoseconds() - begin));
  if (result == 0 || (is_optional && result == KILN_CUDA_UNSUPPORTED_PTX_VERSION))
    return KILN_OK;
  return fail_load(cuda, module, result, log, error);
}

static kiln_status_t find_function(kiln_cuda_t *cuda, kiln_cuda_form_t *form, uint32_t index, kiln_error_t *error) {
  const kiln_cuda_function_t *function = &form->module->functions[index];
  kiln_cuda_entry_t *entry = &form->functions[index];
  kiln_status_t status;
  if (function->cluster > 1 && !cuda->driver.cuLaunchKernelEx)
    return kiln_error_set(error, KILN_DEVICE_ERROR,
                          "kernel \"%.*s\": CUDA driver too old; expected one with cuLaunchKernelEx", KILN_NAME_SHOWN,
                          function->name);
  if ((status = KILN_CUDA_CALL(cuda, error, cuModuleGetFunction, entry, form->loaded, function->name)) ||
      function->shared_bytes == 0)
    return status;
  /* By default a block has 48 KiB of shared memory, including static memory, whose size only the code tells. */
  return KILN_CUDA_CALL(cuda, error, cuFuncSetAttribute, *entry, KILN_CUDA_MAX_DYNAMIC_SHARED_BYTES,
                        (int)function->shared_bytes);
}

static kiln_status_t load_code(kiln_cuda_t *cuda, kiln_cuda_form_t *form, const kiln_cuda_code_t *code,
                               kiln_error_t *error) {
  form->image = code->image;
  return KILN_CUDA_CALL(cuda, error, cuModuleLoadDataEx, &form->loaded, code->code, 0, NULL, NULL);
}

/* If code is null, assembles the PTX. */
static kiln_status_t load_form(kiln_cuda_t *cuda, kiln_cuda_form_t *form, bool is_optional,
                               const kiln_cuda_code_t *code, kiln_error_t *error) {
  kiln_status_t status = code ? load_code(cuda, form, code, error) : load_image(cuda, form, is_optional, error);
  for (uint32_t i = 0; !status && form->loaded && i < form->module->function_count; ++i)
    status = find_function(cuda, form, i, error);
  return status;
}

static void unload(kiln_cuda_t *cuda, kiln_cuda_kernel_t *kernel) {
  for (uint32_t i = 0; i < KILN_CUDA_FORMS; ++i) {
    if (kernel->forms[i].loaded)
      cuda->driver.cuModuleUnload(kernel->forms[i].loaded);
    kernel->forms[i].loaded = NULL;
  }
}

/* Loads all forms: which one a call uses depends on its tensors, and during capture nothing can be loaded. */
kiln_status_t kiln_cuda_kernel_load_code(kiln_cuda_t *cuda, kiln_cuda_kernel_t *kernel, const kiln_cuda_code_t *codes,
                                         kiln_error_t *error) {
  kiln_status_t status = KILN_OK;
  if (atomic_load_explicit(&kernel->is_loaded, memory_order_relaxed))
    return KILN_OK;
  for (uint32_t i = 0; !status && i < KILN_CUDA_FORMS; ++i)
    if (codes ? codes[i].code != NULL : kiln_cuda_has_form(cuda, kernel, i))
      status = load_form(cuda, &kernel->forms[i], i != KILN_CUDA_PLAIN, codes ? &codes[i] : NULL, error);
  if (status)
    unload(cuda, kernel);
  else
    atomic_store_explicit(&kernel->is_loaded, true, memory_order_release);
  return status;
}

/* Loading a kernel would invalidate a capture in progress. */
static kiln_status_t check_capture(kiln_cuda_t *cuda, const kiln_cuda_kernel_t *kernel, kiln_cuda_queue_t queue,
                                   kiln_error_t *error) {
  int is_capturing = 0;
  kiln_status_t status = KILN_CUDA_CALL(cuda, error, cuStreamIsCapturing, queue, &is_capturing);
  if (status || !is_capturing)
    return status;
  return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                        "kernel \"%.*s\": not loaded before a capture; expected an earlier call of the entry, or a "
                        "model created with KILN_LOAD_KERNELS_AT_CREATE",
                        KILN_NAME_SHOWN, kernel->forms[KILN_CUDA_PLAIN].module->functions[0].name);
}

kiln_status_t kiln_cuda_kernel_load(kiln_cuda_t *cuda, kiln_cuda_kernel_t *kernel, kiln_cuda_queue_t queue,
                                    kiln_error_t *error) {
  kiln_status_t status = KILN_OK;
  if (atomic_load_explicit(&kernel->is_loaded, memory_order_acquire))
    return KILN_OK;
  if (queue && (status = check_capture(cuda, kernel, queue, error)))
    return status;
  pthread_mutex_lock(&cuda->loading);
  status = kiln_cuda_kernel_load_code(cuda, kernel, NULL, error);
  pthread_mutex_unlock(&cuda->loading);
  return status;
}

kiln_status_t kiln_cuda_kernels_load(kiln_cuda_t *cuda, kiln_error_t *error) {
  kiln_status_t status = KILN_OK;
  for (uint64_t i = 0; !status && i <= cuda->kernel_mask; ++i)
    if (cuda->kernels[i].forms[KILN_CUDA_PLAIN].module)
      status = kiln_cuda_kernel_load(cuda, &cuda->kernels[i], NULL, error);
  return status;
}

void kiln_cuda_kernels_unload(kiln_cuda_t *cuda) {
  for (uint64_t i = 0; i <= cuda->kernel_mask; ++i)
    unload(cuda, &cuda->kernels[i]);
}
