// SPDX-License-Identifier: Apache-2.0
//
// oneDNN 2: matmul with weights that are reordered once into its preferred layout; attention as matmul, softmax,
// matmul; and its own layer norm, softmax and GELU.
#include "benchmarks/peers/Peers.h"

#include <cmath>
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

namespace kiln::bench {

namespace {

using dnnl::memory;
using Buffer = std::shared_ptr<std::vector<float>>;

Buffer makeBuffer(std::size_t count) { return std::make_shared<std::vector<float>>(count); }

/// A sequence of primitives, with all memory that they refer to.
class Sequence {
public:
  explicit Sequence(const dnnl::engine &engine) : engine(engine), stream(engine) {}

  memory at(const memory::desc &desc, std::span<const float> data) {
    return memory(desc, engine, const_cast<float *>(data.data()));
  }
  void add(const dnnl::primitive &primitive, std::unordered_map<int, memory> arguments) {
    steps.emplace_back(primitive, std::move(arguments));
  }
  void keep(Buffer buffer) { buffers.push_back(std::move(buffer)); }
  void run() {
    for (const auto &[primitive, arguments] : steps)
      primitive.execute(stream, arguments);
    stream.wait();
  }

  dnnl::engine engine;
  dnnl::stream stream;

private:
  std::vector<std::pair<dnnl::primitive, std::unordered_map<int, memory>>> steps;
  std::vector<Buffer> buffers;
};

memory::desc matrix(std::int64_t rows, std::int64_t columns) {
  return {{rows, columns}, memory::data_type::f32, memory::format_tag::ab};
}

class OneDnn : public Peer {
public:
  std::string name() const override { return "onednn"; }

  /// Debian's oneDNN uses OpenMP, whose number of threads is set here if that library is loaded.
  void setThreads(int count) override {
    if (auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads")))
      set(count);
  }

  std::vector<Contender> contraction(const Contraction &p) override {
    auto sequence = std::make_shared<Sequence>(engine);
    Buffer y = makeBuffer(static_cast<std::size_t>(p.rows) * p.columns);
    memory::desc any({p.depth, p.columns}, memory::data_type::f32, memory::format_tag::any);
    memory::desc given({p.depth, p.columns}, memory::data_type::f32,
                       memory::format_tag::ba); // [columns, depth] in memory
    dnnl::matmul::primitive_desc desc({matrix(p.rows, p.depth), any, matrix(p.rows, p.columns)}, engine);
    memory from = sequence->at(given, p.weight), packed(desc.weights_desc(), engine);
    dnnl::reorder(from, packed).execute(sequence->stream, from, packed);
    sequence->stream.wait();
    sequence->keep(y);
    sequence->add(dnnl::matmul(desc), {{DNNL_ARG_SRC, sequence->at(matrix(p.rows, p.depth), p.x)},
                                       {DNNL_ARG_WEIGHTS, packed},
                                       {DNNL_ARG_DST, sequence->at(matrix(p.rows, p.columns), *y)}});
    return {{name(), [sequence] { sequence->run(); }, *y}};
  }

  std::vector<Contender> attention(const SelfAttention &p) override {
    if (p.isCausal) // with a mask added after a matmul it uses reference routines, which are not a fair peer
      return {};
    std::int64_t row = static_cast<std::int64_t>(p.heads) * p.width;
    // Measures the model's layout and one with contiguous rows per head, which spares oneDNN the strides and would not
    // help us: the faster one counts.
    memory::dims joint{p.width, row, 1}, apart{static_cast<std::int64_t>(p.tokens) * p.width, p.width, 1};
    std::vector<Contender> ways{attention(p, joint), attention(p, apart)};
    ways[1].output = {}; // in a different order
    return ways;
  }

  std::vector<Contender> layerNorm(const Rows &p, std::span<const float> weight, std::span<const float> bias) override {
    using dnnl::normalization_flags;
    memory::desc rows = matrix(p.rows, p.columns), column({p.columns}, memory::data_type::f32, memory::format_tag::a);
    dnnl::layer_normalization_forward::primitive_desc desc(
        {dnnl::prop_kind::forward_inference, rows, 1e-5f,
         normalization_flags::use_scale | normalization_flags::use_shift},
        engine);
    return rowwise(dnnl::layer_normalization_forward(desc), p,
                   {{DNNL_ARG_SCALE, {column, weight}}, {DNNL_ARG_SHIFT, {column, bias}}});
  }

  std::vector<Contender> softmax(const Rows &p) override {
    dnnl::softmax_forward::primitive_desc desc({dnnl::prop_kind::forward_inference, matrix(p.rows, p.columns), 1},
                                               engine);
    return rowwise(dnnl::softmax_forward(desc), p, {});
  }

  std::vector<Contender> gelu(const Rows &p) override {
    dnnl::eltwise_forward::primitive_desc desc(
        {dnnl::prop_kind::forward_inference, dnnl::algorithm::eltwise_gelu_erf, matrix(p.rows, p.columns), 0, 0},
        engine);
    return rowwise(dnnl::eltwise_forward(desc), p, {});
  }

private:
  using Arguments = std::unordered_map<int, std::pair<memory::desc, std::span<const float>>>;

  std::vector<Contender> rowwise(const dnnl::primitive &primitive, const Rows &p, const Arguments &others) {
    auto sequence = std::make_shared<Sequence>(engine);
    Buffer y = makeBuffer(p.x.size());
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, sequence->at(matrix(p.rows, p.columns), p.x)},
                                              {DNNL_ARG_DST, sequence->at(matrix(p.rows, p.columns), *y)}};
    for (const auto &[slot, argument] : others)
      arguments.emplace(slot, sequence->at(argument.first, argument.second));
    sequence->keep(y);
    sequence->add(primitive, std::move(arguments));
    return {{name(), [sequence] { sequence->run(); }, *y}};
  }

