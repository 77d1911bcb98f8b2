// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/PrintNode.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace kiln::fuzz {

std::string elementName(ElementType element) { return std::string("kiln::") + name_of(element); }

std::string extentName(const Symbol &symbol) { return symbol.name; }

std::string extentText(const Dim &dim) {
  if (dim.fixed())
    return std::to_string(dim.offset);
  std::string text;
  for (int i = 0; i < dim.terms(); ++i) {
    const std::int64_t factor = i == 0 ? dim.factor : dim.second;
    text += i == 0 ? "" : " + ";
    text += factor == 1 ? "" : std::to_string(factor) + " * ";
    text += extentName(dim.symbols[2 * i]);
    if (dim.symbols[2 * i + 1].present())
      text += " * " + extentName(dim.symbols[2 * i + 1]);
  }
  if (dim.offset != 0)
    text += (dim.offset > 0 ? " + " : " - ") + std::to_string(std::llabs(dim.offset));
  return text;
}

static std::string extentsText(const std::vector<Dim> &shape) {
  std::string text;
  for (const Dim &dim : shape)
    text += (text.empty() ? "" : ", ") + extentText(dim);
  return text;
}

std::string typeArguments(const Node &node) {
  return elementName(node.element) + (node.shape.empty() ? "" : ", ") + extentsText(node.shape);
}

std::string typeArguments(const Parameter &parameter) {
  const Storage &storage = parameter.storage;
  std::string text = elementName(parameter.element);
  if (storage.is_stated)
    text = floating(storage.element) ? "kiln::stored<" + elementName(storage.element) + ">"
                                     : std::string("kiln::") + name_of(storage);
  for (std::int64_t extent : parameter.shape)
    text += ", " + std::to_string(extent);
  return text;
}

/// Prints every digit, as a floating-point literal, since the integer -0 is 0.
static std::string numberText(double value) {
  if (std::isnan(value))
    return "std::numeric_limits<double>::quiet_NaN()";
  if (std::isinf(value))
    return std::string(value < 0 ? "-" : "") + "std::numeric_limits<double>::infinity()";
  char text[40];
  for (int digits : {6, 9, 17}) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value)
      break;
  }
  std::string result = text;
  return result.find_first_of(".e") == std::string::npos ? result + ".0" : result;
}

static std::string pairText(const Pair &pair) {
  return "kiln::Pair(" + std::to_string(pair.height) + ", " + std::to_string(pair.width) + ")";
}

static std::string attentionText(const Node &node, const std::vector<std::string> &x) {
  const Attributes &a = node.attributes;
  const std::size_t tensors = node.op == Op::attention ? 3 : 2;
  std::string text = node.op == Op::attention ? "kiln::attention<" : "kiln::attention_scores<";
  text += std::to_string(a.heads) + ", " + std::to_string(a.key_value_heads) + ">(";
  for (std::size_t i = 0; i < tensors; ++i)
    text += x[i] + ", ";
  text += a.causal ? "kiln::causal | " : "";
  text += a.window_keys ? "kiln::window(" + std::to_string(a.window_keys) + ") | " : "";
  text += a.softcap != 0 ? "kiln::softcap(" + numberText(a.softcap) + ") | " : "";
  if (a.has_mask)
    text += "kiln::mask(" + x[tensors] + ") | ";
  if (a.has_sinks)
    text += "kiln::sinks(" + x[tensors + a.has_mask] + ") | ";
  if (a.has_lengths)
    text += "kiln::lengths(" + x.back() + ") | ";
  return text + "kiln::scale(" + numberText(a.scale) + "))";
}

static std::string imageText(const Node &node, const std::string &operands) {
  const Window &w = node.attributes.window;
  const std::string common = ".stride = " + pairText(w.stride) + ", .padding = " + pairText(w.padding);
  switch (node.op) {
  case Op::conv2d:
    return "kiln::conv2d<kiln::Conv2dOptions{" + common + ", .dilation = " + pairText(w.dilation) +
           ", .groups = " + std::to_string(node.attributes.groups) + "}>(" + operands + ")";
  case Op::resize_bilinear: {
    const std::size_t rank = node.shape.size();
    return "kiln::resize_bilinear<" +
           pairText({static_cast<int>(node.shape[rank - 3].offset), static_cast<int>(node.shape[rank - 2].offset)}) +
           ">(" + operands + ")";
  }
  default:
    return std::string("kiln::") + (node.op == Op::max_pool2d ? "max" : "avg") + "_pool2d<" + pairText(w.kernel) +
           ", kiln::Pool2dOptions{" + common + "}>(" + operands + ")";
  }
}

