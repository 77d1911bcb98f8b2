// SPDX-License-Identifier: Apache-2.0
//
// The page is page/page.html with three placeholders: for the style, for the inspection as JSON, and for the scripts.
#include "compiler/inspect/Page.h"

#include "PageParts.inc"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace kiln {

template <class T> static json::Array list(const std::vector<T> &values) {
  json::Array result;
  for (const T &value : values)
    result.push_back(toJson(value));
  return result;
}

static json::Value toJson(std::optional<double> number) { return number ? json::Value(*number) : json::Value(nullptr); }

static json::Value toJson(const InspectedTensor &tensor) {
  return json::Object{{"name", tensor.name}, {"type", tensor.type}};
}

static json::Value toJson(const InspectedExtent &extent) {
  return json::Object{{"name", extent.name}, {"least", extent.least}, {"min", extent.min}, {"max", extent.max}};
}

static json::Value toJson(const InspectedStep &step) {
  return json::Object{{"kind", step.kind},
                      {"kernel", step.kernel},
                      {"layer", step.layer},
                      {"operands", json::Array(step.operands)},
                      {"results", json::Array(step.results)},
                      {"times", step.times},
                      {"operations", step.operations},
                      {"bytesRead", step.bytesRead},
                      {"bytesWritten", step.bytesWritten},
                      {"seconds", toJson(step.seconds)},
                      {"share", step.share}};
}

static json::Value toJson(const InspectedBuffer &buffer) {
  return json::Object{{"offset", buffer.offset},
                      {"bytes", buffer.bytes},
                      {"first", buffer.first},
                      {"last", buffer.last},
                      {"values", json::Array(buffer.values)}};
}

static json::Value toJson(const InspectedEntry &entry) {
  return json::Object{{"name", entry.name},
                      {"batchOf", entry.batchOf},
                      {"extents", list(entry.extents)},
                      {"inputs", list(entry.inputs)},
                      {"outputs", list(entry.outputs)},
                      {"arenaFixed", entry.arenaFixed},
                      {"arenaPerWorker", entry.arenaPerWorker},
                      {"stateBytes", entry.stateBytes},
                      {"planBytes", entry.planBytes},
                      {"planLowerBound", entry.planLowerBound},
                      {"isMeasured", entry.isMeasured},
                      {"listedAt", entry.listedAt},
                      {"measuredAt", entry.measuredAt},
                      {"seconds", entry.seconds()},
                      {"steps", list(entry.steps)},
                      {"buffers", list(entry.buffers)}};
}

static json::Value toJson(const InspectedKernel &kernel) {
  return json::Object{
      {"name", kernel.name},           {"symbol", kernel.symbol},         {"strategy", kernel.strategy},
      {"schedule", kernel.schedule},   {"provenance", kernel.provenance}, {"donor", kernel.donor},
      {"shape", kernel.shape},         {"bounds", kernel.bounds},         {"layers", json::Array(kernel.layers)},
      {"textBytes", kernel.textBytes}, {"gain", toJson(kernel.gain)},     {"loss", toJson(kernel.loss)},
      {"loops", kernel.loops}};
}

static json::Value toJson(const InspectedWeight &weight) {
  return json::Object{{"name", weight.name},
                      {"type", weight.type},
                      {"stored", weight.stored},
                      {"copies", weight.copies},
                      {"bytes", weight.bytes}};
}

static json::Value toJson(const GraphEdge &edge) {
  json::Object object{{"type", edge.type}};
  if (edge.node >= 0)
    object["node"] = edge.node;
  else
    object["weight"] = edge.weight;
  return object;
}

static json::Value toJson(const GraphNode &node) {
  json::Array attributes;
  for (const auto &[name, value] : node.attributes)
    attributes.push_back(json::Array{name, value});
  return json::Object{{"op", node.op},
                      {"layer", node.layer},
                      {"attributes", std::move(attributes)},
                      {"operands", list(node.operands)},
                      {"results", json::Array(node.results)}};
}

static json::Value toJson(const GraphLoop &loop) {
  return json::Object{{"kind", loop.kind}, {"times", loop.times}, {"first", loop.first}, {"last", loop.last}};
}

static json::Value toJson(const InspectedGraph &graph) {
  return json::Object{{"nodes", list(graph.nodes)}, {"loops", list(graph.loops)}};
}

static json::Value toJson(const Inspection &inspection) {
  json::Value rates = nullptr;
  if (inspection.rates)
    rates = json::Object{{"operations", inspection.rates->operations},
                         {"bytes", inspection.rates->bytes},
                         {"source", inspection.rates->source}};
  return json::Object{{"name", inspection.name},
                      {"target", inspection.target},
                      {"targets", json::Array(inspection.targets)},
                      {"parameters", inspection.parameters},
                      {"packedBytes", inspection.packedBytes},
                      {"entries", list(inspection.entries)},
                      {"kernels", list(inspection.kernels)},
                      {"weights", list(inspection.weights)},
                      {"graphs", list(inspection.graphs)},
                      {"rates", std::move(rates)}};
}

static void replace(std::string &text, StringRef mark, StringRef value) {
  const size_t at = text.find(mark);
  assert(at != std::string::npos && "the page has the mark");
  text.replace(at, mark.size(), value);
}

template <size_t N> static StringRef textOf(const unsigned char (&bytes)[N]) {
  return {reinterpret_cast<const char *>(bytes), N};
}

std::string printPage(const Inspection &inspection) {
  std::string model;
  raw_string_ostream out(model);
  // "<" could end a script element. In JSON it only occurs in strings.
  for (char c : formatv("{0}", toJson(inspection)).str())
    c == '<' ? out << "\\u003c" : out << c;
  std::string name;
  raw_string_ostream title(name);
  printHTMLEscaped(inspection.name, title);
  std::string page = textOf(pageHtml).str(); // insert the model's text last, since it may contain a placeholder
  replace(page, "/* style */", textOf(pageStyle));
  replace(page, "/* script */", textOf(pageScript));
  replace(page, "/* model */", model);
  replace(page, "<!-- title -->", name);
  return page;
}

} // namespace kiln
