// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* A model's kernels as the driver has assembled them, which the caller can store: the next start loads them without
 * assembling. An image begins with a digest of all that it depends on and of its own bytes. The code of each kernel
 * of the variant follows, in order; each form of a kernel is preceded by its size and its PTX index. Both are
 * rounded up to blocks. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include "cuda/cuda_model.h"
#include "os/clock.h"

#include <string.h>

#define MAGIC UINT64_C(0x324455436E6C694B) /* "KilnCUD2" */
typedef struct head_t {
  uint64_t magic, digest;
} head_t;
typedef struct code_head_t {
  uint64_t bytes, image;
} code_head_t;
enum { BLOCK = sizeof(head_t) };
_Static_assert(sizeof(code_head_t) == BLOCK, "a head is a block");

static uint64_t in_blocks(uint64_t bytes) { return (bytes + (BLOCK - 1)) & ~(uint64_t)(BLOCK - 1); }

/* FNV-1a. */
static uint64_t digest(uint64_t hash, const void *data, size_t bytes) {
  for (const unsigned char *at = data; bytes > 0; --bytes)
    hash = (hash ^ *at++) * UINT64_C(0x100000001B3);
  return hash;
}

/* Digest of the PTX of both forms. */
static uint64_t digest_of_texts(uint64_t hash, const kiln_cuda_module_t *module) {
  for (; module; module = module->tma)
    for (uint32_t i = 0; i < module->image_count; ++i)
      hash = digest(hash, module->images[i].text, strlen(module->images[i].text) + 1);
  return hash;
}

/* Digest of an image with `code` after its header: of the code, the GPU, the driver and the PTX. */
static uint64_t image_digest(const kiln_cuda_t *cuda, const kiln_variant_t *variant, const void *code, size_t bytes) {
  int machine[] = {(int)cuda->capability, 0};
  cuda->driver.cuDriverGetVersion(&machine[1]);
  uint64_t hash = digest(UINT64_C(0xCBF29CE484222325), machine, sizeof machine);
  for (uint64_t i = 0; i < variant->module_count; ++i)
    hash = digest_of_texts(hash, variant->modules[i]);
  return digest(hash, code, bytes);
}

static kiln_status_t refuse(kiln_error_t *error) {
  return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                        "load_cuda_image: wrong image; expected a complete one of this archive's kernels, made on such "
                        "a GPU by this driver");
}

/* Parses untrusted code and returns its end. Null: it does not fit, or names no image of the module. */
static const char *next_code(const char *at, size_t bytes, const kiln_cuda_module_t *module, kiln_cuda_code_t *code) {
  code_head_t head;
  if (bytes < BLOCK)
    return NULL;
  memcpy(&head, at, sizeof head);
  if (head.bytes > bytes || in_blocks(head.bytes) > bytes - BLOCK || head.image >= module->image_count)
    return NULL;
  *code = (kiln_cuda_code_t){head.bytes ? at + BLOCK : NULL, (uint32_t)head.image};
  return at + BLOCK + in_blocks(head.bytes);
}

/* Loads a kernel from the code at *at, and advances past it. */
static kiln_status_t load_kernel(kiln_cuda_t *cuda, kiln_cuda_kernel_t *kernel, const char **at, const char *end,
                                 kiln_error_t *error) {
  kiln_cuda_code_t codes[KILN_CUDA_FORMS] = {{NULL, 0}};
  for (uint32_t i = 0; i < KILN_CUDA_FORMS && kernel->forms[i].module; ++i)
    if (!(*at = next_code(*at, (size_t)(end - *at), kernel->forms[i].module, &codes[i])))
      return refuse(error);
  return kiln_cuda_kernel_load_code(cuda, kernel, codes, error);
}

/* Loads all kernels from the code after the header. */
static kiln_status_t load_all(kiln_cuda_t *cuda, const kiln_variant_t *variant, const char *at, size_t bytes,
                              kiln_error_t *error) {
  const char *end = at + bytes;
  kiln_status_t status = KILN_OK;
  for (uint64_t i = 0; !status && i < variant->module_count; ++i)
    status = load_kernel(cuda, kiln_cuda_kernel_find(cuda, variant->modules[i]), &at, end, error);
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
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "load_cuda_image: null given; expected %s",
                          model ? "an image" : "a model");
  kiln_status_t status = model->device ? check_and_load(model, image, bytes, error) : KILN_OK;
  return status ? status : kiln_error_clear(error);
}

static void let_go(const kiln_cuda_t *cuda, kiln_cuda_form_t *form) {
  if (form->link)
    cuda->driver.cuLinkDestroy(form->link);
  form->link = NULL;
}

static int link_text(kiln_cuda_t *cuda, kiln_cuda_form_t *form, const char *text, const char **symbol) {
  int result;
  let_go(cuda, form);
  *symbol = "cuLinkCreate_v2";
  if ((result = cuda->driver.cuLinkCreate_v2(0, NULL, NULL, &form->link)))
    return result;
  *symbol = "cuLinkAddData_v2";
  if ((result =
           cuda->driver.cuLinkAddData_v2(form->link, KILN_CUDA_INPUT_PTX, text, strlen(text) + 1, NULL, 0, NULL, NULL)))
    return result;
  *symbol = "cuLinkComplete";
  return cuda->driver.cuLinkComplete(form->link, &form->code, &form->code_bytes);
}

