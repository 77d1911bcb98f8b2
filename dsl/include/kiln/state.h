// SPDX-License-Identifier: Apache-2.0
//
// Tensors that persist between calls, in the arena: KV caches, the states of a decoder.
#pragma once

#include "kiln/elementwise.h"

namespace kiln {

/// A tensor of fixed shape that keeps its value from one call to the next: the state `name` of the layer that is being
/// traced, shared by all entries. It is stored at the beginning of the arena, so each arena is a separate session; a
/// session starts with zeros.
template <ElementType E, Dim... Extents> class State {
public:
  constexpr explicit State(const char *name) : name(or_empty(name)) {}

  static constexpr Shape<sizeof...(Extents)> shape{{Extents...}};
  static_assert(sizeof...(Extents) > 0, "kiln: state: no dimensions; expected at least one [state_c4]");

  /// The value at the start of the call; `context` is any tensor of the trace.
  constexpr auto read(const tensor auto &context, Site site = Site::here()) const {
    return begin<detail::first(shape)>(context, site);
  }
  /// The first `Rows` rows, which earlier calls appended or stored.
  template <Dim Rows> constexpr auto read(const tensor auto &context, Site site = Site::here()) const {
    return begin<Rows>(context, site);
  }

  /// Appends `rows` so that they are the last of the first `Rows` rows, and returns these: [n, ...] -> [Rows, ...]. The
  /// preceding rows are those of earlier calls.
  template <Dim Rows, tensor X> constexpr auto append(const X &rows, Site site = Site::here()) const {
    Tracer &tracer = *rows.tracer;
    tracer.at(site);
    Attributes attributes = attributes_of(tracer, Op::append);
    constexpr Dim count = detail::first(X::shape);
    if constexpr (X::element != E || !detail::same_shape(X::shape, detail::with_axis_extent(shape, 0, count)))
      tracer.fail(rules::append_c1, detail::typed(rows).data(),
                  Text().put(E).put(detail::with_axis_extent(shape, 0, count)).data());
    tracer.declare(Shape<1>{{Rows}});
    if constexpr (!detail::at_least(Rows, count))
      tracer.fail(rules::append_c2, Rows, count);
    check_room<Rows>(tracer);
    auto result = detail::emit<First<Rows>>(&tracer, Op::append, {rows.node}, std::move(attributes));
    tracer.effect(result.node);
    return result;
  }

  /// Sets the value for the next call; reads in the current call still see the old value.
  template <tensor X> constexpr void store(const X &value, Site site = Site::here()) const {
    Tracer &tracer = *value.tracer;
    tracer.at(site);
    Attributes attributes = attributes_of(tracer, Op::store);
    if constexpr (X::element != E || !detail::same_shape(X::shape, shape))
      tracer.fail(rules::store_c1, detail::typed(value).data(), Text().put(E).put(shape).data());
    tracer.effect(tracer.add({Op::store, E, {}, {value.node}, std::move(attributes)}));
  }

private:
  template <Dim Rows> using First = TensorOf<E, detail::with_axis_extent(shape, 0, Rows)>;

  template <Dim Rows> constexpr auto begin(const tensor auto &context, Site site) const {
    Tracer &tracer = *context.tracer;
    tracer.at(site);
    check_room<Rows>(tracer);
    return detail::emit<First<Rows>>(&tracer, Op::state, {}, attributes_of(tracer, Op::state));
  }
  constexpr Attributes attributes_of(Tracer &tracer, Op op) const {
    Attributes attributes;
    for (const Dim &dim : shape)
      if (!dim.fixed())
        tracer.fail(rules::tensor_c5, dim);
    attributes.index = tracer.state(name, E, shape);
    tracer.change(attributes.index, op);
    return attributes;
  }
  template <Dim Rows> static constexpr void check_room(Tracer &tracer) {
    tracer.declare(Shape<1>{{Rows}});
    if constexpr (!detail::first(shape).fixed())
      tracer.fail(rules::tensor_c5, detail::first(shape));
    else if constexpr (Rows.max() > detail::first(shape).offset)
      tracer.fail(rules::append_c3, Rows, detail::first(shape));
  }

  const char *name;
};

} // namespace kiln
