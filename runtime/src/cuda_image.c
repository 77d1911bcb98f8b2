// SPDX-License-Identifier: Apache-2.0
/* A model's kernels as the driver has assembled them, for the caller to keep: the next start loads them as they are.
 * An image begins with a digest of all that it depends on and of its own bytes; the code of each kernel of the variant
 * follows, in their order, with its size before it. Both are rounded up to blocks. */
#include "cuda_model.h"

#include <string.h>

#define MAGIC UINT64_C(0x314455436E6C694B) /* "KilnCUD1" */
typedef struct head_t {
  uint64_t magic, digest;
} head_t;
enum { BLOCK = sizeof(head_t) };

static uint64_t in_blocks(uint64_t bytes) { return (bytes + (BLOCK - 1)) & ~(uint64_t)(BLOCK - 1); }

/* FNV-1a. */
static uint64_t digest(uint64_t hash, const void *data, size_t bytes) {
  for (const unsigned char *at = data; bytes > 0; --bytes)
    hash = (hash ^ *at++) * UINT64_C(0x100000001B3);
  return hash;
}

/* The digest of an image whose bytes behind the head are `code`: of those, of the GPU, the driver and the PTX. */
static uint64_t image_digest(const kiln_cuda_t *cuda, const kiln_variant_t *variant, const void *code, size_t bytes) {
  int machine[] = {(int)cuda->capability, 0};
  cuda->driver.cuDriverGetVersion(&machine[1]);
  uint64_t hash = digest(UINT64_C(0xCBF29CE484222325), machine, sizeof machine);
  for (uint64_t i = 0; i < variant->module_count; ++i)
    for (uint32_t j = 0; j < variant->modules[i]->image_count; ++j)
      hash = digest(hash, variant->modules[i]->images[j].text, strlen(variant->modules[i]->images[j].text) + 1);
  return digest(hash, code, bytes);
}

static kiln_status_t refuse(kiln_error_t *error) {
  return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                        "load_cuda_image requires a whole image of this archive's kernels, made on such a GPU by this "
                        "driver, got another");
}

/* Past the code, which may have been written by anybody. Null: it does not fit. */
static const char *next_code(const char *at, size_t bytes, uint64_t *code_bytes) {
  if (bytes < BLOCK)
    return NULL;
  memcpy(code_bytes, at, sizeof *code_bytes);
  return *code_bytes <= bytes && in_blocks(*code_bytes) <= bytes - BLOCK ? at + BLOCK + in_blocks(*code_bytes) : NULL;
}

/* Loads all kernels out of what follows the head. */
static kiln_status_t load_all(kiln_cuda_t *cuda, const kiln_variant_t *variant, const char *at, size_t bytes,
                              kiln_error_t *error) {
  const char *end = at + bytes, *next;
  uint64_t code_bytes;
  kiln_status_t status = KILN_OK;
  for (uint64_t i = 0; !status && i < variant->module_count; ++i, at = next) {
    if (!(next = next_code(at, (size_t)(end - at), &code_bytes)))
      return refuse(error);
    status = kiln_cuda_kernel_load_code(cuda, kiln_cuda_kernel_find(cuda, variant->modules[i]), at + BLOCK, error);
  }
  return status;
}

static kiln_status_t check_and_load(kiln_model_t *model, const char *image, size_t bytes, kiln_error_t *error) {
  kiln_cuda_t *cuda = model->device;
  head_t head;
  if (bytes < BLOCK)
    return refuse(error);
  memcpy(&head, image, sizeof head);
  if (head.magic != MAGIC || head.digest != image_digest(cuda, model->variant, image + BLOCK, bytes - BLOCK))
    return refuse(error);
  kiln_status_t status = kiln_cuda_enter(cuda, error);
  if (status)
    return status;
  pthread_mutex_lock(&cuda->loading);
  status = load_all(cuda, model->variant, image + BLOCK, bytes - BLOCK, error);
  cuda->is_from_image = !status;
  pthread_mutex_unlock(&cuda->loading);
  if (!status)
    status = kiln_cuda_allocate_staging(model, error);
  kiln_cuda_leave(cuda);
  return status;
}

kiln_status_t kiln_load_cuda_image(kiln_model_t *model, const void *image, size_t bytes, kiln_error_t *error) {
  if (!model || !image)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "load_cuda_image requires %s, got null",
                          model ? "an image" : "a model");
  kiln_status_t status = model->device ? check_and_load(model, image, bytes, error) : KILN_OK;
  return status ? status : kiln_error_clear(error);
}

static void let_go(const kiln_cuda_t *cuda, kiln_cuda_kernel_t *kernel) {
  if (kernel->link)
    cuda->driver.cuLinkDestroy(kernel->link);
  kernel->link = NULL;
}

