// SPDX-License-Identifier: Apache-2.0
/* Trains the model of train_spec.cpp on a text, on the device that runs it: no framework, and no allocation once the
 * first step has begun.
 *
 *   char_gpt_trainer --minutes 60 --out char_gpt.safetensors [--text FILE] [--windows 8] [--rate 0.0025] [--threads 2]
 *
 * Without --text it reads the King James Bible of Debian's bible-kjv. The last 5 % are held out. The learning rate
 * follows the time used, so that a run fits its minutes on any machine. */
#define _POSIX_C_SOURCE 200809L
#include "char_gpt_train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Those of vocabulary.h; a character's position is its token. */
static const char vocabulary[] = "\n !'(),-.:;?ABCDEFGHIJKLMNOPQRSTUVWYZabcdefghijklmnopqrstuvwxyz";
enum { CONTEXT = 256, MOST_WINDOWS = CHAR_GPT_TRAIN_TRAIN_WINDOWS_MAX, HELD_OUT_WINDOWS = 64, PLOT_COLUMNS = 24 };

static struct {
  double minutes, rate;
  int windows, threads;
  unsigned long long seed;
  const char *text, *out;
} options = {60, 2.5e-3, 8, 2, 1611, NULL, "char_gpt.safetensors"};

static kiln_error_t error;

static void stop(const char *what, const char *which) {
  fprintf(stderr, "char_gpt_trainer: %s%s\n", what, which);
  exit(1);
}
static void check(kiln_status_t status) {
  if (status != KILN_OK)
    stop(error.message, "");
}
static void *allocate(size_t bytes) {
  void *memory =
      aligned_alloc(KILN_ARENA_ALIGNMENT, (bytes + KILN_ARENA_ALIGNMENT - 1) & ~(size_t)(KILN_ARENA_ALIGNMENT - 1));
  if (!memory)
    stop("there is no memory", "");
  return memory;
}
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* --- random numbers: SplitMix64 (Steele, Lea and Flood 2014), the same on every machine */

static unsigned long long random_state;
static unsigned long long draw(void) {
  unsigned long long z = random_state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}
static double draw_uniform(void) { return ((double)(draw() >> 11) + 0.5) * 0x1p-53; }
static double draw_normal(void) { return sqrt(-2 * log(draw_uniform())) * cos(6.283185307179586 * draw_uniform()); }

/* --- text */

typedef struct text_t {
  signed char *tokens;
  size_t count;
} text_t;

static void add_character(text_t *text, size_t *room, int character) {
  const char *place = character ? strchr(vocabulary, character) : NULL;
  if (!place)
    return;
  if (text->count == *room && !(text->tokens = realloc(text->tokens, *room = *room * 2 + 4096)))
    stop("there is no memory", "");
  text->tokens[text->count++] = (signed char)(place - vocabulary);
}

/* "Ge1:1 In the beginning ...": the reference is dropped, a verse stays a line, an empty line separates chapters. */
static void add_verse(text_t *text, size_t *room, char *line, char *chapter) {
  char *words = strchr(line, ' ');
  const size_t name = strcspn(line, ":");
  if (!words || name >= 16)
    return;
  if (*chapter && (strncmp(chapter, line, name) != 0 || chapter[name] != '\0'))
    add_character(text, room, '\n');
  memcpy(chapter, line, name);
  chapter[name] = '\0';
  for (char *word = strtok(words, " \n"), *next; word; word = next) {
    next = strtok(NULL, " \n");
    for (; *word; ++word)
      add_character(text, room, *word);
    add_character(text, room, next ? ' ' : '\n');
  }
}

static text_t read_text(void) {
  text_t text = {NULL, 0};
  size_t room = 0, line_room = 0;
  char *line = NULL, chapter[16] = "";
  FILE *from = options.text ? fopen(options.text, "r") : popen("bible -f gen1:1-rev22:21", "r");
  if (!from)
    stop("cannot read ", options.text ? options.text : "the output of `bible`");
  while (getline(&line, &line_room, from) > 0)
    if (!options.text)
      add_verse(&text, &room, line, chapter);
    else
      for (const char *at = line; *at; ++at)
        add_character(&text, &room, *at);
  free(line);
  if (options.text)
    fclose(from);
  else
    pclose(from);
  if (text.count < 20 * (CONTEXT + 1))
    stop("the text is too short; ", options.text ? "see --text" : "is bible-kjv installed?");
  return text;
}

/* The first chapter that begins in the last 5 %. */
static size_t find_cut(const text_t *text) {
  for (size_t at = text->count - text->count / 20; at + 2 < text->count; ++at)
    if (text->tokens[at] == 0 && text->tokens[at + 1] == 0)
      return at + 2;
  return text->count - text->count / 20;
}

