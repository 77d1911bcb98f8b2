// SPDX-License-Identifier: Apache-2.0
//
// What the fuzz targets of weight files share: small models, of which each stores its one weight in another way, and
// files that are in memory. The link wraps the functions of the run time that map files: an image is then a block of
// exactly its bytes, beside which the address sanitizer sees every access.
#pragma once

#include "published.h"
#include "require.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace kiln_fuzz {

/// What kiln_file_map finds, by the last part of a path.
inline std::map<std::string, std::string, std::less<>> files;

/// One of the models, made for a run, with the words of what it refused.
class Model {
public:
  explicit Model(uint8_t which);
  ~Model();
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;
  /// After a bind: a status in a sentence; all weights can be read, or the model has none.
  void check(kiln_status_t status);

  kiln_model_t *handle = nullptr;
  kiln_error_t error = {};
};

/// Reads each number of each tensor, all of which must lie within the image.
void readAll(const kiln_tensors_t &table, std::string_view image);

/// The parts of an input, apart by this text, the first as it begins.
constexpr std::string_view separator = "\n----\n";
std::string_view takePart(std::string_view &input);

} // namespace kiln_fuzz
