// SPDX-License-Identifier: Apache-2.0
/* Trains the model of train_spec.cpp on a text, on the device that runs it: no framework, and no allocation after
 * the first step has begun.
 *
 *   char_gpt_trainer [--steps 20000] [--out char_gpt.safetensors] [--text FILE] [--windows 8] [--rate 0.0025]
 *                    [--seed 1611] [--threads 2] [--save SECONDS]
 *
 * Without --text it reads the King James Bible of Debian's bible-kjv. The last 5 % are held out. It writes
 * OUT.training, from which the same command resumes, OUT.losses and OUT.svg next to the weights. The samples of a
 * step and its learning rate depend only on its number, so that a resumed run ends with the bits of one that was not
 * stopped. */
#define _POSIX_C_SOURCE 200809L
#include "../support/first_weights.h"
#include "../support/king_james.h"
#include "../support/loss_curve.h"
#include "char_gpt_train.h"

#include <kiln/learning_rate.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The characters of vocabulary.h; a character's position is its token. */
static const char vocabulary[] = "\n !'(),-.:;?ABCDEFGHIJKLMNOPQRSTUVWYZabcdefghijklmnopqrstuvwxyz";
enum { CONTEXT = 256, MOST_WINDOWS = CHAR_GPT_TRAIN_TRAIN_WINDOWS_MAX, HELD_OUT_WINDOWS = 64, MEASUREMENTS = 200 };

static struct {
  float rate;
  double save;
  int steps, windows, threads, seed;
  const char *text, *out;
} options = {2.5e-3f, 60, 20000, 8, 2, 1611, NULL, "char_gpt.safetensors"};

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
    stop("no memory", "");
  return memory;
}
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* --- text */

/* Returns the training text in tokens, and the start of the held-out part. */
static text_t read_text(size_t *cut) {
  text_t text = {.alphabet = vocabulary};
  if (!king_james_read(&text, options.text))
    stop("cannot read ", options.text ? options.text : "the output of `bible`; is bible-kjv installed?");
  if (text.count < 20 * (CONTEXT + 1))
    stop("the text is too short", "; see --text");
  *cut = king_james_cut(&text);
  for (size_t i = 0; i < text.count; ++i)
    text.characters[i] = (char)(strchr(vocabulary, text.characters[i]) - vocabulary);
  return text;
}

/* --- weights */

static float first_value(random_t *random, const char *name, int rank, const long *shape) {
  (void)shape;
  const size_t length = strlen(name);
  const int is_bias = length >= 4 && strcmp(name + length - 4, "bias") == 0;
  const int is_residual = strstr(name, "out_proj.weight") || strstr(name, "fc2.weight");
  if (rank < 2)
    return is_bias ? 0.0f : 1.0f;
  return (float)((is_residual ? 0.02 / sqrt(8) : 0.04) * random_normal(random));
}

static void bind_first_weights(char_gpt_train_t *model) {
  first_weights_t file = {.value = first_value, .random = {(uint64_t)options.seed}};
#define ADD(...) FIRST_WEIGHTS_ADD(&file, __VA_ARGS__)
  CHAR_GPT_TRAIN_WEIGHTS(ADD)
  const void *image = first_weights_image(&file);
  check(char_gpt_train_bind_weights_from_memory(model, image, file.bytes, &error));
  first_weights_release(&file);
}

/* --- training */

/* Copies windows of the text, and the next character of each. */
static void take_windows(const char *from, const size_t *begins, int count, int32_t *tokens, int32_t *targets) {
  for (int window = 0; window < count; ++window)
    for (int i = 0; i < CONTEXT; ++i) {
      tokens[window * CONTEXT + i] = from[begins[window] + (size_t)i];
      targets[window * CONTEXT + i] = from[begins[window] + (size_t)i + 1];
    }
}

/* Returns bits per character of held-out text. */
static double measure(const char_gpt_train_t *model, const kiln_call_t *call, const text_t *text, size_t cut) {
  static int32_t tokens[8 * CONTEXT], targets[8 * CONTEXT];
  double sum = 0;
  int done = 0;
  for (size_t at = cut; done < HELD_OUT_WINDOWS && at + 8 * CONTEXT < text->count; at += 8 * CONTEXT, done += 8) {
    size_t begins[8];
    float loss;
    for (int i = 0; i < 8; ++i)
      begins[i] = at + (size_t)i * CONTEXT;
    take_windows(text->characters, begins, 8, tokens, targets);
    check(char_gpt_train_evaluate(model, call, 8, tokens, targets, &loss));
    sum += 8 * (double)loss;
  }
  return sum / done / log(2);
}

