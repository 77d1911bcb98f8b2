// SPDX-License-Identifier: Apache-2.0
//
// The `main` of every program here. Google Benchmark's flags work as usual; --table prints rows of the common table
// instead, --header only the header of that table, and --json=FILE appends a line for each benchmark. A benchmark that
// fails makes the program fail.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Register.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>

namespace kiln::bench {

namespace {

using Run = benchmark::BenchmarkReporter::Run;

/// Returns "contraction/1x768x768", without Google Benchmark's suffixes and the number of threads.
std::string caseName(const Run &run) {
  const std::string &name = run.run_name.function_name;
  return name.substr(0, name.find("/threads:"));
}

double counter(const Run &run, const std::string &name) {
  auto found = run.counters.find(name);
  return found == run.counters.end() ? NAN : found->second.value;
}

std::string number(double value, const char *ifNone = "-") {
  if (std::isnan(value))
    return ifNone;
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
  return text;
}

/// Splits "GFLOP/s fma" into the unit and the binding limit.
std::pair<std::string, std::string> unitAndLimit(const Run &run) {
  std::istringstream words(run.report_label);
  std::pair<std::string, std::string> result;
  words >> result.first >> result.second;
  return result;
}

class TableReporter : public benchmark::BenchmarkReporter {
public:
  TableReporter(bool table, std::FILE *json) : table(table), json(json) {}

  bool ReportContext(const Context &context) override { return table || console.ReportContext(context); }

  void ReportRuns(const std::vector<Run> &runs) override {
    if (!table)
      console.ReportRuns(runs);
    for (const Run &run : runs) {
      if (run.error_occurred) {
        failed = true;
        std::fprintf(stderr, "error: %s: %s\n", caseName(run).c_str(), run.error_message.c_str());
      } else {
        if (counter(run, "others") > muchOfOthers)
          std::fprintf(stderr, "note: %s with %.0f threads: other programs took %.0f %% of a CPU meanwhile\n",
                       caseName(run).c_str(), counter(run, "threads"), 100 * counter(run, "others"));
        if (table)
          printRow(run);
        if (table && counter(run, "grid") > 0 && !std::isnan(counter(run, "ratio")))
          grid[static_cast<int>(counter(run, "threads"))].push_back(counter(run, "ratio"));
        if (json)
          writeLine(run);
      }
    }
  }

  /// Prints the geometric mean of the ratios of the rows in the grid.
  void Finalize() override {
    for (const auto &[threads, ratios] : grid) {
      double sum = 0;
      for (double ratio : ratios)
        sum += std::log(ratio);
      std::string name = "geometric mean of " + std::to_string(ratios.size());
      printCells(name, threads, "", "", {}, number(std::exp(sum / static_cast<double>(ratios.size()))), "-", "-");
    }
  }

  static void printHeader() {
    std::vector<std::string> names;
    for (const auto &[peer, isThere] : peerNames())
      names.push_back(peer);
    std::printf("| %-32s | T | %-7s | %6s |", "benchmark", "unit", "ours");
    for (const std::string &name : names)
      std::printf(" %*s |", peerWidth, name.c_str());
    std::printf(" %5s | %-16s | %5s |\n|%s|---|---------|-------:|", "ratio", "limit, (best)", "issue",
                std::string(34, '-').c_str());
    for (std::size_t i = 0; i < names.size(); ++i)
      std::printf("%s:|", std::string(peerWidth + 1, '-').c_str());
    std::printf("------:|%s:|------:|\n", std::string(17, '-').c_str());
  }

  bool failed = false;

private:
  static constexpr int peerWidth = 11;
  static constexpr double muchOfOthers = 0.1; // share of a CPU above which a row is not reliable

  static void printCells(const std::string &name, int threads, const std::string &unit, const std::string &ours,
                         const std::vector<std::string> &peers, const std::string &ratio, const std::string &limit,
                         const std::string &issue) {
    std::printf("| %-32s | %d | %-7s | %6s |", name.c_str(), threads, unit.c_str(), ours.c_str());
    for (std::size_t i = 0; i < peerNames().size(); ++i)
      std::printf(" %*s |", peerWidth, i < peers.size() ? peers[i].c_str() : "");
    std::printf(" %5s | %16s | %5s |\n", ratio.c_str(), limit.c_str(), issue.c_str());
    std::fflush(stdout);
  }

  static void printRow(const Run &run) {
    auto [unit, limit] = unitAndLimit(run);
    std::vector<std::string> peers;
    for (const auto &[peer, isThere] : peerNames())
      peers.push_back(number(counter(run, peer), isThere ? "-" : "skipped"));
    char fraction[32] = "-";
    if (limit != "-")
      std::snprintf(fraction, sizeof fraction, "%.0f%% %s (%.0f%%)", 100 * counter(run, "limit_fraction"),
                    limit.c_str(), 100 * counter(run, "best_fraction"));
    printCells(caseName(run), static_cast<int>(counter(run, "threads")), unit, number(counter(run, "ours")), peers,
               number(counter(run, "ratio")), fraction, number(counter(run, "issue")));
  }

  void writeLine(const Run &run) {
    std::fprintf(json, "{\"name\": \"%s\", \"threads\": %.0f, \"unit\": \"%s\", \"ours\": %.6g, \"peers\": {",
                 caseName(run).c_str(), counter(run, "threads"), unitAndLimit(run).first.c_str(), counter(run, "ours"));
    const char *comma = "";
    for (const auto &[peer, isThere] : peerNames())
      if (double value = counter(run, peer); !std::isnan(value)) {
        std::fprintf(json, "%s\"%s\": %.6g", comma, peer.c_str(), value);
        comma = ", ";
      }
    std::fputs("}", json);
    for (const char *name : {"ratio", "limit_fraction", "best_fraction", "issue"}) {
      double value = counter(run, name);
      std::fprintf(json, std::isnan(value) ? ", \"%s\": null" : ", \"%s\": %.4g", name, value);
    }
    std::fputs("}\n", json);
    std::fflush(json);
  }

  bool table;
  std::FILE *json;
  std::map<int, std::vector<double>> grid; // indexed by the number of threads
  benchmark::ConsoleReporter console;
};

} // namespace

} // namespace kiln::bench

int main(int argc, char **argv) {
  bool table = false;
  std::FILE *json = nullptr;
  std::vector<char *> others;
  for (int i = 0; i < argc; ++i) {
    if (std::strcmp(argv[i], "--header") == 0)
      return kiln::bench::TableReporter::printHeader(), 0;
    if (std::strcmp(argv[i], "--table") == 0) {
      table = true;
    } else if (std::strncmp(argv[i], "--json=", 7) == 0) {
      if (json = std::fopen(argv[i] + 7, "a"); !json)
        return std::fprintf(stderr, "error: cannot write \"%s\"\n", argv[i] + 7), 1;
    } else {
      others.push_back(argv[i]);
    }
  }
  int count = static_cast<int>(others.size());
  others.push_back(nullptr);
  benchmark::Initialize(&count, others.data());
  if (benchmark::ReportUnrecognizedArguments(count, others.data()))
    return 1;
  if (!kiln::bench::probeIsa())
    return std::fprintf(stderr, "error: CPU is not supported; expected one with AVX2 and FMA\n"), 1;
  kiln::bench::registerAll();
  kiln::bench::TableReporter reporter(table, json);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  if (json)
    std::fclose(json);
  return reporter.failed ? 1 : 0;
}
