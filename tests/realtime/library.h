// SPDX-License-Identifier: Apache-2.0
//
// A type-erased interface to a generated library, which is the same for all libraries. write_library.cmake generates it
// from a manifest.
#pragma once

#include "runtime/src/core/model.h"

#include <tuple>
#include <type_traits>
#include <vector>

namespace kiln::realtime {

/// The arguments of an entry, in the order of its parameters. A batch has sequences instead of extents.
struct Values {
  const int64_t *extents;
  void *const *tensors;
  size_t count;
  const kiln_sequence_t *sequences;
};

struct Library {
  const kiln_descriptor_t &descriptor;
  kiln_status_t (*create)(const kiln_options_t *options, void **model, kiln_error_t *error);
  kiln_status_t (*bind)(void *model, const void *image, size_t bytes, kiln_error_t *error);
  const char *(*target)(const void *model);
  void (*destroy)(void *model);
  /// In the descriptor's order.
  std::vector<kiln_status_t (*)(const void *model, const kiln_call_t *call, const Values &values)> entries;
};

/// The library that the program is linked with.
extern const Library library;

/// Calls the function of an entry, as a program does.
template <auto function> struct EntryOf;
template <class Model, class... Parameters,
          kiln_status_t (*function)(const Model *, const kiln_call_t *, Parameters...)>
struct EntryOf<function> {
  static kiln_status_t call(const void *model, const kiln_call_t *call, const Values &values) {
    const int64_t *extent = values.extents;
    void *const *tensor = values.tensors;
    auto next = [&]<class T>(std::type_identity<T>) -> T {
      if constexpr (std::is_same_v<T, int64_t>)
        return *extent++;
      else if constexpr (std::is_same_v<T, size_t>)
        return values.count;
      else if constexpr (std::is_same_v<T, const kiln_sequence_t *>)
        return values.sequences;
      else
        return static_cast<T>(*tensor++);
    };
    // Braces guarantee evaluation from left to right.
    const std::tuple<const Model *, const kiln_call_t *, Parameters...> arguments{
        static_cast<const Model *>(model), call, next(std::type_identity<Parameters>())...};
    return std::apply(function, arguments);
  }
};

} // namespace kiln::realtime
