// SPDX-License-Identifier: Apache-2.0
//
// Transposed convolutions as ordinary ones, without inserted zeros. The results along an axis at the same position
// modulo the stride are one phase; each phase reads its own part of the kernel. Phases that read equally many elements
// are outputs of one convolution, and the phases are interleaved afterwards.
#pragma once

#include <array>
#include <numeric>
#include <utility>

#include "kiln/derived_images.h"
#include "kiln/patches.h"

namespace kiln {

struct ConvTranspose2dOptions {
  Pair stride = 1, padding = 0, output_padding = 0, dilation = 1;
  int groups = 1;
};
struct ConvTranspose1dOptions {
  int stride = 1, padding = 0, output_padding = 0, dilation = 1, groups = 1;
};

namespace detail {

/// Consecutive phases of an axis that one convolution computes. Phase i of them has the elements `part + i + step * j`
/// of the kernel, j < taps.
struct PhaseGroup {
  std::int64_t part = 0, count = 0, taps = 0;
  std::int64_t shift = 0; // of the elements that the phases read
};

/// One axis of a transposed convolution. Result t is element u = t + padding of the whole result, whose element
/// m * stride + r is that of phase r, which reads the elements m - shift - j * dilation of x.
struct TransposedAxis {
  std::int64_t kernel, stride, padding, more, spacing; // spacing: the dilation of the transposed convolution

  constexpr std::int64_t common() const { return std::gcd(stride, spacing); }
  constexpr std::int64_t step() const { return stride / common(); }
  constexpr std::int64_t dilation() const { return spacing / common(); }
  constexpr std::int64_t most_taps() const { return (kernel + step() - 1) / step(); }
  constexpr std::int64_t taps_of(std::int64_t part) const {
    return part < kernel ? (kernel - 1 - part) / step() + 1 : 0;
  }
  /// The first value of m that a result needs.
  constexpr std::int64_t first() const { return padding / stride; }
  constexpr Dim results(const Dim &x) const {
    return x * Dim(stride) + Dim(spacing * (kernel - 1) + more + 1 - stride - 2 * padding);
  }
  /// The number of values of m that results need.
  constexpr Dim count(const Dim &x) const {
    const std::int64_t last = spacing * (kernel - 1) + more + 1 - padding - stride;
    const std::int64_t rounded = last >= 0 ? (last + stride - 1) / stride : -(-last / stride);
    return x + Dim(rounded - first());
  }

  /// Without dilation phase r has part r of the kernel and no shift, so that there are at most two groups.
  constexpr std::size_t group_count() const {
    return spacing > 1 ? static_cast<std::size_t>(stride) : kernel % stride == 0 ? 1 : 2;
  }
  constexpr PhaseGroup group(std::size_t index) const {
    if (spacing == 1) {
      const std::int64_t longer = kernel % stride == 0 ? stride : kernel % stride;
      return index == 0 ? PhaseGroup{0, longer, most_taps()} : PhaseGroup{longer, stride - longer, taps_of(longer)};
    }
    for (std::int64_t part = 0; part < step(); ++part)
      if (part * spacing % stride == static_cast<std::int64_t>(index))
        return {part, 1, taps_of(part), part * spacing / stride};
    return {0, 1, 0};
  }

