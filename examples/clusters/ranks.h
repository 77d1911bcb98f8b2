/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the programs of this folder: how a rank ends, and encoding of a text. */
#ifndef CLUSTERS_RANKS_H
#define CLUSTERS_RANKS_H

#include "kiln/communicators/mpi.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEADLINE_MS = 60000 }; /* longer than the slowest rank takes to read its weights */

/* The characters of ../char_gpt/vocabulary.h; a character's position is its token. */
static const char vocabulary[] = "\n !'(),-.:;?ABCDEFGHIJKLMNOPQRSTUVWYZabcdefghijklmnopqrstuvwxyz";

/* Ends all ranks: MPI_Finalize would wait for lost ones. */
static inline void stop(const char *what, const char *which) {
  fprintf(stderr, "error: %s%s\n", what, which);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static inline void check(kiln_status_t status, const kiln_error_t *error) {
  if (status != KILN_OK)
    stop(error->message, "");
}

static inline void *allocate(size_t bytes) {
  void *memory =
      aligned_alloc(KILN_ARENA_ALIGNMENT, (bytes + KILN_ARENA_ALIGNMENT - 1) & ~(size_t)(KILN_ARENA_ALIGNMENT - 1));
  if (!memory)
    stop("no memory", "");
  return memory;
}

/* Encodes the first `most` characters of a text; returns their number. */
static inline int64_t encode(const char *text, int64_t most, int32_t *tokens) {
  int64_t count = 0;
  for (; count < most && text[count]; ++count) {
    const char *at = strchr(vocabulary, text[count]);
    if (!at)
      stop("text: character is not in the vocabulary; got ", text + count);
    tokens[count] = (int32_t)(at - vocabulary);
  }
  return count;
}

#endif
