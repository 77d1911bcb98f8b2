// SPDX-License-Identifier: Apache-2.0
// The cost model's predictions for measured training runs from the literature, and for models that were not measured:
// the tables of docs/scale.md and its picture.
//
//   kiln_predict_scale MACHINES            the tables
//   kiln_predict_scale MACHINES --picture  the picture
#include "tests/scale/published.h"

#include "llvm/Support/raw_ostream.h"
#include <array>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>

using namespace kiln;

namespace {

struct Model {
  const char *name;
  GptShape shape;
};

const std::vector<Model> models{
    {"Megatron-LM, 1.2 billion", {40, 1536, 16, 1024}},
    {"Megatron-LM, 8.3 billion", {72, 3072, 32, 1024}},
    {"GPT, 1.7 billion", {24, 2304, 24, 2048}},
    {"GPT, 18.4 billion", {40, 6144, 48, 2048}},
    {"GPT, 76.1 billion", {60, 10240, 80, 2048}},
    {"GPT-3, 175 billion", {96, 12288, 96, 2048}},
    {"Megatron-Turing, 530 billion", {105, 20480, 128, 2048}},
};

/// Tokens per step, for every context length.
constexpr int64_t stepTokens = int64_t(1) << 21;

int64_t sequencesOf(const GptShape &shape) { return stepTokens / shape.context; }

double peakOf(const Cluster &cluster) { return cluster.device.peaks.at("f16"); }

std::string describe(const Grid &grid) { return fmt::format("{} x {} x {}", grid.tensor, grid.pipeline, grid.data); }

/// Returns a part of a step in percent.
std::string share(double part, const GptStep &step) { return fmt::format("{:.0f} %", 100 * part / step.seconds()); }

void printMegatron(const Cluster &cluster) {
  fmt::print("| weights | GPUs | tensor x data | measured | predicted | if all sums of gradients were hidden |\n"
             "|---|---:|---|---:|---:|---:|\n");
  for (const published::Run &run : published::megatron) {
    std::array<double, 2> predicted{};
    for (bool overlaps : {false, true}) {
      Grid grid = run.grid;
      grid.overlaps = overlaps;
      predicted[overlaps] = predictStep(run.shape, grid, cluster, "f16").flopsOfDevice() / published::megatronBaseline;
    }
    fmt::print("| {} | {} | {} x {} | {:.0f} % | {:.0f} % | {:.0f} % |\n", run.name, run.grid.devices(),
               run.grid.tensor, run.grid.data, 100 * run.value, 100 * predicted[0], 100 * predicted[1]);
  }
}

void printSelene(const Cluster &cluster) {
  fmt::print(
      "| weights | GPUs | grid | measured | predicted | differ | products | others | sums | stages | gradients |\n"
      "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const published::Run &run : published::selene) {
    const GptStep step = predictStep(run.shape, run.grid, cluster, "f16");
    const double predicted = step.flopsOfDevice() / 1e12;
    fmt::print("| {} | {} | {} | {:.0f} | {:.0f} | {:+.1f} % | {} | {} | {} | {} | {} |\n", run.name,
               run.grid.devices(), describe(run.grid), run.value, predicted, 100 * (predicted / run.value - 1),
               share(step.matrices, step), share(step.elements + step.update, step), share(step.tensor, step),
               share(step.bubble + step.sends, step), share(step.data, step));
  }
}

/// Returns "8 x 1 x 8: 45 %", the grid and the share of the peak.
std::string predictOn(const Model &model, int64_t devices, const Cluster &cluster) {
  const std::optional<Grid> grid = chooseGrid(model.shape, devices, sequencesOf(model.shape), cluster, "f16");
  if (!grid)
    return "too large";
  const GptStep step = predictStep(model.shape, *grid, cluster, "f16");
  return fmt::format("{}: {:.0f} %", describe(*grid), 100 * step.flopsOfDevice() / peakOf(cluster));
}

void printModels(const Cluster &cluster) {
  fmt::print("| model |");
  for (int64_t devices : {8, 64, 512})
    fmt::print(" {} {} |", devices, cluster.device.name);
  fmt::print("\n|---|---|---|---|\n");
  for (const Model &model : models) {
    fmt::print("| {} |", model.name);
    for (int64_t devices : {8, 64, 512})
      fmt::print(" {} |", predictOn(model, devices, cluster));
    fmt::print("\n");
  }
}

// The picture: GPUs on the x axis, the share of the peak on the y axis.

constexpr double left = 60, right = 640, top = 70, bottom = 400, mostShare = 0.6;
constexpr int64_t leastDevices = 8, mostDevices = 4096;

double acrossOf(double devices) {
  return left + (right - left) * std::log2(devices / double(leastDevices)) /
                    std::log2(double(mostDevices) / double(leastDevices));
}
double upOf(double share) { return bottom - (bottom - top) * share / mostShare; }

const char *const head =
    R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 450" font-family="sans-serif" font-size="13">
  <style>
    .page {{ fill: #ffffff; stroke: #d0d7de; }}
    .title {{ fill: #1f2328; font-size: 16px; font-weight: 600; }}
    .note {{ fill: #57606a; }}
    .grid {{ stroke: #d0d7de; }}
    .line {{ fill: none; stroke-width: 2; }}
    .c0 {{ stroke: #0550ae; fill: #0550ae; }}
    .c1 {{ stroke: #bc4c00; fill: #bc4c00; }}
    .c2 {{ stroke: #1a7f37; fill: #1a7f37; }}
    .c3 {{ stroke: #8250df; fill: #8250df; }}
    .line.c0, .line.c1, .line.c2, .line.c3 {{ fill: none; }}
    .dot {{ fill: #1f2328; }}
    .ring {{ fill: none; stroke: #1f2328; stroke-width: 1.5; }}
    text.c0, text.c1, text.c2, text.c3 {{ stroke: none; }}
    @media (prefers-color-scheme: dark) {{
      .page {{ fill: #0d1117; stroke: #30363d; }}
      .title, .dot {{ fill: #f0f6fc; }}
      .ring {{ stroke: #f0f6fc; }}
      .note {{ fill: #9ea7b3; }}
      .grid {{ stroke: #30363d; }}
      .c0 {{ stroke: #79c0ff; fill: #79c0ff; }}
      .c1 {{ stroke: #f0883e; fill: #f0883e; }}
      .c2 {{ stroke: #56d364; fill: #56d364; }}
      .c3 {{ stroke: #d2a8ff; fill: #d2a8ff; }}
    }}
  </style>
  <rect class="page" x="0.5" y="0.5" width="859" height="449" rx="6"/>
  <text class="title" x="20" y="30">Share of the peak that trainings reach on A100s, 2 million tokens a step</text>
  <text class="note" x="20" y="50">lines: predicted with the best grid; dots: ten measured runs (Narayanan et al. 2021), rings: predicted for them</text>
)";

void drawAxes() {
  for (int percent = 0; percent <= 60; percent += 10)
    fmt::print("  <line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n"
               "  <text class=\"note\" x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5} %</text>\n",
               left, right, upOf(percent / 100.0), left - 8, upOf(percent / 100.0) + 4, percent);
  for (int64_t devices = leastDevices; devices <= mostDevices; devices *= 2)
    fmt::print("  <text class=\"note\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
               acrossOf(double(devices)), bottom + 20, devices);
  fmt::print("  <text class=\"note\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">GPUs</text>\n", (left + right) / 2,
             bottom + 40);
}

void drawCurve(const Model &model, int color, const Cluster &cluster) {
  std::string points;
  int64_t last = 0; // a line ends where more devices cannot be used
  for (int64_t devices = leastDevices; devices <= mostDevices; devices *= 2) {
    const std::optional<Grid> grid = chooseGrid(model.shape, devices, sequencesOf(model.shape), cluster, "f16");
    if (!grid || grid->devices() == last)
      continue;
    last = grid->devices();
    const double share = predictStep(model.shape, *grid, cluster, "f16").flopsOfDevice() / peakOf(cluster);
    points += fmt::format("{:.1f},{:.1f} ", acrossOf(double(last)), upOf(share));
  }
  fmt::print("  <polyline class=\"line c{0}\" points=\"{1}\"/>\n", color, points);
  fmt::print("  <text class=\"c{}\" x=\"{}\" y=\"{}\">{}</text>\n", color, right + 10, top + 20 + 22 * color,
             model.name);
}

void drawPicture(const Cluster &cluster) {
  fmt::print(fmt::runtime(head));
  drawAxes();
  int color = 0;
  for (size_t model : {2, 3, 5, 6})
    drawCurve(models[model], color++, cluster);
  for (const published::Run &run : published::selene) {
    const double predicted = predictStep(run.shape, run.grid, cluster, "f16").flopsOfDevice();
    for (auto [kind, value] : {std::pair("dot", run.value * 1e12), std::pair("ring", predicted)})
      fmt::print("  <circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{} weights</title></circle>\n",
                 kind, acrossOf(double(run.grid.devices())), upOf(value / peakOf(cluster)), run.name);
  }
  fmt::print("</svg>\n");
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s MACHINES [--picture]\n", argv[0]);
    return 2;
  }
  std::vector<Cluster> clusters;
  for (const char *name : {"dgx2h_v100", "selene_a100", "dgx_h100"}) {
    llvm::Expected<Cluster> cluster = loadCluster(std::string(argv[1]) + "/" + name + ".json");
    if (!cluster) {
      llvm::errs() << "error: " << llvm::toString(cluster.takeError()) << "\n";
      return 1;
    }
    clusters.push_back(std::move(*cluster));
  }
  if (argc > 2) {
    drawPicture(clusters[1]);
    return 0;
  }
  printMegatron(clusters[0]);
  fmt::print("\n");
  printSelene(clusters[1]);
  for (const Cluster *cluster : {&clusters[1], &clusters[2]}) {
    fmt::print("\n");
    printModels(*cluster);
  }
  return 0;
}