  /// The padding of a group's convolution, and the first of its results that is used.
  constexpr std::int64_t elements_before(const PhaseGroup &group) const {
    return group.shift + (group.taps - 1) * dilation() - first();
  }
  constexpr int padding_of(const PhaseGroup &group, const Dim &x) const {
    const std::int64_t before = elements_before(group), after = count(x).offset - x.offset + first() - group.shift;
    const std::int64_t larger = before > after ? before : after;
    return static_cast<int>(larger > 0 ? larger : 0);
  }
  constexpr std::int64_t start(const PhaseGroup &group, const Dim &x) const {
    return padding_of(group, x) - elements_before(group);
  }
};

/// The convolution as it is transposed, of a weight [C, O / groups, kh, kw].
template <auto Options, tensor W>
inline constexpr TransposedAxis transposed_rows{W::shape[2].offset, Options.stride.height, Options.padding.height,
                                                Options.output_padding.height, Options.dilation.height};
template <auto Options, tensor W>
inline constexpr TransposedAxis transposed_columns{W::shape[3].offset, Options.stride.width, Options.padding.width,
                                                   Options.output_padding.width, Options.dilation.width};

/// Turns [C, O / groups, kh, kw] into [parts of rows, parts of columns, O * C / groups, taps of rows, taps of columns]:
/// the last taps come first, as a convolution reads them, and its outputs before its channels.
template <std::int64_t Groups, TransposedAxis Rows, TransposedAxis Columns, tensor W>
constexpr auto in_parts(const W &weight, Site site) {
  constexpr std::int64_t in = W::shape[0].offset / Groups, out = W::shape[1].offset, rows = Rows.most_taps(),
                         columns = Columns.most_taps(), pairs = W::shape[0].offset * out;
  auto whole = pad<3, 0, columns * Columns.step() - Columns.kernel>(
      pad<2, 0, rows * Rows.step() - Rows.kernel>(weight, 0, site), 0, site);
  constexpr std::int64_t area = rows * Rows.step() * columns * Columns.step();
  auto turned = transpose<0, 2, 1, 3>(reshape<Groups, in, out, area>(whole, site), site);
  auto parts = reshape<pairs, rows, Rows.step(), columns, Columns.step()>(turned, site);
  return flip<3>(flip<4>(transpose<2, 4, 0, 1, 3>(parts, site), site), site);
}

/// The weight of a convolution for a group of rows and a group of columns. Its outputs are [groups, phases of rows,
/// phases of columns, O / groups].
template <std::int64_t Groups, std::int64_t In, PhaseGroup Row, PhaseGroup Column, tensor W>
constexpr auto weight_of_phases(const W &parts, Site site) {
  auto of_rows = slice<3, W::shape[3].offset - Row.taps, Row.taps>(slice<0, Row.part, Row.count>(parts, site), site);
  auto of_both =
      slice<4, W::shape[4].offset - Column.taps, Column.taps>(slice<1, Column.part, Column.count>(of_rows, site), site);
  constexpr std::int64_t each = W::shape[2].offset / Groups;
  constexpr std::int64_t outputs = Groups * Row.count * Column.count * (each / In);
  auto grouped = reshape<Row.count, Column.count, Groups, each, Row.taps, Column.taps>(of_both, site);
  return reshape<outputs, In, Row.taps, Column.taps>(transpose<2, 0, 1, 3, 4, 5>(grouped, site), site);
}

/// Moves the groups behind the phases: channels [groups, phases, O / groups] -> [phases, groups, O / groups].
template <std::int64_t Groups, std::int64_t Phases, tensor X> constexpr auto phases_first(const X &x, Site site) {
  if constexpr (Groups == 1 || Phases == 1) {
    return x;
  } else {
    constexpr std::int64_t channels = last(X::shape).offset, out = channels / (Groups * Phases);
    std::vector<double> from;
    for (std::int64_t i = 0; i < channels; ++i)
      from.push_back(static_cast<double>((i / out % Groups * Phases + i / (out * Groups)) * out + i % out));
    return gather<X::rank - 1>(x, constant_of<i32, last(X::shape)>(x, std::move(from)), site);
  }
}

/// Computes the phases of a group of rows and a group of columns: [..., m of rows, m of columns, phases of rows, phases
/// of columns * O], without the axis of phases if rows have one.
template <std::int64_t Groups, TransposedAxis Rows, TransposedAxis Columns, PhaseGroup Row, PhaseGroup Column, tensor X,
          tensor W>
constexpr auto phases(const X &x, const W &parts, Site site) {
  constexpr Dim height = last(X::shape, 3), width = last(X::shape, 2);
  constexpr std::int64_t in = last(X::shape).offset / Groups, outputs = W::shape[2].offset / in;
  constexpr Dim rows = Rows.count(height), columns = Columns.count(width);
  constexpr auto result = [rows, columns] {
    if constexpr (Rows.stride == 1)
      return image_shape(X::shape, {rows, columns, Column.count * outputs});
    else
      return image_shape(X::shape, {rows, columns, Row.count, Column.count * outputs});
  }();
  if constexpr (Row.taps == 0 || Column.taps == 0) {
    return filled<X::element, result>(x.tracer, 0);
  } else {
    constexpr Conv2dOptions options{1, Pair(Rows.padding_of(Row, height), Columns.padding_of(Column, width)),
                                    Pair(static_cast<int>(Rows.dilation()), static_cast<int>(Columns.dilation())),
                                    static_cast<int>(Groups)};
    auto y = conv2d<options>(x, weight_of_phases<Groups, in, Row, Column>(parts, site), site);
    auto used =
        slice<-2, Columns.start(Column, width), columns>(slice<-3, Rows.start(Row, height), rows>(y, site), site);
    return viewed<result>(phases_first<Groups, Row.count * Column.count>(used, site));
  }
}

/// Concatenates `part(0)`, `part(1)`, ... along the axis.
template <int Axis, std::size_t Count> constexpr auto concat_all(const auto &part) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    if constexpr (Count == 1)
      return part(std::integral_constant<std::size_t, 0>());
    else
      return concat<Axis>(part(std::integral_constant<std::size_t, I>())...);
  }(std::make_index_sequence<Count>());
}

