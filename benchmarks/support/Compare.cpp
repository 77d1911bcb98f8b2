// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/support/Compare.h"

#include "benchmarks/support/Disturbance.h"
#include "benchmarks/support/Placement.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>

namespace kiln::bench {

static constexpr double turnSeconds = 0.006; // minimum duration of one turn
static constexpr double longSeconds = 0.05;  // a call of this duration needs no warm-up
/// Warm-up before a turn is timed: threads wake, caches fill, and an idle CPU returns to its clock (M-0920).
static constexpr double warmSeconds = 0.003;

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

static double least(const std::vector<double> &values) { return *std::min_element(values.begin(), values.end()); }

namespace {

/// A contender: the seconds of one call, one value per round.
class Turn {
public:
  Turn(Contender contender, const Threads &threads)
      : name(std::move(contender.name)), run(std::move(contender.run)), measureOnce(std::move(contender.measure)),
        threads(threads) {
    if (measureOnce)
      return;
    run(); // touches its memory
    isLong = secondsOf(run) > longSeconds;
  }

  void measure() {
    if (threads.count() > 1)
      waitUntilQuiet();
    if (measureOnce)
      return seconds.push_back(measureOnce());
    Placement placement(threads.count());
    const int calls = isLong ? 1 : static_cast<int>(turnSeconds / warmUp()) + 1;
    double start = now();
    for (int i = 0; i < calls; ++i)
      run();
    seconds.push_back((now() - start) / calls);
  }

  /// Seconds of a contender that times itself in another process.
  double childSeconds() const { return measureOnce ? std::accumulate(seconds.begin(), seconds.end(), 0.0) : 0; }

  std::string name;
  std::vector<double> seconds;

private:
  /// Warms up and returns the seconds of a call.
  double warmUp() const {
    double least = secondsOf(run);
    for (double end = now() + warmSeconds; now() < end;)
      least = std::min(least, secondsOf(run));
    return std::max(least, 1e-9);
  }

  std::function<void()> run;
  std::function<double()> measureOnce;
  const Threads &threads;
  bool isLong = false;
};

} // namespace

/// The largest difference, relative to the largest value.
static double difference(std::span<const float> ours, std::span<const float> peers) {
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    largest = std::max<double>(largest, std::fabs(ours[i]));
    double d = std::fabs(ours[i] - peers[i]);
    apart = d <= apart ? apart : d; // NaN propagates
  }
  return apart / largest;
}

/// Runs each contender once; returns an error message if one does not agree with the first.
static std::string checkOutputs(const std::vector<Contender> &contenders, double tolerance) {
  contenders[0].run();
  for (const Contender &peer : contenders) {
    if (peer.output.empty() || &peer == &contenders[0])
      continue;
    peer.run();
    if (double apart = difference(contenders[0].output, peer.output); !(apart <= tolerance))
      return "outputs differ from " + peer.name + "'s by " + std::to_string(apart) + " of the largest value";
  }
  return "";
}

static double toUnit(const Work &work, double seconds) {
  return work.unit == Unit::Milliseconds ? seconds * 1e3 : work.amount / seconds * 1e-9;
}

static const char *toString(Unit unit) {
  switch (unit) {
  case Unit::GigaflopsPerSecond:
    return "GFLOP/s";
  case Unit::GigabytesPerSecond:
    return "GB/s";
  case Unit::Milliseconds:
    break;
  }
  return "ms";
}

namespace {

/// A limit of the machine: `share` is a call's work divided by that of one call of the probe.
struct Limit {
  Turn turn;
  double share;
};

} // namespace

