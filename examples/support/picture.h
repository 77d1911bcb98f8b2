// SPDX-License-Identifier: Apache-2.0
//
// Draws matrices as SVG: a square per number, darker for larger numbers, with labels for rows and columns. Several
// matrices of one picture are drawn side by side.
#pragma once

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace support {

/// values[row * columns.size() + column]; numbers from 0 to `largest` are drawn from white to dark.
struct Matrix {
  std::string title;
  std::vector<std::string> rows, columns;
  std::span<const float> values;
  float largest = 1;
  double cell = 0; // pixels of a square; 0: enough for a number if there are few columns, else half of that
};

namespace detail {

inline std::string escaped(const std::string &text) {
  std::string result;
  for (char c : text)
    result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return result;
}

/// Returns a line of text at (x, y), rotated by `degrees` about its anchor.
inline std::string text(const std::string &words, double x, double y, const char *anchor, double degrees = 0,
                        const char *colour = "#222") {
  if (words.empty())
    return {};
  char place[160];
  std::snprintf(place, sizeof place,
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\" transform=\"rotate(%.0f %.1f %.1f)\">", x,
                y, anchor, colour, degrees, x, y);
  return place + escaped(words) + "</text>\n";
}

/// Returns the space between squares.
inline double gap_of(double cell) { return cell > 10 ? 1 : 0; }

inline std::size_t longest(const std::vector<std::string> &words) {
  std::size_t length = 0;
  for (const std::string &word : words)
    length = std::max(length, word.size());
  return length;
}

} // namespace detail

/// Writes the picture. Returns false if the file cannot be written. Numbers are printed in squares that are large
/// enough.
inline bool draw(const std::string &path, const std::vector<Matrix> &matrices) {
  constexpr double square = 34, letter = 7, gap = 24, line = 18;
  double x = gap, height = 0;
  std::string body;
  for (const Matrix &matrix : matrices) {
    const double cell = matrix.cell > 0 ? matrix.cell : matrix.columns.size() <= 16 ? square : square / 2;
    const bool hasNumbers = cell >= square;
    const double left = x + letter * static_cast<double>(detail::longest(matrix.rows)) + 8;
    const double top = gap + line + letter * static_cast<double>(detail::longest(matrix.columns)) + 8;
    const double right = left + cell * static_cast<double>(matrix.columns.size());
    body += detail::text(matrix.title, left, gap, "start");
    char ground[160];
    std::snprintf(ground, sizeof ground,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"rgb(247,251,255)\"/>\n", left, top,
                  right - left, cell * static_cast<double>(matrix.rows.size()));
    body += ground;
    for (std::size_t column = 0; column < matrix.columns.size(); ++column)
      body += detail::text(matrix.columns[column], left + cell * (static_cast<double>(column) + 0.5) + 4, top - 6,
                           "start", -90);
    for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
      const double y = top + cell * static_cast<double>(row);
      body += detail::text(matrix.rows[row], left - 6, y + cell / 2 + 4, "end");
      for (std::size_t column = 0; column < matrix.columns.size(); ++column) {
        const float value = matrix.values[row * matrix.columns.size() + column];
        const double share = std::clamp(static_cast<double>(value) / static_cast<double>(matrix.largest), 0.0, 1.0);
        const double at = left + cell * static_cast<double>(column);
        char shape[160], number[16];
        if (share < 1.0 / 32 && !hasNumbers)
          continue; // as light as the background
        std::snprintf(shape, sizeof shape,
                      "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"#%02x%02x%02x\"/>\n", at, y,
                      cell - detail::gap_of(cell), cell - detail::gap_of(cell), static_cast<int>(247 - 239 * share),
                      static_cast<int>(251 - 203 * share), static_cast<int>(255 - 148 * share));
        body += shape;
        std::snprintf(number, sizeof number, "%.2f", static_cast<double>(value));
        if (hasNumbers)
          body += detail::text(number[0] == '0' ? number + 1 : number, at + cell / 2, y + cell / 2 + 4, "middle", 0,
                               share > 0.5 ? "#fff" : "#222");
      }
    }
    x = right + gap;
    height = std::max(height, top + cell * static_cast<double>(matrix.rows.size()) + gap);
  }
  std::ofstream file(path);
  file << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << static_cast<int>(x) << "\" height=\""
       << static_cast<int>(height) << "\" font-family=\"monospace\" font-size=\"12\">\n"
       << "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
       << body << "</svg>\n";
  return file.good();
}

} // namespace support
