// SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime: models with one operator, whose weight is a constant and is therefore packed when the session is
// created. With few rows it also gets the unpacked weight, for which it uses another routine.
#include "benchmarks/peers/OnnxGraph.h"
#include "benchmarks/peers/OrtApi.h"
#include "benchmarks/peers/Peers.h"

#include <filesystem>

namespace kiln::bench {

namespace {

class OnnxRuntime : public Peer {
public:
  std::string name() const override { return "onnxruntime"; }
  void setThreads(int count) override { threads = count; }

  std::vector<Contender> contraction(const Contraction &p) override {
    std::vector<float> transposed = transpose(p.weight, p.columns, p.depth);
    OnnxGraph graph;
    graph.input("x", {p.rows, p.depth});
    graph.weight("w", {p.depth, p.columns}, transposed);
    graph.node("MatMul", {"x", "w"}, {"y"});
    graph.output("y", {p.rows, p.columns});
    std::vector<Contender> ways{way(graph, {{"x", p.x, {p.rows, p.depth}}}, {p.rows, p.columns})};
    if (p.rows <= 16)
      ways.push_back(way(graph, {{"x", p.x, {p.rows, p.depth}}}, {p.rows, p.columns}, false));
    return ways;
  }

  std::vector<Contender> attention(const SelfAttention &p) override {
    OnnxGraph::Shape shape{1, p.tokens, std::int64_t{p.heads} * p.width};
    OnnxGraph graph;
    for (const char *name : {"q", "k", "v"})
      graph.input(name, shape);
    graph.node("com.microsoft.MultiHeadAttention", {"q", "k", "v"}, {"y"},
               {{"num_heads", p.heads}, {"unidirectional", std::int64_t{p.isCausal}}});
    graph.output("y", shape);
    return {way(graph, {{"q", p.q, shape}, {"k", p.k, shape}, {"v", p.v, shape}}, shape)};
  }

  std::vector<Contender> layerNorm(const Rows &p, std::span<const float> weight, std::span<const float> bias) override {
    OnnxGraph graph;
    graph.weight("weight", {p.columns}, weight);
    graph.weight("bias", {p.columns}, bias);
    return rowwise(p, graph, "LayerNormalization", {"x", "weight", "bias"}, {{"epsilon", 1e-5f}});
  }

  std::vector<Contender> rmsNorm(const Rows &p, std::span<const float> weight) override {
    OnnxGraph graph;
    graph.weight("weight", {p.columns}, weight);
    return rowwise(p, graph, "SimplifiedLayerNormalization", {"x", "weight"}, {{"epsilon", 1e-6f}});
  }

  std::vector<Contender> softmax(const Rows &p) override {
    OnnxGraph graph;
    return rowwise(p, graph, "Softmax", {"x"}, {});
  }

  std::vector<Contender> gelu(const Rows &p) override {
    OnnxGraph graph;
    return rowwise(p, graph, "com.microsoft.Gelu", {"x"}, {});
  }

  std::vector<Contender> model(const WholeModel &p) override {
    std::vector<Contender> ways;
    for (const std::string &file : exported(p)) {
      auto [session, y] = load(file, p);
      ways.push_back({name(), [session = session] { session->run(); }, y});
    }
    return ways;
  }

  std::vector<Contender> quantisedModel(const WholeModel &p) override {
    WholeModel quantised = p;
    quantised.name += "_int8";
    return model(quantised);
  }

  std::vector<std::function<std::function<void()>()>> loads(const WholeModel &p) override {
    std::vector<std::function<std::function<void()>()>> ways;
    for (const std::string &file : exported(p))
      ways.push_back(
          [this, file, &p]() -> std::function<void()> { return [session = load(file, p).first] { session->run(); }; });
    return ways;
  }

private:
  struct Input {
    std::string name;
    std::span<const float> data;
    OnnxGraph::Shape shape;
  };

  /// Returns the files of all forms of the model.
  static std::vector<std::string> exported(const WholeModel &p) {
    std::vector<std::string> files;
    std::error_code none;
    for (const auto &file : std::filesystem::directory_iterator(KILN_BENCH_ONNX_FOLDER, none))
      if (file.path().extension() == ".onnx" && file.path().filename().string().rfind(p.name + ".", 0) == 0)
        files.push_back(file.path());
    return files;
  }

  std::pair<std::shared_ptr<ort::Session>, std::span<const float>> load(const std::string &file,
                                                                        const WholeModel &p) const {
    auto session = std::make_shared<ort::Session>(ort::Model{file, ""}, ort::Options{threads});
    for (const WholeModel::Input &input : p.inputs)
      if (input.tokens.empty())
        session->input(input.name, input.values, input.shape);
      else
        session->input(input.name, input.tokens, input.shape);
    return {session, session->output(p.output.name, p.output.shape)};
  }

  Contender way(const OnnxGraph &graph, const std::vector<Input> &inputs, const OnnxGraph::Shape &output,
                bool packsWeights = true) const {
    auto session = std::make_shared<ort::Session>(ort::Model{"", graph.bytes()}, ort::Options{threads, packsWeights});
    for (const Input &input : inputs)
      session->input(input.name, input.data, input.shape);
    std::span<const float> y = session->output("y", output);
    return {name(), [session] { session->run(); }, y};
  }

  std::vector<Contender> rowwise(const Rows &p, OnnxGraph &graph, const std::string &op,
                                 const std::vector<std::string> &operands,
                                 const std::vector<OnnxGraph::Attribute> &attributes) const {
    OnnxGraph::Shape shape{p.rows, p.columns};
    graph.input("x", shape);
    graph.node(op, operands, {"y"}, attributes);
    graph.output("y", shape);
    return {way(graph, {{"x", p.x, shape}}, shape)};
  }

  int threads = 1;
};

} // namespace

std::unique_ptr<Peer> makeOnnxRuntime() { return ort::isInstalled() ? std::make_unique<OnnxRuntime>() : nullptr; }

} // namespace kiln::bench