/// Prints the frequencies in full, since their functions round.
static std::string sinusoidalText(const Node &node, const std::string &operands) {
  const Attributes &a = node.attributes;
  const std::string width = extentText(node.shape.back());
  if (a.values.empty() && a.pair_axes.empty())
    return "kiln::sinusoidal<" + width + ">(" + operands + ", " + numberText(a.base) + ")";
  std::string values, axes;
  for (double value : a.values)
    values += (values.empty() ? "" : ", ") + numberText(value);
  int count = 1;
  for (int axis : a.pair_axes) {
    axes += (axes.empty() ? "" : ", ") + std::to_string(axis);
    count = std::max(count, axis + 1);
  }
  return "kiln::sinusoidal(" + operands + ", kiln::Frequencies<" + width + ", " + std::to_string(count) + ">{{" +
         values + "}, {" + axes + "}})";
}

std::string callText(const Node &node, const std::string &context) {
  const Attributes &a = node.attributes;
  std::vector<std::string> x;
  std::string operands;
  for (int operand : node.operands) {
    x.push_back("t" + std::to_string(operand));
    operands += (operands.empty() ? "" : ", ") + x.back();
  }
  const std::string name = std::string("kiln::") + name_of(node.op), axis = std::to_string(a.axis);
  switch (node.op) {
  case Op::constant: {
    std::string values;
    for (double value : a.values)
      values += (values.empty() ? "" : ", ") + numberText(value);
    return name + "<" + typeArguments(node) + ">(" + context + ", {" + values + "})";
  }
  case Op::sinusoidal:
    return sinusoidalText(node, operands);
  case Op::linear:
  case Op::grouped_linear:
    return name + (a.weight_order == WeightOrder::in_out ? "<kiln::WeightOrder::in_out>(" : "(") + operands + ")";
  case Op::conv2d:
  case Op::max_pool2d:
  case Op::avg_pool2d:
  case Op::resize_bilinear:
    return imageText(node, operands);
  case Op::attention:
  case Op::attention_scores:
    return attentionText(node, x);
  case Op::reshape:
  case Op::expand:
    return name + "<" + extentsText(node.shape) + ">(" + operands + ")";
  case Op::transpose: {
    std::string axes;
    for (int from : a.permutation)
      axes += (axes.empty() ? "" : ", ") + std::to_string(from);
    return name + "<" + axes + ">(" + operands + ")";
  }
  case Op::slice: {
    const std::string extent = extentText(node.shape[static_cast<std::size_t>(a.axis)]);
    if (a.at_end)
      return "kiln::last<" + axis + ", " + extent + ">(" + operands + ")";
    return name + "<" + axis + ", " + std::to_string(a.start) + ", " + extent + ">(" + operands + ")";
  }
  case Op::argsort: {
    const Dim &count = node.shape[static_cast<std::size_t>(a.axis)];
    return name + "<" + axis + ", kiln::SortOrder::" + (a.reverse ? "descending" : "ascending") +
           (count.fixed() ? ", " + std::to_string(count.offset) : "") + ">(" + operands + ")";
  }
  case Op::cast:
    return name + "<" + elementName(node.element) + ">(" + operands + ")";
  case Op::dropout:
    return name + "(" + operands + ", " + numberText(a.probability) + ")";
  case Op::running_average:
    return name + "(" + operands + ", " + numberText(a.rate) + ")";
  default:
    break;
  }
  if (info(node.op).has(Fields::axis))
    return name + "<" + axis + ">(" + operands + ")";
  if (info(node.op).has(Fields::epsilon))
    return name + "(" + operands + ", " + numberText(a.epsilon) + ")";
  return name + "(" + operands + ")";
}

} // namespace kiln::fuzz
