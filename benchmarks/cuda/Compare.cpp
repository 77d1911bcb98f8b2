// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cuda/Compare.h"

#include <algorithm>
#include <cmath>
#include <ctime>

namespace kiln::bench {

namespace {

/// A contender: the seconds of one call, one value per round.
struct Turn {
  std::string name;
  std::function<double(int calls)> measure; // seconds per call
  int calls = 1;
  std::vector<double> seconds = {};

  void begin(double turnSeconds) {
    measure(1); // loads kernels and touches memory
    calls = std::clamp(int(turnSeconds / std::max(measure(3), 1e-7)), 1, 10000);
  }
  void take() { seconds.push_back(measure(calls)); }
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double medianQuotient(const Turn &above, const Turn &below) {
  std::vector<double> quotients;
  for (std::size_t i = 0; i < above.seconds.size(); ++i)
    quotients.push_back(above.seconds[i] / below.seconds[i]);
  return median(quotients);
}

const Turn *fastest(const std::vector<Turn> &turns) {
  auto by = [](const Turn &a, const Turn &b) { return median(a.seconds) < median(b.seconds); };
  return turns.empty() ? nullptr : &*std::min_element(turns.begin(), turns.end(), by);
}

/// The largest difference, relative to the largest value.
double difference(const std::vector<float> &ours, const std::vector<float> &peers) {
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    largest = std::max<double>(largest, std::fabs(ours[i]));
    const double d = std::fabs(ours[i] - peers[i]);
    apart = d <= apart ? apart : d; // NaN propagates
  }
  return apart / largest;
}

struct Row {
  std::string unit, ours, way, peer, form, ratio, limit;
  std::vector<std::pair<std::string, double>> ratios; // for each form of the peer
  double seconds = 0, quotient = 0, fraction = 0;
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.3g" : "%.0f", value);
  return text;
}

std::string inUnit(const GpuCase &of, double seconds) {
  switch (of.unit) {
  case GpuUnit::Teraflops:
    return number(of.operations / seconds * 1e-12);
  case GpuUnit::GigabytesPerSecond:
    return number(of.bytes / seconds * 1e-9);
  default:
    return number(seconds * 1e3);
  }
}

/// The contenders of one row.
struct Contest {
  std::vector<Turn> ours, peers;
  Turn copy;

  void run(const GpuOptions &options, bool copies) {
    std::vector<Turn *> all;
    for (std::vector<Turn> *turns : {&ours, &peers})
      for (Turn &turn : *turns)
        all.push_back(&turn);
    if (copies)
      all.push_back(&copy);
    for (Turn *turn : all)
      turn->begin(options.turnSeconds);
    for (int round = 0; round < options.rounds; ++round)
      for (std::size_t i = 0; i < all.size(); ++i)
        all[(i + std::size_t(round)) % all.size()]->take();
  }

  Row row(const GpuCase &of) const {
    Row row;
    row.unit = of.unit == GpuUnit::Teraflops ? "TFLOP/s" : of.unit == GpuUnit::Milliseconds ? "ms" : "GB/s";
    const Turn *best = fastest(ours), *peer = fastest(peers);
    row.seconds = median(best->seconds);
    row.ours = inUnit(of, row.seconds);
    row.way = best->name;
    if (peer) {
      row.peer = inUnit(of, median(peer->seconds));
      row.form = peer->name;
      row.quotient = medianQuotient(*peer, *best);
      row.ratio = number(row.quotient);
    }
    for (const Turn &each : peers)
      row.ratios.emplace_back(each.name, medianQuotient(each, *best));
    if (!copy.seconds.empty()) {
      row.fraction = medianQuotient(copy, *best);
      row.limit = number(100 * row.fraction) + "%";
    }
    return row;
  }
};

Turn onGpu(Gpu &gpu, const std::string &name, const Gpu::Work &call) {
  return {name, [&gpu, call](int calls) {
            return gpu.time([&] {
              for (int i = 0; i < calls; ++i)
                call();
            }) / calls;
          }};
}

void printRow(const GpuCase &of, const Row &row, const GpuOptions &options) {
  auto shown = [](const std::string &text) { return text.empty() ? "-" : text.c_str(); };
  std::printf("| %-42s | %-7s | %7s | %-6s | %7s | %-8s | %5s | %5s |\n", of.name.c_str(), row.unit.c_str(),
              row.ours.c_str(), row.way.c_str(), shown(row.peer), shown(row.form), shown(row.ratio), shown(row.limit));
  std::fflush(stdout);
  if (!options.json)
    return;
  std::fprintf(options.json, "{\"name\": \"%s\", \"seconds\": %.6g, \"way\": \"%s\", \"peer\": \"%s\", ",
               of.name.c_str(), row.seconds, row.way.c_str(), row.form.c_str());
  std::fprintf(options.json, row.quotient > 0 ? "\"ratio\": %.4g, " : "\"ratio\": null, ", row.quotient);
  for (const auto &[form, ratio] : row.ratios)
    std::fprintf(options.json, "\"ratio_%s\": %.4g, ", form.c_str(), ratio);
  std::fprintf(options.json, row.fraction > 0 ? "\"copy_fraction\": %.4g}\n" : "\"copy_fraction\": null}\n",
               row.fraction);
}

void printHeader(const Gpu &gpu, const GpuPyTorch *peer, const std::string &why) {
  char date[16];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  std::printf("%s; %s; %s\n\n", gpu.describe().c_str(), date,
              peer ? peer->version().c_str() : ("PyTorch skipped: " + why).c_str());
  std::printf("| %-42s | %-7s | %7s | %-6s | %7s | %-8s | %5s | %5s |\n", "benchmark", "unit", "ours", "by", "pytorch",
              "by", "ratio", "copy");
  std::printf("|%s|---------|--------:|--------|--------:|----------|------:|------:|\n", std::string(44, '-').c_str());
}

} // namespace

bool runGpuBenchmarks(Gpu &gpu, const std::vector<GpuBenchmark> &benchmarks, const GpuOptions &options) {
  std::string why;
  const std::unique_ptr<GpuPyTorch> peer = GpuPyTorch::start(why);
  printHeader(gpu, peer.get(), why);
  bool isRight = true;
  for (const GpuBenchmark &benchmark : benchmarks) {
    const GpuCase &of = benchmark.of;
    if (!std::regex_search(of.name, options.filter))
      continue;
    const GpuRun run = benchmark.make(gpu);
    gpu.time(run.call); // loads the kernels, which is not possible during capture
    Contest contest;
    contest.ours = {onGpu(gpu, "stream", run.call), onGpu(gpu, "graph", gpu.record(run.call))};
    if (peer && !of.peer.empty())
      for (const std::string &form : peer->make(of.peer))
        contest.peers.push_back({form, [&peer, form](int calls) { return peer->run(form, calls); }});
    if (of.bytes > 0)
      contest.copy = onGpu(gpu, "copy", gpu.makeCopy(std::size_t(of.bytes)));
    contest.run(options, of.bytes > 0);
    if (!contest.peers.empty()) {
      const std::vector<float> ours = run.output();
      const double apart = difference(ours, peer->output(ours.size()));
      if (!(apart <= of.tolerance)) {
        std::fprintf(stderr, "error: %s: the output differs from PyTorch's by %g of the largest value\n",
                     of.name.c_str(), apart);
        isRight = false;
        continue;
      }
    }
    printRow(of, contest.row(of), options);
  }
  return isRight;
}

} // namespace kiln::bench
