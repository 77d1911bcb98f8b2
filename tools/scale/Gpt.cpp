// SPDX-License-Identifier: Apache-2.0
#include "tools/scale/Gpt.h"

#include <algorithm>
#include <cmath>

namespace kiln {

/// Bytes of an activation, a weight and a gradient.
static constexpr double number = 2;
/// With activation recomputation, a step computes four times as much as a forward pass: forward twice, and backward,
/// which counts twice.
static constexpr double passes = 4;
/// Bytes that Adam reads and writes per parameter: the gradient twice (the norm for clipping needs one read); a weight
/// and two moments in 32 bits, read and written; and the 16-bit weight.
static constexpr double updatedBytes = 2 * number + 6 * 4 + number;
/// Bytes that a device stores per parameter: weight and gradient in 16 bits; and weight, two moments and a gradient in
/// 32 bits.
static constexpr double heldBytes = 2 * number + 4 * 4;

static double countLayer(const GptShape &shape) {
  const auto h = double(shape.width);
  return 12 * h * h + 13 * h;
}

double countParameters(const GptShape &shape) {
  return double(shape.layers) * countLayer(shape) + double(shape.vocabulary + shape.context + 2) * double(shape.width);
}

double layerFlops(const GptShape &shape, double sequences) {
  const double h = double(shape.width), s = double(shape.context);
  return 24 * sequences * s * h * h * (1 + s / (6 * h));
}

/// Returns the operations of the logits and their gradients, which are not recomputed.
static double logitFlops(const GptShape &shape, double sequences) {
  return 6 * sequences * double(shape.context) * double(shape.width) * double(shape.vocabulary);
}

double stepFlops(const GptShape &shape, double sequences) {
  return passes * double(shape.layers) * layerFlops(shape, sequences) + logitFlops(shape, sequences);
}

namespace {

/// The cost of one micro-batch on the devices of the slowest pipeline stage, which has the logits.
class Stage {
public:
  Stage(const GptShape &shape, const Grid &grid, const Cluster &cluster, const std::string &type)
      : shape(shape), grid(grid), cluster(cluster), type(type), t(double(grid.tensor)),
        tokens(double(grid.microbatch * shape.context)),
        layers(std::ceil(double(shape.layers) / double(grid.pipeline))) {}

  double matrices() const {
    const auto b = double(grid.microbatch);
    const double flops = passes * layers * layerFlops(shape, b) + logitFlops(shape, b);
    return cluster.kernelSeconds(type, flops / t, 0);
  }

  /// Counts the bytes per pass. Each rank has the full two norms (one read, one write) and two residuals with dropout
  /// (two reads, one write, and a mask byte per number); and a share of GELU, of the head transposes, and of softmax
  /// with mask and dropout. The logits have 32 bits and are accessed four times.
  double elements() const {
    const double h = double(shape.width), pairs = double(shape.heads * shape.context);
    const double layer = tokens * number * (11 * h + 16 * h / t + 4.5 * pairs / t);
    const double logits = 16 * tokens * double(shape.vocabulary) / t;
    return cluster.kernelSeconds(type, 0, passes * layers * layer + logits);
  }

  /// Two all-reduces per layer in each of the forward, recomputation and backward passes, and one more on stages with
  /// the embedding tables.
  double sums() const { return 6 * layers + (grid.pipeline == 1 ? 2 : 1); }
  double sumBytes() const { return number * tokens * double(shape.width); }
  double tensor() const {
    return grid.tensor == 1 ? 0 : sums() * allReduce(cluster.linkOf(1, grid.tensor), sumBytes(), grid.tensor);
  }

  /// Forward and backward transfers of each model chunk. Each tensor-parallel rank sends a share, and the receivers
  /// gather the shares.
  double sends() const {
    if (grid.pipeline == 1)
      return 0;
    const int64_t stride = grid.tensor * grid.data;
    const double bytes = sumBytes() / t;
    const double gather = grid.tensor == 1 ? 0 : allGather(cluster.linkOf(1, grid.tensor), bytes, grid.tensor);
    return 2 * double(grid.interleave) * (cluster.linkOf(stride, grid.pipeline).seconds(bytes) + gather);
  }