static void read_options(int argc, char **argv) {
  for (int i = 1; i < argc; i += 2) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!value)
      stop("no value for ", argv[i]);
    else if (strcmp(argv[i], "--steps") == 0)
      options.steps = atoi(value);
    else if (strcmp(argv[i], "--save") == 0)
      options.save = atof(value);
    else if (strcmp(argv[i], "--rate") == 0)
      options.rate = (float)atof(value);
    else if (strcmp(argv[i], "--windows") == 0)
      options.windows = atoi(value);
    else if (strcmp(argv[i], "--threads") == 0)
      options.threads = atoi(value);
    else if (strcmp(argv[i], "--seed") == 0)
      options.seed = atoi(value);
    else if (strcmp(argv[i], "--text") == 0)
      options.text = value;
    else if (strcmp(argv[i], "--out") == 0)
      options.out = value;
    else
      stop("unknown option ", argv[i]);
  }
  if (options.windows < 1 || options.windows > MOST_WINDOWS || options.threads < 1 || options.steps < 1)
    stop("option out of range; expected 1 to 32 windows, one thread or more, one step or more", "");
}

/* Returns OUT with another suffix. */
static const char *next_to_output(const char *ending) {
  static char names[3][512];
  static int next;
  snprintf(names[next], sizeof names[next], "%s%s", options.out, ending);
  return names[next++];
}

static kiln_call_t make_call(size_t arena_bytes, const kiln_pool_t *pool) {
  const kiln_call_t call = {.arena = allocate(arena_bytes),
                            .arena_bytes = arena_bytes,
                            .executor = char_gpt_train_pool_executor(pool),
                            .error = &error};
  return call;
}

int main(int argc, char **argv) {
  static int32_t tokens[MOST_WINDOWS * CONTEXT], targets[MOST_WINDOWS * CONTEXT];
  static loss_curve_t curve;
  read_options(argc, argv);
  const char *saved_as = next_to_output(".training"), *picture = next_to_output(".svg");
  curve.path = next_to_output(".losses");
  size_t cut;
  const text_t text = read_text(&cut);

  char_gpt_train_t *model;
  kiln_pool_t *pool;
  check(char_gpt_train_create(NULL, &model, &error));
  check(char_gpt_train_pool_create((uint32_t)options.threads, &pool, &error));
  const kiln_call_t call = make_call(CHAR_GPT_TRAIN_TRAIN_ARENA_BYTES(options.threads), pool),
                    evaluation = make_call(CHAR_GPT_TRAIN_EVALUATE_ARENA_BYTES(options.threads), pool);
  kiln_training_t training = {0, options.seed};
  if (access(saved_as, F_OK) == 0) {
    check(char_gpt_train_load_training(model, call.arena, &training, saved_as, &error));
    printf("resuming from step %d of %s\n", training.step, saved_as);
  } else {
    bind_first_weights(model);
    memset(call.arena, 0, CHAR_GPT_TRAIN_TRAINING_BYTES);
  }
  loss_curve_open(&curve, training.step);
  printf("%lld parameters, %zu characters to train on, %zu held out; arena %.1f MiB\n",
         (long long)CHAR_GPT_TRAIN_PARAMETERS, cut, text.count - cut, (double)call.arena_bytes / (1 << 20));

  const int first = training.step;
  const double begin = now();
  double shown = begin, saved = begin, sum = 0;
  for (int count = 0; training.step < options.steps;) {
    size_t begins[MOST_WINDOWS];
    float loss, norm, rate = kiln_cosine_rate(options.rate, 0.02f * options.rate, ++training.step, options.steps, 200);
    random_t random = random_of_step((uint64_t)training.seed, training.step);
    for (int i = 0; i < options.windows; ++i)
      begins[i] = (size_t)(random_bits(&random) % (cut - CONTEXT - 1));
    take_windows(text.characters, begins, options.windows, tokens, targets);
    check(char_gpt_train_train(model, &call, options.windows, tokens, targets, &rate, &training.step, &loss, &norm));
    sum += loss;
    ++count;
    const int is_end = training.step == options.steps;
    if (is_end || now() - shown > 1) {
      shown = now();
      const double each = (shown - begin) / (training.step - first);
      printf("\rstep %d of %d: %.4f bits, norm %.2f, %.0f characters/s, %.0f s left %s ", training.step, options.steps,
             sum / count / log(2), norm, options.windows * CONTEXT / each, (options.steps - training.step) * each,
             loss_curve_line(&curve));
      fflush(stdout);
    }
    if (is_end || training.step % (options.steps / MEASUREMENTS + 1) == 0) {
      loss_curve_add(&curve, training.step, sum / count / log(2), measure(model, &evaluation, &text, cut));
      sum = count = 0;
    }
    if (is_end || now() - saved > options.save) {
      saved = now();
      check(char_gpt_train_save_training(model, call.arena, &training, saved_as, &error));
      loss_curve_draw(&curve, picture, "bits per character");
    }
  }
  check(char_gpt_train_save_weights(model, options.out, &error));
  printf("\nheld out %.4f bits per character; saved %s\n", measure(model, &evaluation, &text, cut), options.out);
  char_gpt_train_pool_destroy(pool);
  char_gpt_train_destroy(model);
  free(call.arena);
  free(evaluation.arena);
  free(text.characters);
  return 0;
}