/* --- weights: a safetensors file in memory, of normal numbers, ones and zeros */

static float first_value(const char *name, int rank) {
  const size_t length = strlen(name);
  const int is_bias = length >= 4 && strcmp(name + length - 4, "bias") == 0;
  const int is_residual = strstr(name, "out_proj.weight") || strstr(name, "fc2.weight");
  if (rank < 2)
    return is_bias ? 0.0f : 1.0f;
  return (float)((is_residual ? 0.02 / sqrt(8) : 0.04) * draw_normal());
}

typedef struct image_t {
  char *bytes;
  size_t header, data; /* how much of each is there */
} image_t;

static void add_weight(image_t *image, char *header, const char *pattern, int copies, int rank, const long *shape) {
  for (int copy = 0; copy < copies; ++copy) {
    char name[128], extents[32] = "";
    const char *hole = strstr(pattern, "{}");
    size_t count = 1;
    snprintf(name, sizeof name, hole ? "%.*s%d%s" : "%.*s", hole ? (int)(hole - pattern) : (int)strlen(pattern),
             pattern, copy, hole ? hole + 2 : "");
    for (int i = 0; i < rank; ++i) {
      count *= (size_t)shape[i];
      sprintf(extents + strlen(extents), i ? ",%ld" : "%ld", shape[i]);
    }
    image->header += (size_t)sprintf(header + image->header,
                                     "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                                     image->header > 1 ? "," : "", name, extents, image->data, image->data + 4 * count);
    float *values = (float *)(void *)(image->bytes + image->data);
    for (size_t i = 0; i < count; ++i)
      values[i] = first_value(name, rank);
    image->data += 4 * count;
  }
}

static void bind_first_weights(char_gpt_train_t *model) {
  static char header[1 << 16];
  const size_t room = 4 * (size_t)CHAR_GPT_TRAIN_PARAMETERS;
  image_t image = {allocate(room), 1, 0};
  header[0] = '{';
#define ADD(name, type, copies, ...)                                                                                   \
  {                                                                                                                    \
    const long shape[] = {__VA_ARGS__};                                                                                \
    add_weight(&image, header, name, copies, (int)(sizeof shape / sizeof *shape), shape);                              \
  }
  CHAR_GPT_TRAIN_WEIGHTS(ADD)
  header[image.header++] = '}';
  while (image.header % 8)
    header[image.header++] = ' ';
  const unsigned long long length = image.header;
  char *file = allocate(8 + image.header + room);
  memcpy(file, &length, 8);
  memcpy(file + 8, header, image.header);
  memcpy(file + 8 + image.header, image.bytes, room);
  check(char_gpt_train_bind_weights_from_memory(model, file, 8 + image.header + room, &error));
  free(file);
  free(image.bytes);
}

/* --- training */

/* Windows of the text, and each character's next one. */
static void take_windows(const signed char *from, const size_t *begins, int count, int32_t *tokens, int32_t *targets) {
  for (int window = 0; window < count; ++window)
    for (int i = 0; i < CONTEXT; ++i) {
      tokens[window * CONTEXT + i] = from[begins[window] + (size_t)i];
      targets[window * CONTEXT + i] = from[begins[window] + (size_t)i + 1];
    }
}

/* Bits per character of text that was held out. */
static double measure(const char_gpt_train_t *model, const kiln_call_t *call, const text_t *text, size_t cut) {
  static int32_t tokens[8 * CONTEXT], targets[8 * CONTEXT];
  double sum = 0;
  int done = 0;
  for (size_t at = cut; done < HELD_OUT_WINDOWS && at + 8 * CONTEXT < text->count; at += 8 * CONTEXT, done += 8) {
    size_t begins[8];
    float loss;
    for (int i = 0; i < 8; ++i)
      begins[i] = at + (size_t)i * CONTEXT;
    take_windows(text->tokens, begins, 8, tokens, targets);
    check(char_gpt_train_evaluate(model, call, 8, tokens, targets, &loss));
    sum += 8 * (double)loss;
  }
  return sum / done / log(2);
}

/* The loss over time, a column for each part of it: from the largest to the smallest. */
static const char *plot(const double *losses, int count) {
  static char text[PLOT_COLUMNS * 3 + 1];
  static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  double least = losses[0], most = losses[0];
  *text = '\0';
  for (int i = 0; i < count; ++i) {
    least = fmin(least, losses[i]);
    most = fmax(most, losses[i]);
  }
  for (int i = 0; i < count; ++i)
    strcat(text, levels[most > least ? (int)(7 * (losses[i] - least) / (most - least) + 0.5) : 0]);
  return text;
}

static void read_options(int argc, char **argv) {
  for (int i = 1; i < argc; i += 2) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!value)
      stop("requires a value, got none for ", argv[i]);
    else if (strcmp(argv[i], "--minutes") == 0)
      options.minutes = atof(value);
    else if (strcmp(argv[i], "--rate") == 0)
      options.rate = atof(value);
    else if (strcmp(argv[i], "--windows") == 0)
      options.windows = atoi(value);
    else if (strcmp(argv[i], "--threads") == 0)
      options.threads = atoi(value);
    else if (strcmp(argv[i], "--seed") == 0)
      options.seed = strtoull(value, NULL, 10);
    else if (strcmp(argv[i], "--text") == 0)
      options.text = value;
    else if (strcmp(argv[i], "--out") == 0)
      options.out = value;
    else
      stop("has no option ", argv[i]);
  }
  if (options.windows < 1 || options.windows > MOST_WINDOWS || options.threads < 1 || !(options.minutes > 0))
    stop("requires 1 to 32 windows, at least one thread, and minutes above 0", "");
}