  double parameters() const {
    const double tables = double(shape.vocabulary + shape.context) * double(shape.width);
    return (layers * countLayer(shape) + tables) / t;
  }

  /// Memory of a device of the first stage: the inputs of its layers for all micro-batches in flight, the activations
  /// of one layer, and the logits if the stage has them.
  double memory(int64_t underWay) const {
    const auto h = double(shape.width), pairs = double(shape.heads * shape.context);
    const double layer = tokens * (h * (10 + 24 / t) + 5 * pairs / t);
    const double logits = grid.pipeline == 1 ? (4 + number) * tokens * double(shape.vocabulary) / t : 0;
    return heldBytes * parameters() + double(underWay) * layers * number * tokens * h + layer + logits;
  }

private:
  const GptShape &shape;
  const Grid &grid;
  const Cluster &cluster;
  const std::string &type;
  const double t, tokens, layers;
};

} // namespace

double tensorBytes(const GptShape &shape, const Grid &grid) {
  const double bytes = number * double(grid.microbatch * shape.context * shape.width);
  return 6 * double(shape.layers / grid.pipeline) * ringBytes(bytes, grid.tensor);
}

GptStep predictStep(const GptShape &shape, const Grid &grid, const Cluster &cluster, const std::string &type) {
  const Stage stage(shape, grid, cluster, type);
  const auto m = double(grid.microbatches());
  GptStep step;
  step.matrices = m * stage.matrices();
  step.elements = m * stage.elements();
  step.tensor = m * stage.tensor();
  step.sends = m * stage.sends();
  const Pipeline pipeline{grid.pipeline, grid.microbatches(), grid.interleave};
  const double busy = step.matrices + step.elements + step.tensor + step.sends;
  step.bubble = busy * pipeline.bubble();
  if (grid.data > 1) {
    const double gradients = number * stage.parameters();
    const double sum = allReduce(cluster.linkOf(grid.tensor, grid.data), gradients, grid.data);
    // The all-reduce overlaps with the backward pass of the last micro-batch, three of its four passes.
    step.data = grid.overlaps ? exposed(sum, 0.75 * busy / m, gradientBuckets) : sum;
  }
  step.update = cluster.kernelSeconds(type, 0, updatedBytes * stage.parameters());
  step.flops = stepFlops(shape, double(grid.sequences));
  step.devices = grid.devices();
  step.memoryBytes = stage.memory(std::min(grid.pipeline, grid.microbatches()));
  return step;
}

double fractionFor(const GptShape &shape, const Grid &grid, const Cluster &cluster, const std::string &type,
                   double flopsOfDevice) {
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    Cluster tried = cluster;
    tried.device.fraction = (low + high) / 2;
    const bool isTooFast = predictStep(shape, grid, tried, type).flopsOfDevice() > flopsOfDevice;
    (isTooFast ? high : low) = tried.device.fraction;
  }
  return low;
}

std::optional<Grid> chooseGrid(const GptShape &shape, int64_t devices, int64_t sequences, const Cluster &cluster,
                               const std::string &type) {
  std::optional<Grid> best;
  double least = 0;
  auto attempt = [&](const Grid &grid) {
    if (grid.data < 1 || grid.microbatches() < 1 || sequences % (grid.data * grid.microbatch) != 0)
      return;
    const GptStep step = predictStep(shape, grid, cluster, type);
    if (step.memoryBytes > cluster.device.memoryBytes || (best && step.seconds() >= least))
      return;
    best = grid;
    least = step.seconds();
  };
  for (int64_t tensor = 1; tensor <= std::min(cluster.devicesInNode, shape.heads); tensor *= 2)
    for (int64_t pipeline = 1; pipeline <= std::min(shape.layers, devices / tensor); ++pipeline)
      for (int64_t microbatch : {1, 2, 4, 8})
        if (shape.layers % pipeline == 0 && shape.heads % tensor == 0)
          for (int64_t data = devices / (tensor * pipeline); data >= 1; data /= 2)
            attempt({tensor, pipeline, data, sequences, microbatch, 1, true});
  return best;
}

} // namespace kiln