  /// `strides` of [heads, tokens, width].
  Contender attention(const SelfAttention &p, const memory::dims &strides) {
    auto sequence = std::make_shared<Sequence>(engine);
    auto f32 = memory::data_type::f32;
    memory::desc rows({p.heads, p.tokens, p.width}, f32, strides);
    memory::desc columns({p.heads, p.width, p.tokens}, f32, memory::dims{strides[0], strides[2], strides[1]});
    memory::desc scores({p.heads, p.tokens, p.tokens}, f32, memory::format_tag::abc);
    Buffer s = makeBuffer(static_cast<std::size_t>(p.heads) * p.tokens * p.tokens), y = makeBuffer(p.q.size());

    dnnl::primitive_attr scale;
    scale.set_output_scales(0, {1 / std::sqrt(static_cast<float>(p.width))});
    dnnl::matmul::primitive_desc product({rows, columns, scores}, scale, engine), sum({scores, rows, rows}, engine);
    dnnl::softmax_forward::primitive_desc weights({dnnl::prop_kind::forward_inference, scores, 2}, engine);
    memory at = sequence->at(scores, *s);
    sequence->keep(s);
    sequence->keep(y);
    sequence->add(
        dnnl::matmul(product),
        {{DNNL_ARG_SRC, sequence->at(rows, p.q)}, {DNNL_ARG_WEIGHTS, sequence->at(columns, p.k)}, {DNNL_ARG_DST, at}});
    sequence->add(dnnl::softmax_forward(weights), {{DNNL_ARG_SRC, at}, {DNNL_ARG_DST, at}});
    sequence->add(
        dnnl::matmul(sum),
        {{DNNL_ARG_SRC, at}, {DNNL_ARG_WEIGHTS, sequence->at(rows, p.v)}, {DNNL_ARG_DST, sequence->at(rows, *y)}});
    return {name(), [sequence] { sequence->run(); }, *y};
  }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
};

} // namespace

std::unique_ptr<Peer> makeOneDnn() { return std::make_unique<OneDnn>(); }

} // namespace kiln::bench
