// SPDX-License-Identifier: Apache-2.0
//
// The optimisers in f64, by the equations of their papers.
#pragma once

#include "differentiated.h"

namespace kiln::testing {

using Values = std::map<std::string, std::vector<double>>; // by weight

/// An optimiser by the equations of its paper, element by element.
class Optimizer {
public:
  explicit Optimizer(const Training &training) : training(training) {}

  /// Updates the weights; returns the norm of all gradients.
  double step(std::map<std::string, Tensor> &weights, Values gradients, double rate, int t) {
    double norm = 0;
    for (auto &[name, gradient] : gradients)
      for (double g : gradient)
        norm += g * g;
    norm = std::sqrt(norm);
    for (auto &[name, gradient] : gradients)
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        double g = gradient[i] * (training.clip > 0 ? std::min(1.0, training.clip / (norm + 1e-6)) : 1);
        change(weights.at(name).values[i], g, name + "/" + std::to_string(i), decayOf(name), rate, t);
      }
    return norm;
  }

private:
  double decayOf(const std::string &name) const {
    std::string pattern = name; // "h.{}.out.bias"
    for (char &letter : pattern)
      letter = letter >= '0' && letter <= '9' ? '#' : letter;
    for (std::size_t at; (at = pattern.find('#')) != std::string::npos;)
      pattern.replace(at, 1, "{}");
    return detail::matches_one(training.undecayed, pattern.c_str()) ? 0 : training.weight_decay;
  }

  void change(double &w, double g, const std::string &place, double decay, double rate, int t) {
    if (training.update != Update::adamw)
      g += decay * w;
    if (training.update == Update::sgd) {
      double &b = moments["b" + place];
      b = training.momentum * b + g;
      w -= rate * b;
      return;
    }
    double &m = moments["m" + place], &v = moments["v" + place];
    m = training.beta1 * m + (1 - training.beta1) * g;
    v = training.beta2 * v + (1 - training.beta2) * g * g;
    if (training.update == Update::adamw)
      w -= rate * decay * w;
    const double mean = m / (1 - std::pow(training.beta1, t)), square = v / (1 - std::pow(training.beta2, t));
    w -= rate * mean / (std::sqrt(square) + training.epsilon);
  }

  const Training training;
  std::map<std::string, double> moments;
};

} // namespace kiln::testing
