/* SPDX-License-Identifier: Apache-2.0 */
/* A C program with a library, for each system: its results are those that the compiler evaluated (the self-test), also
 * with threads, with weights of a file that it wrote, and with a packed file. Exit status: 0, or the number of the
 * failing step. */
#include "tiny_gpt.h"

#include <string.h>

enum { TOKENS = 3, MOST = 1 << 16 };

/* Used by the self-test; no header declares it. */
kiln_status_t tiny_gpt_bind_counter(tiny_gpt_t *model, kiln_error_t *error);

static kiln_error_t error;
static _Alignas(KILN_ARENA_ALIGNMENT) char arena[TINY_GPT_FORWARD_ARENA_BYTES(3)];
static float wanted[MOST], got[MOST];

static int is_run(const tiny_gpt_t *model, const kiln_executor_t *executor, float *logits) {
  static const int32_t tokens[TOKENS] = {2, 0, 1};
  const kiln_call_t call = {.arena = arena, .arena_bytes = sizeof arena, .executor = executor, .error = &error};
  return tiny_gpt_forward(model, &call, TOKENS, tokens, logits) == KILN_OK;
}

static int is_same(const tiny_gpt_t *model, const kiln_executor_t *executor) {
  memset(got, 0, sizeof got);
  return is_run(model, executor, got) && memcmp(got, wanted, sizeof got) == 0;
}

/* Binds weights from files: a weight file, and a packed file. */
static int is_kept(tiny_gpt_t *model, tiny_gpt_t *other, const char *path) {
  return tiny_gpt_save_weights(model, path, &error) == KILN_OK &&
         tiny_gpt_bind_weights(other, path, &error) == KILN_OK && is_same(other, 0) &&
         tiny_gpt_save_packed(model, path, &error) == KILN_OK && tiny_gpt_bind_packed(other, path, &error) == KILN_OK &&
         is_same(other, 0);
}

int main(int count, char **arguments) {
  tiny_gpt_t *model = 0, *other = 0;
  kiln_pool_t *pool = 0;
  if (count != 2)
    return 1;
  if (tiny_gpt_selftest(0, &error))
    return 2;
  if (tiny_gpt_create(0, &model, &error) || tiny_gpt_create(0, &other, &error) ||
      tiny_gpt_bind_counter(model, &error) || !is_run(model, 0, wanted))
    return 3;
  if (tiny_gpt_pool_create(3, &pool, &error) || !is_same(model, tiny_gpt_pool_executor(pool)))
    return 4;
  if (!is_kept(model, other, arguments[1]))
    return 5;
  if (tiny_gpt_bind_weights(other, "no such folder/weights", &error) != KILN_FILE_ERROR ||
      !strstr(error.message, "cannot open weight file \"no such folder/weights\": "))
    return 6;
  tiny_gpt_pool_destroy(pool);
  tiny_gpt_destroy(other);
  tiny_gpt_destroy(model);
  return 0;
}
