// pair.hpp: written by Kiln; do not edit. C++20; pair.h holds the constants and the contract.
#pragma once

#include "pair.h"

#ifndef KILN_VIEW_HPP
#define KILN_VIEW_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kiln {

/// An extent that is known only at run time.
inline constexpr std::int64_t dynamic = -1;

/// A dense row-major tensor that somebody else owns. The fixed extents are part of the type; the others are given, in order.
template <class T, std::int64_t... Extents> class View {
public:
  static constexpr std::size_t rank = sizeof...(Extents);
  static constexpr std::size_t dynamicRank = (std::size_t(Extents == dynamic) + ... + 0);

  template <class... Sizes>
    requires(sizeof...(Sizes) == dynamicRank)
  constexpr View(T *data, Sizes... sizes) : elements(data), extents{Extents...} {
    const std::array<std::int64_t, dynamicRank> given{static_cast<std::int64_t>(sizes)...};
    std::size_t next = 0;
    for (std::int64_t &extent : extents)
      if (extent == dynamic)
        extent = given[next++];
  }
  /// The last run-time extent follows from the size of the span when it is the only one.
  constexpr View(std::span<T> data)
    requires(dynamicRank == 1)
      : elements(data.data()), extents{Extents...} {
    std::int64_t fixed = 1;
    for (std::int64_t extent : extents)
      fixed *= extent == dynamic ? 1 : extent;
    for (std::int64_t &extent : extents)
      if (extent == dynamic)
        extent = fixed != 0 && static_cast<std::int64_t>(data.size()) % fixed == 0
                     ? static_cast<std::int64_t>(data.size()) / fixed
                     : -1;
  }

  constexpr T *data() const { return elements; }
  constexpr std::int64_t extent(std::size_t dimension) const { return extents[dimension]; }

private:
  T *elements;
  std::array<std::int64_t, rank> extents;
};

} // namespace kiln
#endif // KILN_VIEW_HPP

#include <utility>

namespace pair {

/// Owns a model. Movable; never throws.
class Model {
public:
  Model() = default;
  Model(Model &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Model &operator=(Model &&other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Model() { pair_destroy(handle); }

  /// Creates the model, if there is none yet, and binds its weights from a safetensors file.
  kiln_status_t bind(const char *path, kiln_error_t *error = nullptr) {
    kiln_status_t status = create(error);
    return status == KILN_OK ? pair_bind_weights(handle, path, error) : status;
  }
  kiln_status_t bind(std::span<const std::byte> image, kiln_error_t *error = nullptr) {
    kiln_status_t status = create(error);
    return status == KILN_OK ? pair_bind_weights_from_memory(handle, image.data(), image.size(), error) : status;
  }

  /// Runs entry "encode"; the views must agree on the run-time extents.
  kiln_status_t encode(const kiln_call_t &call, ::kiln::View<const float, ::kiln::dynamic, 6> x, ::kiln::View<float, ::kiln::dynamic, 10> code) const {
    const std::int64_t rows = x.extent(0);
    if (x.extent(0) != rows || code.extent(0) != rows)
      return KILN_EXTENT_OUT_OF_RANGE;
    return pair_encode(handle, &call, rows, x.data(), code.data());
  }
  /// Runs entry "cycle"; the views must agree on the run-time extents.
  kiln_status_t cycle(const kiln_call_t &call, ::kiln::View<const float, ::kiln::dynamic, 6> x, ::kiln::View<float, ::kiln::dynamic, 6> y, ::kiln::View<float, ::kiln::dynamic, 6> shares) const {
    const std::int64_t rows = x.extent(0);
    if (x.extent(0) != rows || y.extent(0) != rows || shares.extent(0) != rows)
      return KILN_EXTENT_OUT_OF_RANGE;
    return pair_cycle(handle, &call, rows, x.data(), y.data(), shares.data());
  }

  /// The C handle; null before bind.
  pair_t *get() const { return handle; }

private:
  kiln_status_t create(kiln_error_t *error) { return handle ? KILN_OK : pair_create(nullptr, &handle, error); }

  pair_t *handle = nullptr;
};

} // namespace pair
