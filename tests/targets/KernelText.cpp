// SPDX-License-Identifier: Apache-2.0
#include "KernelText.h"

#include <cstdio>
#include <functional>

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

/// Returns the element type of a tensor type.
static std::string elementOf(const std::string &type) {
  const size_t end = type.find_first_of(",>"), start = type.rfind('x', end);
  return start == std::string::npos || start > end ? type.substr(7, end - 7) : type.substr(start + 1, end - start - 1);
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
  for (size_t i = 0; i < inputs.size(); ++i)
    arguments += (arguments.empty() ? "%x" : ", %x") + std::to_string(i) + ": " + elementOf(inputs[i].type);
  for (size_t i = 0; i < outputs.size(); ++i)
    arguments += (arguments.empty() ? "%y" : ", %y") + std::to_string(i) + ": " + elementOf(outputs[i].type);
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

/// Returns a region that reads an element in f32.
static std::string elementRegion(const Read &read, const std::string &map) {
  const std::string element = elementOf(read.tensor.type);
  return "(" + read.tensor.name + " : " + read.tensor.type + ") [" + map + "] {\n  ^bb0(%x: " + element + "):\n" +
         (element == "f32" ? "    kiln.kernel_yield %x : f32\n"
                           : "    %w = arith.extf %x : " + element + " to f32\n    kiln.kernel_yield %w : f32\n") +
         "  }";
}

/// Returns the operands and the region of a score.
static std::string scoreRegion(const AttentionText &a, const std::function<std::string(const Read &)> &mapOf) {
  std::vector<Value> operands;
  std::string maps, arguments, body, yielded = "%score", yieldedTypes = "f32";
  if (a.mask) {
    operands.push_back(a.mask->tensor), maps = mapOf(*a.mask), arguments = "%mask: f32, ", yielded = "%masked";
    body = "    %log2e = arith.constant 1.4426950408889634 : f32\n    %m = arith.mulf %mask, %log2e : f32\n"
           "    %masked = arith.addf %score, %m : f32\n";
  }
  if (a.lengths) {
    operands.push_back(a.lengths->tensor), maps += (maps.empty() ? "" : ", ") + mapOf(*a.lengths);
    arguments += "%length: i32, ", yielded += ", %length", yieldedTypes += ", i32";
  }
  return (operands.empty() ? "" : "(" + join(names(operands)) + " : " + join(types(operands)) + ")") + " [" + maps +
         "] {\n  ^bb0(" + arguments + "%score: f32):\n" + body + "    kiln.kernel_yield " + yielded + " : " +
         yieldedTypes + "\n  }";
}

Value KernelText::attention(const AttentionText &a) {
  auto mapOf = [&](const Read &read) {
    return (a.extents.size() == 6 ? "affine_map<(b, h, q, k, d, e) -> (" : "affine_map<(h, q, k, d, e) -> (") +
           read.at + ")>";
  };
  std::vector<std::string> extents(a.extents.begin(), a.extents.end() - 5);
  for (int fromEnd : {4, 5, 1}) // queries, heads and channels
    extents.push_back(a.extents.end()[-fromEnd]);
  const std::string result = type(extents);
  char scale[32]; // all digits of an f32
  std::snprintf(scale, sizeof scale, "%.10e", a.scale);
  return op("kiln.kernel_attention scale = " + std::string(scale) +
                (a.causalOffset.empty() ? "" : " causal " + map({a.causalOffset})) +
                (a.window ? " window = " + std::to_string(a.window) : "") +
                (a.mask || a.lengths ? " may_be_empty" : "") + " over " + map(a.extents) + " query" +
                elementRegion(a.query, mapOf(a.query)) + " key" + elementRegion(a.key, mapOf(a.key)) + " value" +
                elementRegion(a.value, mapOf(a.value)) + " score" + scoreRegion(a, mapOf) +
                " weight {\n  ^bb0(%score: f32, %maximum: f32):\n"
                "    %difference = arith.subf %score, %maximum : f32\n"
                "    %weight = math.exp2 %difference {kiln.nonpositive} : f32\n"
                "    kiln.kernel_yield %weight : f32\n  } -> " +
                result,
            result);
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
