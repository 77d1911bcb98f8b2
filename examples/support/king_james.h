// SPDX-License-Identifier: Apache-2.0
/* The King James Bible as training text, from Debian's bible-kjv, or the text of a file, for C and C++ programs: one
 * verse per line, an empty line between chapters, single spaces. king_james.py reads the same.
 *
 *   text_t text = {.alphabet = "abc \n"};
 *   if (!king_james_read(&text, NULL)) ...
 *   train on the first king_james_cut(&text) characters, hold out the rest
 *   free(text.characters);
 *
 * A C program defines _POSIX_C_SOURCE 200809L before the first header. */
#ifndef EXAMPLES_KING_JAMES_H
#define EXAMPLES_KING_JAMES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct text_t {
  const char *alphabet; /* other characters are dropped; NULL: none are */
  char *characters;
  size_t count, room;
  char chapter[16]; /* of the last verse: "Ge1" */
} text_t;

static inline void king_james_add_character(text_t *text, char character) {
  if (!character || (text->alphabet && !strchr(text->alphabet, character)))
    return;
  if (text->count == text->room) {
    text->room = text->room * 2 + 4096;
    text->characters = (char *)realloc(text->characters, text->room);
    if (!text->characters) {
      fprintf(stderr, "no memory for %zu characters\n", text->room);
      exit(1);
    }
  }
  text->characters[text->count++] = character;
}

/* "Ge1:1 In the beginning ...": the reference is dropped. */
static inline void king_james_add_verse(text_t *text, char *line) {
  char *words = strchr(line, ' ');
  const size_t name = strcspn(line, ":");
  if (!words || name >= sizeof text->chapter)
    return;
  if (*text->chapter && (strncmp(text->chapter, line, name) != 0 || text->chapter[name] != '\0'))
    king_james_add_character(text, '\n');
  memcpy(text->chapter, line, name);
  text->chapter[name] = '\0';
  for (char *word = strtok(words, " \n"), *next; word; word = next) {
    next = strtok(NULL, " \n");
    for (; *word; ++word)
      king_james_add_character(text, *word);
    king_james_add_character(text, next ? ' ' : '\n');
  }
}

/* Reads the text of a file, or with NULL the whole book. Returns false if there is none. */
static inline int king_james_read(text_t *text, const char *path) {
  char *line = NULL;
  size_t room = 0;
  FILE *from = path ? fopen(path, "r") : popen("bible -f gen1:1-rev22:21", "r");
  if (!from)
    return 0;
  while (getline(&line, &room, from) > 0)
    if (!path)
      king_james_add_verse(text, line);
    else
      for (const char *at = line; *at; ++at)
        king_james_add_character(text, *at);
  free(line);
  if (path)
    fclose(from);
  else
    pclose(from);
  return text->count > 0;
}

/* Returns the start of the first chapter in the last 5 %. */
static inline size_t king_james_cut(const text_t *text) {
  for (size_t at = text->count - text->count / 20; at + 2 < text->count; ++at)
    if (text->characters[at] == '\n' && text->characters[at + 1] == '\n')
      return at + 2;
  return text->count - text->count / 20;
}

#endif
