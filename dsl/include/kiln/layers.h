// SPDX-License-Identifier: Apache-2.0
//
// Layers: named objects that own parameters. Calling a layer traces its `forward` in a scope of that name below the
// caller's scope, so the name of a parameter is its call path: "h.{}.attn.c_attn.weight".
//
// A layer keeps the scope of its first call. A second call, or a call from another layer that holds a reference to it,
// uses the same parameters.
#pragma once

#include "kiln/ops.h"

namespace kiln {

namespace detail {
class InScope;
}

/// The base of every layer: its name and its scope.
class Named {
  friend class detail::InScope;

public:
  constexpr Named() = default;
  constexpr explicit Named(const char *name) : name(or_empty(name)) {}
  // Not defaulted, so that a model is copied member by member: g++ copies a trivially copyable class as a whole, and
  // does not notice its mutable members (has_mutable_members).
  constexpr Named(const Named &other) : name(other.name), scope(other.scope) {}
  constexpr Named &operator=(const Named &) = default;

protected:
  /// The scope of this layer, opened at the first call. `is_number`: the name is a part of a layer's number.
  constexpr int scope_in(Tracer &tracer, std::int64_t copies = 0, bool is_number = false) const {
    // A trace owns its model and calls it through const functions; g++ 12 cannot read a mutable member in a constant
    // expression, hence the const_cast.
    if (scope < 0)
      const_cast<int &>(scope) = is_number ? tracer.add_scope(name, copies) : tracer.child(name, copies);
    return scope;
  }

private:
  const char *name = "";
  int scope = -1;
};

namespace detail {

/// Gives a layer of the language the scope of its stack. While it is called, messages keep the line of the stack's
/// call, since the layer has none.
class InScope {
public:
  constexpr InScope(Tracer &tracer, const Named &layer, int scope) : tracer(tracer), former(tracer.keep_site(true)) {
    const_cast<int &>(layer.scope) = scope;
  }
  constexpr ~InScope() { tracer.keep_site(former); }
  InScope(const InScope &) = delete;
  InScope &operator=(const InScope &) = delete;

private:
  Tracer &tracer;
  bool former;
};

/// Returns the first tensor among the arguments, or the last argument if there is none.
template <class First, class... Rest> constexpr auto first_tensor(const First &first, const Rest &...rest) {
  if constexpr (tensor<First> || sizeof...(Rest) == 0)
    return first;
  else
    return first_tensor(rest...);
}
/// Reports a call of a layer with arguments that none of its overloads accepts.
template <class... Given> constexpr auto refuse_call(const Given &...given) {
  refuse<rules::layer_c8, Given...>();
  if constexpr (sizeof...(Given) > 0)
    return first_tensor(given...);
}

template <class First, class... Rest> constexpr Tracer &tracer_of(const First &first, const Rest &...rest) {
  if constexpr (tensor<First>)
    return *first.tracer;
  else {
    static_assert(sizeof...(Rest) > 0, "kiln: layer: no tensor among its arguments; expected at least one [layer_c3]");
    return tracer_of(rest...);
  }
}

/// A parameter of a layer whose weight type the caller chooses. Biases use only its element type: they are never
/// quantised.
template <WeightType Weight, Dim... Extents>
constexpr auto weight(const tensor auto &context, const char *leaf, const Initial &initial, Site site) {
  static_assert(floating(Weight.element),
                "kiln: layer: wrong element type of the weights; expected a floating-point one [layer_c5]");
  return parameter<Weight, Extents...>(context, leaf, initial, site);
}
} // namespace detail

/// The base of a user-defined layer: `struct Attention : kiln::Layer<Attention> { using Layer::Layer; ... forward(...)
/// const }`.
template <class Self> class Layer : public Named {
public:
  using Named::Named;

  /// Chosen if a name is passed to a layer that did not inherit the constructor.
  template <std::size_t Size> constexpr Layer(const char (&)[Size]) {
    static_assert(detail::never<Self, Layer<char[Size]>>,
                  "kiln: layer: it has no constructor that takes its name; expected `using Layer::Layer;` in it, in a "
                  "template `using kiln::Layer<Self>::Layer;` [layer_c7]");
  }

  template <class... Arguments> constexpr auto operator()(const Arguments &...arguments) const {
    Tracer &tracer = detail::tracer_of(arguments...);
    ScopeGuard guard(tracer, scope_in(tracer));
    const Self &self = static_cast<const Self &>(*this);
    if constexpr (requires { self.forward(arguments...); }) {
      return self.forward(arguments...);
    } else {
      detail::refuse<rules::layer_c6, Arguments...>();
      return detail::first_tensor(arguments...);
    }
  }
};

/// y = x W^T + b: parameters weight and bias.
template <std::int64_t In, std::int64_t Out, bool Bias = true, WeightOrder Order = WeightOrder::out_in,
          WeightType Weight = f32>
class Linear : public Named {
public:
  using Named::Named;

