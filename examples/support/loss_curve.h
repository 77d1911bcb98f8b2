// SPDX-License-Identifier: Apache-2.0
/* The losses of a training run, for C and C++ programs: kept in a text file across runs, printed in a line, and
 * plotted. */
#ifndef EXAMPLES_LOSS_CURVE_H
#define EXAMPLES_LOSS_CURVE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The plotted data of a training run: a point for each measurement. */
typedef struct loss_curve_t {
  const char *path; /* a line per point: step, training loss, held-out loss */
  int count;
  struct {
    int step;
    double trained, held_out;
  } points[1024];
} loss_curve_t;

enum { LOSS_CURVE_POINTS = 1024, LOSS_CURVE_COLUMNS = 32 };

/* Reads the points up to the step from which a run resumes, and rewrites the file with them. */
static inline void loss_curve_open(loss_curve_t *curve, int last_step) {
  int step;
  double trained, held_out;
  FILE *file = last_step > 0 ? fopen(curve->path, "r") : NULL;
  while (file && curve->count < LOSS_CURVE_POINTS && fscanf(file, "%d %lf %lf", &step, &trained, &held_out) == 3)
    if (step <= last_step) {
      curve->points[curve->count].step = step;
      curve->points[curve->count].trained = trained;
      curve->points[curve->count++].held_out = held_out;
    }
  if (file)
    fclose(file);
  if ((file = fopen(curve->path, "w"))) {
    for (int i = 0; i < curve->count; ++i)
      fprintf(file, "%d %.6f %.6f\n", curve->points[i].step, curve->points[i].trained, curve->points[i].held_out);
    fclose(file);
  }
}

static inline void loss_curve_add(loss_curve_t *curve, int step, double trained, double held_out) {
  FILE *file = fopen(curve->path, "a");
  if (file) {
    fprintf(file, "%d %.6f %.6f\n", step, trained, held_out);
    fclose(file);
  }
  if (curve->count == LOSS_CURVE_POINTS)
    return;
  curve->points[curve->count].step = step;
  curve->points[curve->count].trained = trained;
  curve->points[curve->count++].held_out = held_out;
}

/* Returns the training losses as a row of at most LOSS_CURVE_COLUMNS bars, scaled from the largest to the smallest. */
static inline const char *loss_curve_line(const loss_curve_t *curve) {
  static char text[LOSS_CURVE_COLUMNS * 3 + 1];
  static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const int columns = curve->count < LOSS_CURVE_COLUMNS ? curve->count : LOSS_CURVE_COLUMNS;
  double least = INFINITY, most = -INFINITY;
  *text = '\0';
  for (int i = 0; i < curve->count; ++i) {
    least = fmin(least, curve->points[i].trained);
    most = fmax(most, curve->points[i].trained);
  }
  for (int column = 0; column < columns; ++column) {
    const double loss = curve->points[(column + 1) * curve->count / columns - 1].trained;
    strcat(text, levels[most > least ? (int)(7 * (loss - least) / (most - least) + 0.5) : 0]);
  }
  return text;
}

/* One of the losses of a training run, as a line of a plot. */
typedef struct loss_line_t {
  const loss_curve_t *curve;
  int is_held_out;
  const char *colour, *name;
} loss_line_t;

static inline double loss_line_at(const loss_line_t *line, int i) {
  return line->is_held_out ? line->curve->points[i].held_out : line->curve->points[i].trained;
}

/* Plots lines over the steps, for training runs of the same length; `unit`: "bits per character". */
static inline void loss_lines_draw(const loss_line_t *lines, int count, const char *path, const char *unit) {
  FILE *file = lines->curve->count > 1 ? fopen(path, "w") : NULL;
  if (!file)
    return;
  double least = INFINITY, most = -INFINITY, last = 0;
  for (int line = 0; line < count; ++line)
    for (int i = 0; i < lines[line].curve->count; ++i) {
      least = fmin(least, loss_line_at(&lines[line], i));
      most = fmax(most, loss_line_at(&lines[line], i));
      last = fmax(last, lines[line].curve->points[i].step);
    }
  most = most > least ? most : least + 1;
  fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 600 300\" font-family=\"sans-serif\" "
                "font-size=\"12\">\n<rect width=\"600\" height=\"300\" fill=\"white\"/>\n");
  for (int i = 0; i <= 4; ++i) {
    const double y = 250 - 210 * i / 4.0, x = 60 + 520 * i / 4.0;
    fprintf(file,
            "<path d=\"M60 %.1fH580\" stroke=\"#ddd\"/><text x=\"52\" y=\"%.1f\" text-anchor=\"end\">%.2f</text>\n", y,
            y + 4, least + (most - least) * i / 4);
    fprintf(file, "<text x=\"%.1f\" y=\"270\" text-anchor=\"middle\">%.0f</text>\n", x, last * i / 4.0);
  }
  for (int line = 0; line < count; ++line) {
    fprintf(file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", lines[line].colour);
    for (int i = 0; i < lines[line].curve->count; ++i)
      fprintf(file, "%.1f,%.1f ", 60 + 520 * lines[line].curve->points[i].step / last,
              250 - 210 * (loss_line_at(&lines[line], i) - least) / (most - least));
    fprintf(file, "\"/>\n");
  }
  fprintf(file, "<text x=\"320\" y=\"292\" text-anchor=\"middle\">steps</text><text x=\"60\" y=\"24\">%s: ", unit);
  for (int line = 0; line < count; ++line)
    fprintf(file, "%s<tspan fill=\"%s\">%s</tspan>", line ? ", " : "", lines[line].colour, lines[line].name);
  fprintf(file, "</text>\n</svg>\n");
  fclose(file);
}

/* Plots both losses of a training run. */
static inline void loss_curve_draw(const loss_curve_t *curve, const char *path, const char *unit) {
  const loss_line_t lines[] = {{curve, 0, "#1f77b4", "in training"}, {curve, 1, "#d62728", "held out"}};
  loss_lines_draw(lines, 2, path, unit);
}

#endif