/* Assembles the kernel, as cuda_kernel.c does. The link has the code until it is let go. */
static kiln_status_t assemble(kiln_cuda_t *cuda, kiln_cuda_kernel_t *kernel, kiln_error_t *error) {
  const kiln_cuda_module_t *module = kernel->module;
  const char *symbol = "";
  int result = KILN_CUDA_UNSUPPORTED_PTX_VERSION;
  for (uint32_t i = kiln_cuda_find_ptx(cuda, module, 0);
       i < module->image_count && result == KILN_CUDA_UNSUPPORTED_PTX_VERSION;
       i = kiln_cuda_find_ptx(cuda, module, i + 1)) {
    const char *text = module->images[i].text;
    let_go(cuda, kernel);
    symbol = "cuLinkCreate_v2";
    if ((result = cuda->driver.cuLinkCreate_v2(0, NULL, NULL, &kernel->link)))
      break;
    symbol = "cuLinkAddData_v2";
    if ((result = cuda->driver.cuLinkAddData_v2(kernel->link, KILN_CUDA_INPUT_PTX, text, strlen(text) + 1, NULL, 0,
                                                NULL, NULL)))
      continue;
    symbol = "cuLinkComplete";
    result = cuda->driver.cuLinkComplete(kernel->link, &kernel->code, &kernel->code_bytes);
  }
  return kiln_cuda_check(cuda, result, symbol, error);
}

/* Joins the code of all kernels. */
static kiln_status_t join(const kiln_model_t *model, kiln_error_t *error) {
  kiln_cuda_t *cuda = model->device;
  const kiln_variant_t *variant = model->variant;
  size_t bytes = BLOCK;
  for (uint64_t i = 0; i < variant->module_count; ++i)
    bytes += BLOCK + in_blocks(kiln_cuda_kernel_find(cuda, variant->modules[i])->code_bytes);
  kiln_status_t status = kiln_memory_allocate(&model->allocator, bytes, "the image of a model", &cuda->image, error);
  if (status)
    return status;
  char *at = memset(cuda->image, 0, bytes);
  at += BLOCK;
  for (uint64_t i = 0; i < variant->module_count; ++i) {
    const kiln_cuda_kernel_t *kernel = kiln_cuda_kernel_find(cuda, variant->modules[i]);
    const uint64_t code_bytes = kernel->code_bytes;
    memcpy(at, &code_bytes, sizeof code_bytes);
    memcpy(at + BLOCK, kernel->code, kernel->code_bytes);
    at += BLOCK + in_blocks(code_bytes);
  }
  const head_t head = {MAGIC, image_digest(cuda, variant, (char *)cuda->image + BLOCK, bytes - BLOCK)};
  memcpy(cuda->image, &head, sizeof head);
  cuda->image_bytes = bytes;
  return KILN_OK;
}

/* With the lock on loading. Kernels that no call has needed yet are loaded from what is assembled here. */
static kiln_status_t make(const kiln_model_t *model, kiln_error_t *error) {
  kiln_cuda_t *cuda = model->device;
  kiln_status_t status = kiln_cuda_enter(cuda, error);
  if (status)
    return status;
  for (uint64_t i = 0; !status && i < model->variant->module_count; ++i) {
    kiln_cuda_kernel_t *kernel = kiln_cuda_kernel_find(cuda, model->variant->modules[i]);
    const uint64_t begin = kiln_cuda_now();
    status = assemble(cuda, kernel, error);
    atomic_fetch_add(&cuda->assembling, kiln_cuda_now() - begin);
    if (!status)
      status = kiln_cuda_kernel_load_code(cuda, kernel, kernel->code, error);
  }
  if (!status)
    status = join(model, error);
  for (uint64_t i = 0; i <= cuda->kernel_mask; ++i)
    let_go(cuda, &cuda->kernels[i]);
  kiln_cuda_leave(cuda);
  return status;
}

/* Unless it was made before or there is nothing new. */
static kiln_status_t make_once(const kiln_model_t *model, const void **image, size_t *bytes, kiln_error_t *error) {
  kiln_cuda_t *cuda = model->device;
  kiln_status_t status = KILN_OK;
  pthread_mutex_lock(&cuda->loading);
  if (!cuda->image && !cuda->is_from_image)
    status = make(model, error);
  *image = cuda->image;
  *bytes = cuda->image_bytes;
  pthread_mutex_unlock(&cuda->loading);
  return status;
}

kiln_status_t kiln_cuda_image(const kiln_model_t *model, const void **image, size_t *bytes, kiln_error_t *error) {
  if (!model || !image || !bytes)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "cuda_image requires %s, got null",
                          model ? "places for the image and its size" : "a model");
  *image = NULL;
  *bytes = 0;
  kiln_status_t status = model->device ? make_once(model, image, bytes, error) : KILN_OK;
  return status ? status : kiln_error_clear(error);
}

double kiln_cuda_assembly_seconds(const kiln_model_t *model) {
  const kiln_cuda_t *cuda = model ? model->device : NULL;
  return cuda ? (double)atomic_load(&cuda->assembling) * 1e-9 : 0;
}