/* Half a cosine down to 2 %, behind 200 steps of warm-up. */
static float rate_at(int step, double part) {
  const double warm_up = step < 200 ? step / 200.0 : 1;
  return (float)(options.rate * warm_up * (0.02 + 0.98 * 0.5 * (1 + cos(3.14159265358979 * part))));
}

int main(int argc, char **argv) {
  static int32_t tokens[MOST_WINDOWS * CONTEXT], targets[MOST_WINDOWS * CONTEXT];
  static double losses[PLOT_COLUMNS];
  read_options(argc, argv);
  random_state = options.seed;
  const text_t text = read_text();
  const size_t cut = find_cut(&text);

  char_gpt_train_t *model;
  kiln_pool_t *pool;
  check(char_gpt_train_create(NULL, &model, &error));
  bind_first_weights(model);
  check(char_gpt_train_pool_create((uint32_t)options.threads, &pool, &error));
  const size_t train_bytes = CHAR_GPT_TRAIN_TRAIN_ARENA_BYTES(options.threads),
               evaluate_bytes = CHAR_GPT_TRAIN_EVALUATE_ARENA_BYTES(options.threads);
  const kiln_executor_t *executor = char_gpt_train_pool_executor(pool);
  const kiln_call_t call = {.arena = allocate(train_bytes),
                            .arena_bytes = train_bytes,
                            .executor = executor,
                            .error = &error},
                    evaluation = {.arena = allocate(evaluate_bytes),
                                  .arena_bytes = evaluate_bytes,
                                  .executor = executor,
                                  .error = &error};
  memset(call.arena, 0, CHAR_GPT_TRAIN_TRAINING_BYTES);
  printf("%lld parameters, %zu characters to train on, %zu held out; arena %.1f MiB\n",
         (long long)CHAR_GPT_TRAIN_PARAMETERS, cut, text.count - cut, (double)train_bytes / (1 << 20));

  const double begin = now(), budget = options.minutes * 60;
  double recent = log((double)strlen(vocabulary)), shown = begin, saved = begin;
  int32_t step = 0;
  int columns = 0;
  for (double used = 0; used < budget;) {
    size_t begins[MOST_WINDOWS];
    float loss, norm, rate = rate_at(++step, used / budget);
    for (int i = 0; i < options.windows; ++i)
      begins[i] = (size_t)(draw() % (cut - CONTEXT - 1));
    take_windows(text.tokens, begins, options.windows, tokens, targets);
    check(char_gpt_train_train(model, &call, options.windows, tokens, targets, &rate, &step, &loss, &norm));
    recent += (step < 50 ? 1.0 / step : 0.02) * (loss - recent);
    used = now() - begin;
    while (columns < PLOT_COLUMNS && used >= budget * columns / PLOT_COLUMNS)
      losses[columns++] = recent;
    const int is_end = used >= budget;
    if (is_end || now() - shown > 1) {
      shown = now();
      printf("\rstep %d: %.4f bits, norm %.2f, %.0f characters/s, %.0f s left %s ", step, recent / log(2), norm,
             step * options.windows * CONTEXT / used, budget > used ? budget - used : 0, plot(losses, columns));
      fflush(stdout);
    }
    if (is_end || now() - saved > 120) {
      saved = now();
      check(char_gpt_train_save_weights(model, options.out, &error));
      printf("\nstep %d: held out %.4f bits per character; saved %s\n", step, measure(model, &evaluation, &text, cut),
             options.out);
    }
  }
  char_gpt_train_pool_destroy(pool);
  char_gpt_train_destroy(model);
  free(call.arena);
  free(evaluation.arena);
  free(text.tokens);
  return 0;
}
