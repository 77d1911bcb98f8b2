// SPDX-License-Identifier: Apache-2.0
//
// Predicts a training step of a GPT on a grid of devices with Megatron-LM's parallelism (Shoeybi et al. 2019, Narayanan
// et al. 2021): its operations, communication and memory, counted from the shape only, and its time on a cluster.
//
// Weights, activations and gradients have 16 bits; Adam's moments and its copy of the weights have 32. Activations of a
// layer are recomputed in the backward pass.
#pragma once

#include "tools/scale/Cluster.h"

#include <optional>

namespace kiln {

struct GptShape {
  int64_t layers, width, heads, context;
  int64_t vocabulary = 51200;
};

double countParameters(const GptShape &shape);
/// Returns the additions and multiplications of one layer's forward pass: 24 B s h^2 (1 + s / 6h).
double layerFlops(const GptShape &shape, double sequences);
/// Returns the operations of a training step: 96 B s l h^2 (1 + s / 6h + V / 16lh).
double stepFlops(const GptShape &shape, double sequences);

/// How devices are divided: tensor-parallel ranks are adjacent, then data-parallel replicas, then pipeline stages.
struct Grid {
  int64_t tensor = 1, pipeline = 1, data = 1;
  int64_t sequences = 1;  // global batch size
  int64_t microbatch = 1; // sequences per micro-batch
  int64_t interleave = 1; // model chunks per pipeline stage
  bool overlaps = false;  // whether the gradient all-reduce overlaps with the backward pass

  int64_t devices() const { return tensor * pipeline * data; }
  int64_t microbatches() const { return sequences / (data * microbatch); }
};

/// The time in seconds of a step on the slowest stage, as a sum of parts.
struct GptStep {
  double matrices = 0; // GEMMs
  double elements = 0; // other kernels, which are bound by the bytes of activations
  double tensor = 0;   // all-reduces among tensor-parallel ranks
  double sends = 0;    // activations and gradients sent between stages
  double bubble = 0;   // waiting for other stages
  double data = 0;     // exposed part of the gradient all-reduce
  double update = 0;   // weight update
  double flops = 0;    // operations of all devices
  int64_t devices = 1;
  double memoryBytes = 0; // per device of the first stage

  double seconds() const { return matrices + elements + tensor + sends + bubble + data + update; }
  double flopsOfDevice() const { return flops / seconds() / double(devices); }
};

/// Returns the bytes that each tensor-parallel rank sends in a step for one micro-batch of its stage: Megatron's 8 b s
/// h (t - 1) / t numbers per layer, and half as many again for the recomputed activations.
double tensorBytes(const GptShape &shape, const Grid &grid);

GptStep predictStep(const GptShape &shape, const Grid &grid, const Cluster &cluster, const std::string &type);

/// Returns the fraction of the peak that GEMMs reach, if such a step reaches `flopsOfDevice` operations per second on
/// each device.
double fractionFor(const GptShape &shape, const Grid &grid, const Cluster &cluster, const std::string &type,
                   double flopsOfDevice);

/// Returns the grid of at most `devices` devices with the shortest predicted time that fits in memory, or nothing if
/// none does.
std::optional<Grid> chooseGrid(const GptShape &shape, int64_t devices, int64_t sequences, const Cluster &cluster,
                               const std::string &type);

} // namespace kiln
