// SPDX-License-Identifier: Apache-2.0
//
// A step of training a GPT on a grid of devices, as Megatron-LM splits it (Shoeybi et al. 2019, Narayanan et al. 2021):
// what it computes, sends and holds, counted from its shape alone, and how long that takes on a cluster.
//
// Weights, activations and gradients are of 16 bits, Adam's moments and its copy of the weights of 32. Activations of a
// layer are computed once more on the way back.
#pragma once

#include "compiler/scale/Cluster.h"

#include <optional>

namespace kiln {

struct GptShape {
  int64_t layers, width, heads, context;
  int64_t vocabulary = 51200;
};

double countParameters(const GptShape &shape);
/// Additions and multiplications of one layer, forward: 24 B s h^2 (1 + s / 6h).
double layerFlops(const GptShape &shape, double sequences);
/// Of a step: 96 B s l h^2 (1 + s / 6h + V / 16lh).
double stepFlops(const GptShape &shape, double sequences);

/// How devices share the work: `tensor` next to each other, then `data`, then `pipeline`.
struct Grid {
  int64_t tensor = 1, pipeline = 1, data = 1;
  int64_t sequences = 1;  // of a step, on all devices
  int64_t microbatch = 1; // sequences that a device takes at a time
  int64_t interleave = 1; // parts of the model that a stage has
  bool overlaps = false;  // gradients are added up while others are computed

  int64_t devices() const { return tensor * pipeline * data; }
  int64_t microbatches() const { return sequences / (data * microbatch); }
};

/// Seconds of a step on the slowest stage; the parts add up.
struct GptStep {
  double matrices = 0; // products
  double elements = 0; // what reads and writes activations besides
  double tensor = 0;   // sums among the ranks of a layer
  double sends = 0;    // activations to the next stage
  double bubble = 0;   // waiting for other stages
  double data = 0;     // sums of gradients that nothing hides
  double update = 0;   // of the weights
  double flops = 0;    // of all devices
  int64_t devices = 1;
  double memoryBytes = 0; // that the first stage's devices hold

  double seconds() const { return matrices + elements + tensor + sends + bubble + data + update; }
  double flopsOfDevice() const { return flops / seconds() / double(devices); }
};

/// Bytes that each rank of a layer sends in a step for one micro-batch of its stage: Megatron's 8 b s h (t - 1) / t
/// numbers a layer, and half as many again for the activations that are computed once more.
double tensorBytes(const GptShape &shape, const Grid &grid);

GptStep predictStep(const GptShape &shape, const Grid &grid, const Cluster &cluster, const std::string &type);

/// The fraction of the peak that products reach, if such a step reaches so many operations a second on each device.
double fractionFor(const GptShape &shape, const Grid &grid, const Cluster &cluster, const std::string &type,
                   double flopsOfDevice);

/// The grid of so many devices, or of fewer, that is predicted to take the shortest time and fits the memory; nothing
/// if none does.
std::optional<Grid> chooseGrid(const GptShape &shape, int64_t devices, int64_t sequences, const Cluster &cluster,
                               const std::string &type);

} // namespace kiln
