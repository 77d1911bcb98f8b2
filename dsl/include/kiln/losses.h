// SPDX-License-Identifier: Apache-2.0
//
// Losses: scalars, composed of other operations, that training minimises.
#pragma once

#include "kiln/derived.h"

namespace kiln {

namespace detail {

/// The sum of all elements.
template <tensor X> constexpr auto total(const X &x, Site site) {
  if constexpr (X::rank == 0)
    return x;
  else
    return total(sum<-1>(x, site), site);
}

/// The mean of all elements.
template <tensor X> constexpr auto total_mean(const X &x, Site site) {
  if constexpr (X::rank == 0)
    return x;
  else
    return total_mean(mean<-1>(x, site), site);
}

template <tensor X, tensor Y>
inline constexpr bool are_alike = X::element == Y::element && X::shape == Y::shape && floating(X::element);

/// Whether targets [...] match logits [..., V].
template <tensor Logits, tensor Targets> constexpr bool are_targets() {
  if constexpr (Logits::rank != Targets::rank + 1 || Targets::element != i32 || !floating(Logits::element)) {
    return false;
  } else {
    for (int axis = 0; axis < Targets::rank; ++axis)
      if (!(Logits::shape[axis] == Targets::shape[axis]))
        return false;
    return true;
  }
}

} // namespace detail

struct CrossEntropyOptions {
  std::int64_t ignore = -1;   // this target is ignored, as are those outside of [0, V)
  double label_smoothing = 0; // weight of the uniform distribution in the target (Szegedy et al. 2016, section 7)
};

/// The mean of -log softmax(logits)[target] over the targets that are not ignored; 0 if all are ignored. logits [...,
/// V], targets i32 [...].
template <CrossEntropyOptions Options = CrossEntropyOptions{}, tensor Logits, tensor Targets>
constexpr auto cross_entropy(const Logits &logits, const Targets &targets, Site site = Site::here()) {
  Tracer &tracer = *logits.tracer;
  tracer.at(site);
  if (!(Options.label_smoothing >= 0 && Options.label_smoothing < 1))
    tracer.fail(rules::loss_c2, Options.label_smoothing);
  using Loss = Tensor<Logits::element>;
  if constexpr (!detail::are_targets<Logits, Targets>()) {
    tracer.fail(rules::loss_c1, detail::typed(logits, targets).data());
    return Loss(&tracer, logits.node);
  } else {
    constexpr int last = Logits::rank - 1;
    auto likely = log_softmax(logits, site);
    auto classes = positions<-1>(logits, site);
    auto is_target = equal(detail::unsqueezed<last>(targets), classes, site);
    auto picked = sum<-1>(where(is_target, likely, 0, site), site);
    auto is_class = logical_and(less_equal(0, targets, site), less_equal(targets, max<0>(classes, site), site), site);
    auto counts = logical_and(is_class, not_equal(targets, Options.ignore, site), site);
    constexpr double part = Options.label_smoothing;
    auto smooth = [&](const auto &y) {
      if constexpr (part == 0)
        return y;
      else
        return add(mul(y, 1 - part, site), mul(mean<-1>(likely, site), part, site), site);
    };
    auto losses = detail::total(where(counts, smooth(picked), 0, site), site);
    auto count = detail::total(cast<Logits::element>(counts, site), site);
    return div(sub(0, losses, site), maximum(count, 1, site), site);
  }
}

/// The mean of (x - y)^2.
template <tensor X, tensor Y> constexpr auto mse(const X &x, const Y &y, Site site = Site::here()) {
  x.tracer->at(site);
  if constexpr (!detail::are_alike<X, Y>) {
    x.tracer->fail(rules::loss_c3, detail::typed(x, y).data());
    return Tensor<X::element>(x.tracer, x.node);
  } else {
    auto difference = sub(x, y, site);
    return detail::total_mean(mul(difference, difference, site), site);
  }
}

/// The mean of log(1 + e^x) - x y for logits x and targets y in [0, 1], which equals
/// -y log sigmoid(x) - (1 - y) log(1 - sigmoid(x)).
template <tensor X, tensor Y> constexpr auto binary_cross_entropy(const X &x, const Y &y, Site site = Site::here()) {
  x.tracer->at(site);
  if constexpr (!detail::are_alike<X, Y>) {
    x.tracer->fail(rules::loss_c3, detail::typed(x, y).data());
    return Tensor<X::element>(x.tracer, x.node);
  } else {
    return detail::total_mean(sub(softplus(x, site), mul(x, y, site), site), site);
  }
}

} // namespace kiln
