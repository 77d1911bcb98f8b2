// SPDX-License-Identifier: Apache-2.0
#include "KernelText.h"

namespace kiln::testing {

static std::string join(const std::vector<std::string> &parts) {
  std::string result;
  for (const std::string &part : parts)
    result += (result.empty() ? "" : ", ") + part;
  return result;
}

static bool isNumber(const std::string &text) { return text.find_first_not_of("0123456789") == std::string::npos; }

static std::vector<std::string> types(const std::vector<Value> &values) {
  std::vector<std::string> result;
  for (const Value &value : values)
    result.push_back(value.type);
  return result;
}

static std::vector<std::string> names(const std::vector<Value> &values) {
  std::vector<std::string> result;
  for (const Value &value : values)
    result.push_back(value.name);
  return result;
}

std::string KernelText::type(const std::vector<std::string> &extents, const std::string &element) const {
  std::string shape;
  bool isStatic = true;
  for (const std::string &extent : extents) {
    shape += (isNumber(extent) ? extent : "?") + "x";
    isStatic &= isNumber(extent);
  }
  return "tensor<" + shape + element + (isStatic ? "" : ", " + map(extents)) + ">";
}

std::string KernelText::map(const std::vector<std::string> &results) const {
  std::string names;
  for (size_t i = 0; i < symbols.size(); ++i)
    names += (i ? ", s" : "s") + std::to_string(i);
  return "affine_map<()[" + names + "] -> (" + join(results) + ")>";
}

std::string KernelText::tiled(int rows, int columns, const std::string &layout) {
  return "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "xf32, " + layout + ">";
}

Value KernelText::argument(const std::string &type) {
  arguments.push_back({"%arg" + std::to_string(arguments.size()), type});
  return arguments.back();
}

Value KernelText::constant(const std::string &literal) {
  Value value = fresh(literal.substr(literal.find(" : ") + 3));
  body += "  " + value.name + " = arith.constant " + literal + "\n";
  return value;
}

Value KernelText::empty(const std::string &type) {
  // The sizes of dynamic dimensions follow from the type; the op requires operands for them nevertheless.
  std::string sizes;
  size_t from = 0;
  while ((from = type.find('?', from)) != std::string::npos) {
    sizes += sizes.empty() ? "%s0" : ", %s0";
    ++from;
  }
  Value value = fresh(type);
  body += "  " + value.name + " = tensor.empty(" + sizes + ") : " + type + "\n";
  return value;
}

Value KernelText::fill(const Value &scalar, const std::string &type) {
  Value out = empty(type), value = fresh(type);
  body += "  " + value.name + " = linalg.fill ins(" + scalar.name + " : " + scalar.type + ") outs(" + out.name + " : " +
          type + ") -> " + type + "\n";
  return value;
}

std::vector<Value> KernelText::generic(const std::string &loops, const std::vector<Value> &inputs,
                                       const std::vector<std::string> &resultTypes,
                                       const std::vector<std::string> &maps, const std::string &region,
                                       const std::vector<Value> &initial) {
  std::vector<Value> outputs = initial, results;
  for (size_t i = outputs.size(); i < resultTypes.size(); ++i)
    outputs.push_back(empty(resultTypes[i]));
  std::string dims, kinds, mapText, arguments, assigned;
  for (size_t i = 0; i < loops.size(); ++i) {
    dims += (i ? ", " : "") + std::string(1, char('a' + i));
    kinds += std::string(i ? ", " : "") + (loops[i] == 'p' ? "\"parallel\"" : "\"reduction\"");
  }
  for (const std::string &map : maps)
    mapText += (mapText.empty() ? "" : ", ") + ("affine_map<(" + dims + ") -> (" + map + ")>");
  auto element = [](const std::string &type) {
    size_t end = type.find_first_of(",>"), start = type.rfind('x', end);
    return start == std::string::npos || start > end ? type.substr(7, end - 7)
                                                     : type.substr(start + 1, end - start - 1);
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    arguments += (arguments.empty() ? "%x" : ", %x") + std::to_string(i) + ": " + element(inputs[i].type);
  for (size_t i = 0; i < outputs.size(); ++i)
    arguments += (arguments.empty() ? "%y" : ", %y") + std::to_string(i) + ": " + element(outputs[i].type);
  for (const std::string &type : resultTypes) {
    results.push_back({"%v" + std::to_string(next) + "#" + std::to_string(results.size()), type});
  }
  assigned = "%v" + std::to_string(next++) + ":" + std::to_string(results.size());
  std::string resultText = join(resultTypes);
  if (results.size() > 1)
    resultText = "(" + resultText + ")";
  body += "  " + assigned + " = linalg.generic {indexing_maps = [" + mapText + "], iterator_types = [" + kinds + "]}";
  if (!inputs.empty())
    body += " ins(" + join(names(inputs)) + " : " + join(types(inputs)) + ")";
  body += " outs(" + join(names(outputs)) + " : " + join(types(outputs)) + ") {\n  ^bb0(" + arguments + "):\n" +
          region + "\n  } -> " + resultText + "\n";
  return results;
}

Value KernelText::one(const std::string &loops, const std::vector<Value> &inputs, const std::string &resultType,
                      const std::vector<std::string> &maps, const std::string &region) {
  return generic(loops, inputs, {resultType}, maps, region)[0];
}

Value KernelText::reduce(const std::string &loops, const std::vector<Value> &inputs, const std::string &resultType,
                         const std::vector<std::string> &maps, const std::string &start, const std::string &region) {
  return generic(loops, inputs, {resultType}, maps, region, {fill(constant(start), resultType)})[0];
}

Value KernelText::op(const std::string &text, const std::string &resultType) {
  Value value = fresh(resultType);
  body += "  " + value.name + " = " + text + "\n";
  return value;
}

std::string KernelText::finish(const std::vector<Value> &results, const std::string &attributes) const {
  std::string text = "func.func @f(", bounds;
  for (size_t i = 0; i < symbols.size(); ++i) {
    text += (i ? ", " : "") + ("%s" + std::to_string(i)) + ": index";
    bounds += (i ? ", " : ": ") + std::to_string(symbols[i].first) + ", " + std::to_string(symbols[i].second);
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    text += (i || !symbols.empty() ? ", " : "") + arguments[i].name + ": " + arguments[i].type;
  std::string resultTypes = join(types(results));
  text += ") -> (" + resultTypes + ") attributes {kiln.kernel, kiln.bounds = array<i64" + bounds + ">";
  text += (attributes.empty() ? "" : ", " + attributes) + "} {\n" + body;
  return text + "  return " + join(names(results)) + " : " + resultTypes + "\n}\n";
}

} // namespace kiln::testing