static std::vector<Limit> makeLimits(const Threads &threads, const Work &work) {
  std::vector<Limit> limits;
  auto add = [&](const char *name, const Probe &probe, double amount) {
    limits.push_back({Turn({name, probe.run, {}}, threads), amount / probe.amount});
  };
  if (work.flops > 0)
    add("fma", makeFmaProbe(threads), work.flops);
  if (work.bytesRead > 0)
    add("read", makeReadProbe(threads, static_cast<std::size_t>(work.bytesRead)), work.bytesRead);
  if (work.bytesCopied > 0)
    add("copy", makeCopyProbe(threads, static_cast<std::size_t>(work.bytesCopied)), work.bytesCopied);
  if (!work.file.empty())
    limits.push_back({Turn({"file", [file = work.file] { readFile(file); }, {}}, threads), 1});
  return limits;
}

/// For each name, the variant with the smallest median.
static std::vector<const Turn *> bestPeers(const std::vector<Turn> &turns) {
  std::map<std::string, const Turn *> best;
  for (std::size_t i = 1; i < turns.size(); ++i) {
    const Turn *&known = best[turns[i].name];
    if (!known || median(turns[i].seconds) < median(known->seconds))
      known = &turns[i];
  }
  std::vector<const Turn *> peers;
  for (const auto &[name, turn] : best)
    peers.push_back(turn);
  return peers;
}

static double medianQuotient(const std::vector<double> &above, const std::vector<double> &below, double factor = 1) {
  std::vector<double> quotients;
  for (std::size_t i = 0; i < above.size(); ++i)
    quotients.push_back(factor * above[i] / below[i]);
  return median(quotients);
}

void compare(benchmark::State &state, const Threads &threads, const Work &work, std::vector<Contender> contenders) {
  if (std::string wrong = checkOutputs(contenders, work.tolerance); !wrong.empty())
    return state.SkipWithError(wrong.c_str());
  std::vector<Turn> turns;
  for (Contender &contender : contenders)
    turns.emplace_back(std::move(contender), threads);
  std::vector<Limit> limits = makeLimits(threads, work);

  Disturbance disturbance;
  std::size_t first = 0;
  std::vector<double> issue;
  for (auto _ : state) {
    issue.push_back(instructionsPerCycle(threads));
    for (Limit &limit : limits)
      limit.turn.measure();
    for (std::size_t i = 0; i < turns.size(); ++i)
      turns[(first + i) % turns.size()].measure();
    ++first;
    state.SetIterationTime(turns[0].seconds.back());
  }

  double children = 0;
  for (const Turn &turn : turns)
    children += turn.childSeconds() * threads.count();
  const Turn &ours = turns[0];
  state.counters["others"] = disturbance.share(children);
  state.counters["issue"] = median(issue);
  state.counters["threads"] = threads.count();
  state.counters["ours"] = toUnit(work, median(ours.seconds));
  double ratio = 0;
  for (const Turn *peer : bestPeers(turns)) {
    state.counters[peer->name] = toUnit(work, median(peer->seconds));
    double quotient = medianQuotient(peer->seconds, ours.seconds);
    ratio = ratio == 0 ? quotient : std::min(ratio, quotient);
  }
  if (ratio > 0)
    state.counters["ratio"] = ratio;
  double fraction = 0, best = 0;
  std::string binding = "-";
  for (const Limit &limit : limits)
    if (double part = medianQuotient(limit.turn.seconds, ours.seconds, limit.share); part > fraction) {
      fraction = part;
      best = limit.share * least(limit.turn.seconds) / least(ours.seconds);
      binding = limit.turn.name;
    }
  if (fraction > 0) {
    state.counters["limit_fraction"] = fraction;
    state.counters["best_fraction"] = best;
  }
  state.SetLabel(std::string(toString(work.unit)) + " " + binding);
}

void add(const std::string &name, int threads, int rounds,
         const std::function<void(benchmark::State &, const Threads &)> &body) {
  auto run = [threads, body](benchmark::State &state) {
    Threads ours(threads);
    body(state, ours);
  };
  benchmark::RegisterBenchmark((name + "/threads:" + std::to_string(threads)).c_str(), run)
      ->Iterations(rounds)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

} // namespace kiln::bench