template <std::int64_t Groups, TransposedAxis Rows, TransposedAxis Columns, tensor X, tensor W>
constexpr auto conv_transpose2d(const X &x, const W &weight, Site site) {
  constexpr Dim height = last(X::shape, 3), width = last(X::shape, 2), outputs = W::shape[1] * Dim(Groups);
  constexpr int first = X::rank - 3;
  auto parts = in_parts<Groups, Rows, Columns>(weight, site);
  auto all = concat_all<first + 2, Rows.group_count()>([&](auto row) {
    return concat_all<-1, Columns.group_count()>([&](auto column) {
      return phases<Groups, Rows, Columns, Rows.group(row), Columns.group(column)>(x, parts, site);
    });
  });
  constexpr Dim rows = Rows.count(height) * Dim(Rows.stride), columns = Columns.count(width) * Dim(Columns.stride);
  constexpr auto joined = image_shape(X::shape, {rows, columns, outputs});
  auto interleaved = [&] {
    if constexpr (Rows.stride == 1)
      return viewed<joined>(all); // the phases of a column are next to each other already
    else
      return viewed<joined>(transposed_from<first, 0, 2, 1, 3>(all, site));
  }();
  return slice<-2, Columns.padding - Columns.first() * Columns.stride, Columns.results(width)>(
      slice<-3, Rows.padding - Rows.first() * Rows.stride, Rows.results(height)>(interleaved, site), site);
}

template <tensor W> constexpr bool is_fixed_weight(int groups) {
  bool fixed = W::rank == 4 && groups >= 1;
  for (const Dim &dim : W::shape)
    fixed = fixed && dim.fixed();
  return fixed && W::shape[0].offset % groups == 0;
}
constexpr bool is_transposable(const TransposedAxis &axis) {
  return axis.stride >= 1 && axis.spacing >= 1 && axis.padding >= 0 &&
         axis.padding <= axis.spacing * (axis.kernel - 1) && axis.more >= 0 && axis.more < axis.stride;
}

} // namespace detail

/// Transposed convolution, the gradient of conv2d with respect to its image for these options and this weight: x [...,
/// H, W, C], weight [C, O / groups, kh, kw] -> [..., (H - 1) stride - 2 padding + dilation (kh - 1) + output_padding +
/// 1, ..., O].
template <ConvTranspose2dOptions Options = ConvTranspose2dOptions{}, tensor X, tensor W>
constexpr auto conv_transpose2d(const X &x, const W &weight, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr bool is_weight = detail::is_fixed_weight<W>(Options.groups);
  if constexpr (X::rank < 3 || !is_weight || !(detail::last(X::shape) == detail::first(W::shape))) {
    x.tracer->fail(rules::conv_transpose2d_c1, detail::typed(x, weight).data());
    return x;
  } else {
    constexpr detail::TransposedAxis rows = detail::transposed_rows<Options, W>,
                                     columns = detail::transposed_columns<Options, W>;
    if constexpr (!detail::is_transposable(rows) || !detail::is_transposable(columns)) {
      x.tracer->fail(rules::conv_transpose2d_c2, detail::typed(x, weight).data());
      return x;
    } else if constexpr (rows.results(detail::last(X::shape, 3)).min() < 1 ||
                         columns.results(detail::last(X::shape, 2)).min() < 1) {
      x.tracer->fail(rules::window_c2, detail::typed(x).data());
      return x;
    } else {
      return detail::conv_transpose2d<Options.groups, rows, columns>(x, weight, site);
    }
  }
}
template <ConvTranspose2dOptions Options = ConvTranspose2dOptions{}, tensor X, tensor W, tensor B>
constexpr auto conv_transpose2d(const X &x, const W &weight, const B &bias, Site site = Site::here()) {
  return add(conv_transpose2d<Options>(x, weight, site), bias, site);
}

namespace detail {
constexpr ConvTranspose2dOptions of_row(const ConvTranspose1dOptions &options) {
  return {Pair(1, options.stride), Pair(0, options.padding), Pair(0, options.output_padding), Pair(1, options.dilation),
          options.groups};
}
} // namespace detail

/// conv_transpose2d along one axis: x [..., T, C], weight [C, O / groups, k] -> [..., T', O].
template <ConvTranspose1dOptions Options = ConvTranspose1dOptions{}, tensor X, tensor W>
constexpr auto conv_transpose1d(const X &x, const W &weight, Site site = Site::here()) {
  x.tracer->at(site);
  if constexpr (X::rank < 2 || W::rank != 3) {
    x.tracer->fail(rules::conv_transpose1d_c1, detail::typed(x, weight).data());
    return x;
  } else {
    return detail::as_signal(
        conv_transpose2d<detail::of_row(Options)>(detail::as_row(x), detail::as_row_weight(weight), site));
  }
}
template <ConvTranspose1dOptions Options = ConvTranspose1dOptions{}, tensor X, tensor W, tensor B>
constexpr auto conv_transpose1d(const X &x, const W &weight, const B &bias, Site site = Site::here()) {
  return add(conv_transpose1d<Options>(x, weight, site), bias, site);
}

} // namespace kiln
