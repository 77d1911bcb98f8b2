// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/Display.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace kiln {

static std::string describeTime(double seconds) {
  if (seconds < 1e-3)
    return fmt::format("{:.1f} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

static std::string describeSpan(double seconds) {
  auto whole = static_cast<long>(std::max(seconds, 0.0) + 0.5);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

static std::string describeLimit(const TaskState &task) {
  if (task.limit == Limit::Unknown)
    return "-";
  return fmt::format("{:.0f}% {}", task.limitFraction * 100, task.limit == Limit::Fma ? "fma" : "bytes");
}

static std::string describeExtents(const TaskState &task) {
  std::vector<std::string> sets;
  for (const std::vector<int64_t> &extents : task.extents)
    sets.push_back(fmt::format("{}", fmt::join(extents, ",")));
  return fmt::format("{}", fmt::join(sets, " "));
}

/// Returns the ratio of the model's time with the best schedules to that with the default ones, as far as it is known.
static double tunedShare(const TuneState &state) {
  double tuned = 0, whole = 0;
  for (auto [task, share] : llvm::zip(state.tasks, state.shares)) {
    whole += share;
    tuned += task->defaultSeconds > 0 ? share * task->bestSeconds / task->defaultSeconds : share;
  }
  return whole > 0 ? tuned / whole : 1;
}

namespace {

/// Shared by the line and the terminal display: the final table.
class TextDisplay : public TuneDisplay {
public:
  void summary(const TuneState &state, const std::string &file, bool isInterrupted) override {
    fmt::print("{}", table(state));
    double tuned = tunedShare(state);
    fmt::print("{}: {} in {}, the kernels take {:.1f}% of the default schedules' time; the default reaches {:.1f}% of "
               "the tuned "
               "speed\n{} {}\n",
               state.target, isInterrupted ? "stopped" : "done", describeSpan(state.seconds), tuned * 100, tuned * 100,
               "saved in", file);
    std::fflush(stdout);
  }

protected:
  static std::string table(const TuneState &state) {
    size_t width = 16;
    for (const TaskState *task : state.tasks)
      width = std::max(width, task->name.size());
    std::string text = fmt::format("{:<{}} {:<13} {:>5} {:>10} {:>10} {:>6} {:>9} {:>6} {:>10}\n", "kernel", width,
                                   "extents", "share", "default", "best", "gain", "of limit", "left", "tried");
    for (size_t i = 0; i < state.tasks.size(); ++i) {
      const TaskState &task = *state.tasks[i];
      if (task.defaultSeconds == 0) {
        text += fmt::format("{:<{}} {:<13}\n", task.name, width, describeExtents(task));
        continue;
      }
      text += fmt::format("{:<{}} {:<13} {:>4.0f}% {:>10} {:>10} {:>5.1f}% {:>9} {:>5.1f}% {:>10}\n", task.name, width,
                          describeExtents(task), state.shares[i] * 100, describeTime(task.defaultSeconds),
                          describeTime(task.bestSeconds), (task.defaultSeconds / task.bestSeconds - 1) * 100,
                          describeLimit(task), state.gains[i] * 100,
                          fmt::format("{}{}", task.measured, task.failed ? fmt::format(" (-{})", task.failed) : ""));
    }
    return text;
  }
};

class LineDisplay : public TextDisplay {
public:
  void note(const std::string &text) override { print(text); }
  void measurement(const TuneState &state, const MeasurementReport &report) override {
    const TaskState &task = *state.tasks[state.active];
    if (report.outcome != Outcome::Measured)
      print(fmt::format("{} {}: {}: {}: {}", describeSpan(state.seconds), task.name, toString(report.config),
                        toString(report.outcome).str(), report.words));
    else if (report.isBest)
      print(fmt::format("{} {}: {}: {}, {} of the limit, {:.1f}% of the default's time", describeSpan(state.seconds),
                        task.name, toString(report.config), describeTime(task.bestSeconds), describeLimit(task),
                        report.cost * 100));
  }
  void update(const TuneState &) override {}

private:
  static void print(const std::string &line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
};

/// Redraws its block in place.
class TerminalDisplay : public TextDisplay {
public:
  void note(const std::string &text) override {
    erase();
    fmt::print("{}\n", text);
  }
  void measurement(const TuneState &state, const MeasurementReport &) override { draw(state); }
  void update(const TuneState &state) override {
    auto now = std::chrono::steady_clock::now();
    if (now - drawn > std::chrono::milliseconds(200))
      draw(state);
  }
  void summary(const TuneState &state, const std::string &file, bool isInterrupted) override {
    erase();
    TextDisplay::summary(state, file, isInterrupted);
  }

private:
  void erase() {
    if (lines)
      fmt::print("\033[{}F\033[J", lines);
    lines = 0;
  }
  void draw(const TuneState &state) {
    winsize size{};
    size_t width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
    size_t height = size.ws_row > 4 ? size.ws_row - 2 : 24;
    const TaskState &active = *state.tasks[state.active];
    double left = 0;
    for (double gain : state.gains)
      left += gain;
    std::string text = table(state);
    text += fmt::format(
        "{} x{}  {} of {}, at most {} to go  now {}  gain so far {:.1f}%, left about {:.1f}%  Ctrl-C stops\n",
        state.target, state.threads, describeSpan(state.seconds), describeSpan(state.budget),
        describeSpan(state.budget - state.seconds), active.name, (1 / tunedShare(state) - 1) * 100, left * 100);
    llvm::SmallVector<llvm::StringRef> rows;
    llvm::StringRef(text).rtrim('\n').split(rows, '\n');
    erase();
    // A block that scrolls cannot be redrawn: keep its last rows.
    for (llvm::StringRef row : llvm::ArrayRef(rows).take_back(height)) {
      fmt::print("{}\n", row.take_front(width - 1).str());
      ++lines;
    }
    std::fflush(stdout);
    drawn = std::chrono::steady_clock::now();
  }

  size_t lines = 0;
  std::chrono::steady_clock::time_point drawn{};
};

/// Prints one JSON object per line.
class JsonDisplay : public TuneDisplay {
public:
  void note(const std::string &text) override {
    print(llvm::json::Object{{"event", "note"}, {"text", llvm::json::fixUTF8(text)}});
  }
  void measurement(const TuneState &state, const MeasurementReport &report) override {
    const TaskState &task = *state.tasks[state.active];
    llvm::json::Object config;
    for (const auto &[key, value] : report.config)
      config[key] = value;
    llvm::json::Object object{{"event", "trial"},
                              {"seconds", state.seconds},
                              {"target", state.target},
                              {"threads", int64_t(state.threads)},
                              {"kernel", task.name},
                              {"strategy", task.strategy},
                              {"point", std::move(config)},
                              {"outcome", toString(report.outcome)},
                              {"tried", int64_t(task.measured)},
                              {"expected_gain", state.gains[state.active]}};
    if (report.outcome == Outcome::Measured) {
      object["microseconds"] = llvm::json::Array(report.microseconds);
      object["cost"] = report.cost;
      object["is_best"] = report.isBest;
      object["is_confirmation"] = report.isConfirmation;
      object["limit_fraction"] = task.limitFraction;
    } else {
      object["words"] = llvm::json::fixUTF8(report.words);
    }
    print(std::move(object));
  }
  void update(const TuneState &) override {}
  void summary(const TuneState &state, const std::string &file, bool isInterrupted) override {
    for (size_t i = 0; i < state.tasks.size(); ++i) {
      const TaskState &task = *state.tasks[i];
      llvm::json::Object best;
      for (const auto &[key, value] : task.best)
        best[key] = value;
      print(llvm::json::Object{{"event", "kernel"},
                               {"target", state.target},
                               {"kernel", task.name},
                               {"strategy", task.strategy},
                               {"share", state.shares[i]},
                               {"default_seconds", task.defaultSeconds},
                               {"best_seconds", task.bestSeconds},
                               {"best", std::move(best)},
                               {"limit_fraction", task.limitFraction},
                               {"limit", task.limit == Limit::Fma     ? "fma"
                                         : task.limit == Limit::Bytes ? "bytes"
                                                                      : "unknown"},
                               {"tried", int64_t(task.measured)},
                               {"failed", int64_t(task.failed)}});
    }
    print(llvm::json::Object{{"event", "end"},
                             {"target", state.target},
                             {"seconds", state.seconds},
                             {"interrupted", isInterrupted},
                             {"default_over_tuned", tunedShare(state)},
                             {"file", llvm::json::fixUTF8(file)}});
  }

private:
  static void print(llvm::json::Object object) {
    std::string line;
    llvm::raw_string_ostream(line) << llvm::json::Value(std::move(object));
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
};

} // namespace

std::unique_ptr<TuneDisplay> makeDisplay(DisplayForm form) {
  switch (form) {
  case DisplayForm::Terminal:
    return std::make_unique<TerminalDisplay>();
  case DisplayForm::Lines:
    return std::make_unique<LineDisplay>();
  case DisplayForm::Json:
    return std::make_unique<JsonDisplay>();
  }
  llvm_unreachable("all forms have a display");
}

} // namespace kiln
