#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""leave_one_out.py FILE...: compares rules that transfer schedules between shapes, on tuning files.

For each measured shape that has another one near it, the lines of the shape are left out, each rule chooses a
configuration from the others, and the lines that were left out tell the time of the choice. The loss is that time over
the best measured one; the table has the geometric mean and the largest loss over the shapes for which the choices of
all rules were measured.

- default: the analytic default of the shape
- nearest: the best configuration of the nearest shape
- default there: the same, but the analytic default of the shape if the nearest shape's default was best. It is the
  compiler's rule (compiler/schedule/Choose.cpp)
- fitted: the nearest shape's best configuration if a slope, fitted to the losses between measured shapes, predicts that
  it loses less than defaults lose on average; else the default. It is the rule that the compiler had before

Legal values are not in the files: a configuration is moved to the nearest values that occur in the lines of the shape.
"""
import collections
import math
import sys

FARTHEST = 3  # of the distances below
USUAL_SLOPE, USUAL_WEIGHT = 0.05, 1  # of the fitted rule, before anything is measured
USUAL_DIFFERENCE = 0.1  # of a configuration's losses under two conditions


class Kernel:
    """The measurements of one shape."""

    def __init__(self):
        self.conditions = collections.defaultdict(dict)  # (threads, extents) -> configuration -> microseconds
        self.refused = set()
        self.default = None

    def configs(self):
        return {config for times in self.conditions.values() for config in times}

    def ranked(self, threads):
        """Returns configurations and their mean losses over the relevant conditions, the best one first."""
        away = lambda condition: abs(math.log(condition[0] / threads)) if threads else 0
        least = min(map(away, self.conditions), default=0)
        losses = []
        for condition, times in self.conditions.items():
            legal = {config: math.log(time) for config, time in times.items() if config not in self.refused}
            if legal and away(condition) <= least:
                best = min(legal.values())
                losses.append({config: time - best for config, time in legal.items()})
        means = []
        for config in set().union(*losses):
            known = [losses_at for losses_at in losses if config in losses_at]
            predicted = lambda at: sum(other[config] + difference(other, at) for other in known) / len(known)
            means.append((sum(at[config] if config in at else predicted(at) for at in losses) / len(losses), config))
        return {config: loss for loss, config in sorted(means)}


def difference(a, b):
    """Returns the mean difference of losses under two conditions."""
    both = [abs(a[config] - b[config]) for config in a if config in b]
    return sum(both) / len(both) if both else USUAL_DIFFERENCE


def apart(a, b):
    return abs(math.asinh(a) - math.asinh(b))


def distance(a, b):
    return sum(map(apart, a, b)) if len(a) == len(b) else math.inf


def read(path):
    """Returns the kernels of a file by (machine, strategy), structure, and shape with bounds."""
    found = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(Kernel)))
    for line in path.read_text().splitlines()[1:]:
        case, config, result = line.split(" | ")
        strategy, structure, shape, bounds, extents, machine, threads = case.split(" ")
        numbers = (shape + "x" + bounds).replace("..", "x").replace(",", "x").split("x")
        kernel = found[machine, strategy][structure][tuple(int(number) for number in numbers if number != "-")]
        if "us " in result:
            kernel.conditions[int(threads.removeprefix("threads=")), extents][config] = float(result.split("us")[0])
        else:
            kernel.refused.add(config)
        if result.endswith(" default"):
            kernel.default = config
    return found


def values(config):
    return {name: int(value) for name, value in (word.split("=") for word in config.split(" "))}


def move(config, kernel):
    """Returns the configuration with each value replaced by the nearest one that occurs in the kernel's lines."""
    legal = collections.defaultdict(set)
    for other in kernel.configs():
        for name, value in values(other).items():
            legal[name].add(value)
    wanted = (values(kernel.default) if kernel.default else {}) | values(config)
    nearest = lambda name: min(sorted(legal[name]), key=lambda value: apart(value, wanted[name]))
    return " ".join(f"{name}={nearest(name)}" for name in sorted(wanted.keys() & legal))


def find_donor(kernels, shape, kernel, threads):
    """Returns the distance of the nearest shape, its kernel, its best configuration and that moved to `kernel`."""
    found = None
    for other, donor in kernels.items():
        away = distance(shape, other)
        if away > FARTHEST or found and away >= found[0]:
            continue
        for best in donor.ranked(threads):
            moved = move(best, kernel)
            if moved not in kernel.refused:
                found = away, donor, best, moved
                break
    return found


def fitted_slope(structures, threads):
    products, squares = USUAL_SLOPE * USUAL_WEIGHT, USUAL_WEIGHT
    for kernels in structures.values():
        ranked = {shape: kernel.ranked(threads) for shape, kernel in kernels.items() if kernel.conditions}
        for one, own in ranked.items():
            for other, losses in ranked.items():
                best, away = next(iter(own)), distance(one, other)
                if one != other and best in losses and math.isfinite(away):
                    products += away * losses[best]
                    squares += away * away
    return products / squares


def loss_of_defaults(structures, structure, threads):
    """Returns the mean loss of defaults in the structure, else in the strategy; None if none was measured."""
    for group in ([structures[structure]], structures.values()):
        ranked = [(kernel.ranked(threads), kernel.default) for kernels in group for kernel in kernels.values()]
        losses = [losses[default] for losses, default in ranked if default in losses]
        if losses:
            return sum(losses) / len(losses)
    return None


def choices(structures, structure, shape, threads):
    """Returns the choice of each rule for a shape without its lines; None if no other shape is near."""
    kernel = structures[structure][shape]
    others = {**structures, structure: {at: other for at, other in structures[structure].items() if at != shape}}
    donor = find_donor(others[structure], shape, kernel, threads)
    if donor is None:
        return None
    away, near, best, moved = donor
    usual = loss_of_defaults(others, structure, threads)
    is_fitted = usual is None or usual >= fitted_slope(others, threads) * away
    return {
        "default": kernel.default,
        "nearest": moved,
        "default there": kernel.default if best == near.default else moved,
        "fitted": moved if is_fitted else kernel.default,
    }


def compare(paths, threads):
    """Prints a row for each rule."""
    losses, shapes = collections.defaultdict(list), 0
    for structures in (structures for path in paths for structures in read(path).values()):
        for structure, kernels in structures.items():
            for shape, kernel in kernels.items():
                chosen = choices(structures, structure, shape, threads) if len(kernel.configs()) > 1 else None
                if chosen is None:
                    continue
                shapes += 1
                measured = kernel.ranked(threads)
                if all(config in measured for config in chosen.values()):
                    for rule, config in chosen.items():
                        losses[rule].append(measured[config])
    for rule, all_losses in losses.items():
        mean, largest = (100 * math.expm1(value) for value in (sum(all_losses) / len(all_losses), max(all_losses)))
        print(f"{threads or 'all':>7}  {shapes:6}  {len(all_losses):8}  {rule:13}  {mean:6.2f} %  {largest:6.1f} %")


def main():
    import pathlib

    paths = [pathlib.Path(argument) for argument in sys.argv[1:]]
    if not paths or not all(path.is_file() for path in paths):
        sys.exit(__doc__)
    print("threads  shapes  measured  rule           mean loss   largest")
    for threads in (0, 1, 2):
        compare(paths, threads)


if __name__ == "__main__":
    main()