  constexpr auto operator()(const tensor auto &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    constexpr bool out_first = Order == WeightOrder::out_in;
    constexpr Initial initial = Initial::fan_in(In);
    auto weight = detail::weight<Weight, out_first ? Out : In, out_first ? In : Out>(x, "weight", initial, site);
    if constexpr (Bias)
      return linear<Order>(x, weight, detail::weight<Weight.element, Out>(x, "bias", initial, site), site);
    else
      return linear<Order>(x, weight, site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }
};

/// conv2d of an image [..., height, width, In] with a kernel of this size: parameters weight [Out, In / groups, kernel
/// height, kernel width] and bias.
template <std::int64_t In, std::int64_t Out, Pair Kernel, Conv2dOptions Options = Conv2dOptions{}, bool Bias = true,
          WeightType Weight = f32>
class Conv2d : public Named {
public:
  using Named::Named;

  constexpr auto operator()(const tensor auto &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    constexpr std::int64_t groups = Options.groups < 1 ? 1 : Options.groups; // conv2d rejects other values
    constexpr Initial initial = Initial::fan_in(In / groups * Kernel.height * Kernel.width);
    auto weight = detail::weight<Weight, Out, In / groups, Kernel.height, Kernel.width>(x, "weight", initial, site);
    if constexpr (Bias)
      return conv2d<Options>(x, weight, detail::weight<Weight.element, Out>(x, "bias", initial, site), site);
    else
      return conv2d<Options>(x, weight, site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }
};

/// conv1d of a signal [..., steps, In]: parameters weight [Out, In / groups, Kernel] and bias.
template <std::int64_t In, std::int64_t Out, std::int64_t Kernel, Conv1dOptions Options = Conv1dOptions{},
          bool Bias = true, WeightType Weight = f32>
class Conv1d : public Named {
public:
  using Named::Named;

  constexpr auto operator()(const tensor auto &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    constexpr std::int64_t groups = Options.groups < 1 ? 1 : Options.groups; // conv1d rejects other values
    constexpr Initial initial = Initial::fan_in(In / groups * Kernel);
    auto weight = detail::weight<Weight, Out, In / groups, Kernel>(x, "weight", initial, site);
    if constexpr (Bias)
      return conv1d<Options>(x, weight, detail::weight<Weight.element, Out>(x, "bias", initial, site), site);
    else
      return conv1d<Options>(x, weight, site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }
};

/// conv3d of a volume [..., depth, height, width, In]: parameters weight [Out, In / groups, kernel depth, kernel
/// height, kernel width] and bias.
template <std::int64_t In, std::int64_t Out, Triple Kernel, Conv3dOptions Options = Conv3dOptions{}, bool Bias = true,
          WeightType Weight = f32>
class Conv3d : public Named {
public:
  using Named::Named;

  constexpr auto operator()(const tensor auto &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    constexpr std::int64_t groups = Options.groups < 1 ? 1 : Options.groups; // conv3d rejects other values
    constexpr Initial initial = Initial::fan_in(In / groups * Kernel.depth * Kernel.height * Kernel.width);
    auto weight =
        detail::weight<Weight, Out, In / groups, Kernel.depth, Kernel.height, Kernel.width>(x, "weight", initial, site);
    if constexpr (Bias)
      return conv3d<Options>(x, weight, detail::weight<Weight.element, Out>(x, "bias", initial, site), site);
    else
      return conv3d<Options>(x, weight, site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }
};

/// conv_transpose1d of a signal [..., steps, In]: parameters weight [In, Out / groups, Kernel] and bias.
template <std::int64_t In, std::int64_t Out, std::int64_t Kernel,
          ConvTranspose1dOptions Options = ConvTranspose1dOptions{}, bool Bias = true, WeightType Weight = f32>
class ConvTranspose1d : public Named {
public:
  using Named::Named;

