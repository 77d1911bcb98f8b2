// SPDX-License-Identifier: Apache-2.0
#include "golden.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace kiln::testing {

void stop(const std::string &why) {
#ifdef __cpp_exceptions
  throw std::runtime_error(why);
#else
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
#endif
}

/// Some of the systems that the tests run on have no streams of files.
std::string readWholeFile(const std::string &path) {
  std::string bytes;
  char piece[65536];
  if (std::FILE *file = std::fopen(path.c_str(), "rb")) {
    while (const std::size_t count = std::fread(piece, 1, sizeof piece, file))
      bytes.append(piece, count);
    std::fclose(file);
  }
  return bytes;
}

Golden::Golden(const std::string &file) {
  bytes = readWholeFile(std::string(KILN_ORACLE_FOLDER) + "/" + file);
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length)
    stop("cannot read " + file);
  std::memcpy(&length, bytes.data(), sizeof length);
  data = sizeof length + length;
  // The files are our own: no escapes in names, and these three fields in this order.
  const std::regex tensor(
      R"json("([^"]+)": \{"dtype": "(\w+)", "shape": \[[^\]]*\], "data_offsets": \[(\d+), (\d+)\])json");
  const std::string header = bytes.substr(sizeof length, length);
  for (std::sregex_iterator at(header.begin(), header.end(), tensor), end; at != end; ++at)
    tensors[(*at)[1]] = {(*at)[2], std::stoul((*at)[3]), std::stoul((*at)[4])};
}

template <class T> std::vector<T> Golden::read(const std::string &tensor, const char *type) const {
  auto found = tensors.find(tensor);
  if (found == tensors.end() || found->second.type != type)
    stop("no golden tensor " + tensor + " of type " + type);
  const Tensor &place = found->second;
  std::vector<T> values((place.end - place.begin) / sizeof(T));
  std::memcpy(values.data(), bytes.data() + data + place.begin, place.end - place.begin);
  return values;
}

double Golden::sampleError(const std::string &name, std::span<const float> ours) const {
  std::vector<std::int32_t> index = integers(name + ".index");
  std::vector<float> value = floats(name + ".value");
  double worst = 0;
  for (std::size_t k = 0; k < index.size(); ++k) {
    double difference = std::fabs(double{ours[index[k]]} - double{value[k]});
    if (!(difference <= worst)) // NaN stays
      worst = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
  }
  return worst;
}

/// Errors of n elements in a bucket add up to about the root of n of them.
double Golden::sketchError(const std::string &name, std::span<const float> ours) const {
  const std::vector<double> sketch = read<double>(name + ".sketch", "F64");
  const std::vector<std::int32_t> shape = integers(name + ".shape");
  const std::size_t rows = shape[0], columns = shape[1];
  if (ours.size() < rows * columns)
    stop(name + " has too few elements");
  const std::vector<std::int32_t> valid =
      tensors.count(name + ".valid") ? integers(name + ".valid") : std::vector<std::int32_t>(rows, 1);
  const int bits = std::countr_zero(sketch.size());
  std::vector<double> sums(sketch.size());
  std::vector<std::int64_t> counts(sketch.size());
  for (std::size_t flat = 0; flat < rows * columns; ++flat) {
    if (!valid[flat / columns])
      continue;
    const std::uint64_t mixed = flat * 0x9E3779B97F4A7C15u;
    const std::size_t bucket = bits ? mixed >> (64 - bits) : 0;
    sums[bucket] += mixed >> 40 & 1 ? -double{ours[flat]} : double{ours[flat]};
    ++counts[bucket];
  }
  double worst = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double difference = std::fabs(sums[i] - sketch[i]) / std::sqrt(std::max<double>(1, counts[i]));
    if (!(difference <= worst))
      worst = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
  }
  return worst;
}

double Golden::error(const std::string &name, std::span<const float> ours) const {
  const double worst = std::max(sampleError(name, ours), sketchError(name, ours));
  const double error = worst / floats(name + ".max").at(0);
  std::ostringstream text;
  text << error;
  ::testing::Test::RecordProperty(name, text.str());
  return error;
}

} // namespace kiln::testing