/* Assembles the form, as cuda_kernel.c does. The link owns the code until it is destroyed. */
static kiln_status_t assemble_form(kiln_cuda_t *cuda, kiln_cuda_form_t *form, bool is_optional, kiln_error_t *error) {
  const kiln_cuda_module_t *module = form->module;
  const char *symbol = "";
  int result = KILN_CUDA_UNSUPPORTED_PTX_VERSION;
  for (uint32_t i = kiln_cuda_find_ptx(cuda, module, 0);
       i < module->image_count && result == KILN_CUDA_UNSUPPORTED_PTX_VERSION;
       i = kiln_cuda_find_ptx(cuda, module, i + 1)) {
    form->image = i;
    result = link_text(cuda, form, module->images[i].text, &symbol);
  }
  return is_optional && result == KILN_CUDA_UNSUPPORTED_PTX_VERSION ? KILN_OK
                                                                    : kiln_cuda_check(cuda, result, symbol, error);
}

/* Assembles a kernel, and loads it from the result if no call has needed it yet. */
static kiln_status_t assemble(kiln_cuda_t *cuda, kiln_cuda_kernel_t *kernel, kiln_error_t *error) {
  kiln_cuda_code_t codes[KILN_CUDA_FORMS] = {{NULL, 0}};
  const int64_t begin = kiln_nanoseconds();
  kiln_status_t status = KILN_OK;
  for (uint32_t i = 0; !status && i < KILN_CUDA_FORMS; ++i) {
    kiln_cuda_form_t *form = &kernel->forms[i];
    form->code_bytes = 0;
    if (kiln_cuda_has_form(cuda, kernel, i))
      status = assemble_form(cuda, form, i != KILN_CUDA_PLAIN, error);
    codes[i] = (kiln_cuda_code_t){form->code_bytes ? form->code : NULL, form->image};
  }
  atomic_fetch_add(&cuda->assembling, (uint64_t)(kiln_nanoseconds() - begin));
  return status ? status : kiln_cuda_kernel_load_code(cuda, kernel, codes, error);
}

/* Concatenates the forms' code with its headers; if `to` is null, only returns the size. */
static size_t join_kernel(const kiln_cuda_kernel_t *kernel, char *to) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < KILN_CUDA_FORMS && kernel->forms[i].module; ++i) {
    const kiln_cuda_form_t *form = &kernel->forms[i];
    const code_head_t head = {form->code_bytes, form->image};
    if (to) {
      memcpy(to + bytes, &head, sizeof head);
      memcpy(to + bytes + BLOCK, form->code_bytes ? form->code : "", form->code_bytes);
    }
    bytes += BLOCK + in_blocks(form->code_bytes);
  }
  return bytes;
}

/* Concatenates the code of all kernels. */
static kiln_status_t join(const kiln_model_t *model, kiln_error_t *error) {
  kiln_cuda_t *cuda = model->device;
  const kiln_variant_t *variant = model->variant;
  size_t bytes = BLOCK;
  for (uint64_t i = 0; i < variant->module_count; ++i)
    bytes += join_kernel(kiln_cuda_kernel_find(cuda, variant->modules[i]), NULL);
  kiln_status_t status = kiln_memory_allocate(&model->allocator, bytes, "the image of a model", &cuda->image, error);
  if (status)
    return status;
  char *image = memset(cuda->image, 0, bytes), *at = image + BLOCK;
  for (uint64_t i = 0; i < variant->module_count; ++i)
    at += join_kernel(kiln_cuda_kernel_find(cuda, variant->modules[i]), at);
  const head_t head = {MAGIC, image_digest(cuda, variant, image + BLOCK, bytes - BLOCK)};
  memcpy(image, &head, sizeof head);
  cuda->image_bytes = bytes;
  return KILN_OK;
}

/* Requires the lock on loading. */
static kiln_status_t make(const kiln_model_t *model, kiln_error_t *error) {
  kiln_cuda_t *cuda = model->device;
  kiln_status_t status = kiln_cuda_enter(cuda, error);
  if (status)
    return status;
  for (uint64_t i = 0; !status && i < model->variant->module_count; ++i)
    status = assemble(cuda, kiln_cuda_kernel_find(cuda, model->variant->modules[i]), error);
  if (!status)
    status = join(model, error);
  for (uint64_t i = 0; i <= cuda->kernel_mask; ++i)
    for (uint32_t form = 0; form < KILN_CUDA_FORMS; ++form)
      let_go(cuda, &cuda->kernels[i].forms[form]);
  kiln_cuda_leave(cuda);
  return status;
}

/* Creates the image unless it exists or nothing is new. */
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
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "cuda_image: null given; expected %s",
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