  constexpr auto operator()(const tensor auto &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    constexpr std::int64_t groups = Options.groups < 1 ? 1 : Options.groups; // conv_transpose2d rejects other values
    constexpr Initial initial = Initial::fan_in(Out / groups * Kernel);      // as PyTorch computes it
    auto weight = detail::weight<Weight, In, Out / groups, Kernel>(x, "weight", initial, site);
    if constexpr (Bias)
      return conv_transpose1d<Options>(x, weight, detail::weight<Weight.element, Out>(x, "bias", initial, site), site);
    else
      return conv_transpose1d<Options>(x, weight, site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }
};

/// conv_transpose2d of an image [..., height, width, In]: parameters weight [In, Out / groups, kernel height, kernel
/// width] and bias.
template <std::int64_t In, std::int64_t Out, Pair Kernel, ConvTranspose2dOptions Options = ConvTranspose2dOptions{},
          bool Bias = true, WeightType Weight = f32>
class ConvTranspose2d : public Named {
public:
  using Named::Named;

  constexpr auto operator()(const tensor auto &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    constexpr std::int64_t groups = Options.groups < 1 ? 1 : Options.groups; // conv_transpose2d rejects other values
    // PyTorch computes the fan-in of this shape from its second axis and the kernel.
    constexpr Initial initial = Initial::fan_in(Out / groups * Kernel.height * Kernel.width);
    auto weight = detail::weight<Weight, In, Out / groups, Kernel.height, Kernel.width>(x, "weight", initial, site);
    if constexpr (Bias)
      return conv_transpose2d<Options>(x, weight, detail::weight<Weight.element, Out>(x, "bias", initial, site), site);
    else
      return conv_transpose2d<Options>(x, weight, site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }
};

/// group_norm of an image [..., height, width, Width]: parameters weight and bias.
template <std::int64_t Groups, std::int64_t Width, WeightType Weight = f32> class GroupNorm : public Named {
public:
  constexpr explicit GroupNorm(const char *name, double epsilon = 1e-5) : Named(name), epsilon(epsilon) {}

  constexpr auto operator()(const tensor auto &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    return group_norm<Groups>(x, detail::weight<Weight, Width>(x, "weight", Initial::ones(), site),
                              detail::weight<Weight, Width>(x, "bias", Initial::zeros(), site), epsilon, site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  double epsilon;
};
/// Normalises each channel separately.
template <std::int64_t Width, WeightType Weight = f32> using InstanceNorm2d = GroupNorm<Width, Width, Weight>;

namespace detail {

/// The mean over all axes except the last. `shifted`: as in mean_along.
template <tensor X> constexpr auto mean_of_rows(const X &x, bool shifted, Site site) {
  if constexpr (X::rank < 2)
    return x;
  else
    return mean_of_rows(mean_along<0>(x, shifted, site), shifted, site);
}

/// Multiplies n by the sizes of the axes from Axis on, except the last.
template <int Axis, tensor X, tensor N> constexpr auto times_rows(const X &x, const N &n, Site site) {
  if constexpr (Axis + 1 >= X::rank)
    return n;
  else if constexpr (X::shape[Axis].fixed())
    return times_rows<Axis + 1>(x, mul(n, static_cast<double>(X::shape[Axis].offset), site), site);
  else
    return times_rows<Axis + 1>(x, mul(n, cast<f32>(add(max(positions<Axis>(x, site), site), 1, site), site), site),
                                site);
}

/// Converts the variance of n rows to the sample variance: multiplies it by n / (n - 1).
template <tensor X, tensor V> constexpr auto sample_variance(const X &x, const V &variance, Site site) {
  auto others = maximum(sub(times_rows<0>(x, constant<f32>(x, {1}, site), site), 1, site), 1, site);
  return add(variance, div(variance, cast<X::element>(others, site), site), site);
}

} // namespace detail

/// (x - mean) / sqrt(variance + epsilon) * weight + bias for each channel of [..., Width] (Ioffe and Szegedy 2015),
/// with the four parameters of torch.nn.BatchNorm2d. Mean and variance are running_mean and running_var. In training
/// entries they are those of all rows of x, and the running values move towards them by the momentum. After a
/// convolution the inference form is folded into it and costs nothing.
template <std::int64_t Width, WeightType Weight = f32> class BatchNorm2d : public Named {
public:
  constexpr explicit BatchNorm2d(const char *name, double epsilon = 1e-5, double momentum = 0.1)
      : Named(name), epsilon(epsilon), momentum(momentum) {}

  constexpr auto operator()(const tensor auto &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    x.tracer->at(site);
    if constexpr (detail::last(std::decay_t<decltype(x)>::shape) != Dim(Width))
      x.tracer->fail(rules::batch_norm_c1, detail::last(std::decay_t<decltype(x)>::shape), Dim(Width));
    auto own = detail::mean_of_rows(x, true, site);
    auto difference = sub(x, own, site);
    auto spread = detail::mean_of_rows(mul(difference, difference, site), false, site);
    auto vector = [&](const char *leaf, const Initial &initial) {
      return detail::weight<Weight, Width>(x, leaf, initial, site);
    };
    auto mean = running_average(vector("running_mean", Initial::zeros()), own, own, momentum, site);
    auto variance = running_average(vector("running_var", Initial::ones()), spread,
                                    detail::sample_variance(x, spread, site), momentum, site);
    auto scale = div(vector("weight", Initial::ones()), sqrt(add(variance, epsilon, site), site), site);
    return add(mul(sub(x, mean, site), scale, site), vector("bias", Initial::zeros()), site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  double epsilon, momentum;
};

/// torch.nn.BatchNorm1d, also over [..., Width]: the channels of a signal come last.
template <std::int64_t Width, WeightType Weight = f32> using BatchNorm1d = BatchNorm2d<Width, Weight>;

/// Looks up rows of a table [Rows, Width]: parameter weight.
template <std::int64_t Rows, std::int64_t Width, WeightType Weight = f32> class Embedding : public Named {
public:
  using Named::Named;

  constexpr auto operator()(const tensor auto &indices, Site site = Site::here()) const {
    ScopeGuard guard(*indices.tracer, scope_in(indices.tracer->at(site)));
    return embedding(indices, weight(indices, site), site);
  }
  /// The table itself.
  constexpr auto weight(const tensor auto &context, Site site = Site::here()) const {
    ScopeGuard guard(*context.tracer, scope_in(context.tracer->at(site)));
    return detail::weight<Weight, Rows, Width>(context, "weight", Initial::normal(1), site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }
};

/// Scores of every row of an embedding: x E^T, an output layer with tied weights.
template <tensor X, std::int64_t Rows, std::int64_t Width, WeightType Weight>
constexpr auto logits(const X &x, const Embedding<Rows, Width, Weight> &embedding, Site site = Site::here()) {
  auto weight = embedding.weight(x, site);
  return detail::linear<WeightOrder::out_in>(x, weight, {x.node, weight.node}, rules::logits_c1);
}

/// layer_norm with parameters weight and bias.
template <std::int64_t Width, WeightType Weight = f32> class LayerNorm : public Named {
public:
  constexpr explicit LayerNorm(const char *name, double epsilon = 1e-5) : Named(name), epsilon(epsilon) {}

  constexpr auto operator()(const tensor auto &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    return layer_norm(x, detail::weight<Weight, Width>(x, "weight", Initial::ones(), site),
                      detail::weight<Weight, Width>(x, "bias", Initial::zeros(), site), epsilon, site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  double epsilon;
};

/// rms_norm with parameter weight.
template <std::int64_t Width, WeightType Weight = f32> class RmsNorm : public Named {
public:
  constexpr explicit RmsNorm(const char *name, double epsilon = 1e-6) : Named(name), epsilon(epsilon) {}

  constexpr auto operator()(const tensor auto &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    return rms_norm(x, detail::weight<Weight, Width>(x, "weight", Initial::ones(), site), epsilon, site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  double epsilon;
};

} // namespace kiln
