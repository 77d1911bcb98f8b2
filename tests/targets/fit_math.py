# SPDX-License-Identifier: Apache-2.0
"""Fits the polynomials of targets/passes/ExpandMath.cpp and prints their coefficients and errors.

The method is weighted least squares at Chebyshev points, reweighted by the error until all its peaks are equal
(Lawson's method); rational functions use the same method on the linearised problem. Needs numpy."""
import math

import numpy as np


def chebyshev(low, high, count=6001):
    return (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(count) + 0.5) / count)


def powers(x, degree):
    return np.vander(x, degree + 1, increasing=True)


def polynomial(x, degree, target, weight, rounds=60):
    weights, best = np.ones_like(x), None
    basis = powers(x, degree)
    for _ in range(rounds):
        scale = np.sqrt(weights) * weight
        coefficients = np.linalg.lstsq(basis * scale[:, None], target * scale, rcond=None)[0]
        error = np.abs((basis @ coefficients - target) * weight)
        if best is None or error.max() < best[0]:
            best = error.max(), coefficients
        weights = np.maximum(weights * error / (weights * error).sum(), 1e-300)
    return best


def odd_rational(function, limit, top, bottom, rounds=400):
    """Fits function(x) = x * P(x^2) / Q(x^2) for |x| <= limit with the least relative error."""
    x = chebyshev(1e-4, limit)
    u, target = (x / limit) ** 2, function(x) / x
    denominator, weights, best = np.ones_like(x), np.ones_like(x), None
    for turn in range(rounds):
        scale = np.sqrt(weights) / target / np.abs(denominator)
        basis = np.concatenate([powers(u, top), -target[:, None] * powers(u, bottom)[:, 1:]], axis=1)
        c = np.linalg.lstsq(basis * scale[:, None], target * scale, rcond=None)[0]
        denominator = 1 + powers(u, bottom)[:, 1:] @ c[top + 1:]
        error = np.abs(powers(u, top) @ c[:top + 1] / denominator / target - 1)
        if best is None or error.max() < best[0]:
            best = error.max(), c
        if turn > 10:
            weights = np.maximum(weights * (error + 1e-30) / (weights * (error + 1e-30)).max(), 1e-12)
    scale = limit ** (-2.0 * np.arange(max(top, bottom) + 1))
    error, c = best
    return error, c[:top + 1] * scale[:top + 1], np.concatenate([[1], c[top + 1:] * scale[1:bottom + 1]])


def rounded_erf(top, bottom, limit=3.6, turns=100000):
    """Searches the f32 neighbours of the coefficients for the least error in f32 of gelu below 0, (|x| erf(|x| /
    sqrt(2)) + x) / 2, and twice the relative error of erf: with fused multiply-adds, with all but the last one fused,
    and with none. A candidate is dropped at the first block of numbers with a larger error, which is tried first from
    then on. Returns the error over all numbers."""
    f32, generator = np.float32, np.random.default_rng(1)
    erf_of, erfc_of = np.vectorize(math.erf), np.vectorize(math.erfc)

    def multiply_add(a, b, c, is_fused):
        return (a.astype(np.float64) * b + np.float64(c)).astype(f32) if is_fused else a * b + c

    def horner(u, coefficients, is_fused):
        result = np.full_like(u, coefficients[-1])
        for c in coefficients[-2::-1]:
            result = multiply_add(result, u, c, is_fused)
        return result

    def prepare(size):
        half = size / 2
        z = half * f32(math.sqrt(2))
        return half, z, z * z, erf_of(z), half * erfc_of(size / math.sqrt(2))

    def error_of(c, block):
        half, z, u, true_erf, target = block
        largest = 0
        for is_fused, is_last_fused in (True, True), (True, False), (False, False):
            quotient = horner(u, np.concatenate([[f32(1)], c[len(top):]]), is_fused)
            erf = z * horner(u, c[:len(top)], is_fused) / quotient
            gelu = multiply_add(half, erf, -half, is_last_fused)
            largest = max(largest, np.abs(gelu + target).max(), 2 * np.abs(erf / true_erf - 1).max())
        return largest

    end = f32(limit * math.sqrt(2))
    every = np.arange(f32(0.75).view(np.uint32), end.view(np.uint32), dtype=np.uint32).view(f32)
    every = np.concatenate([np.linspace(1e-3, 0.75, 10000).astype(f32), every])
    generator.shuffle(every)
    blocks = [prepare(each) for each in np.array_split(every, len(every) // 8192)]
    best = np.concatenate([top, bottom[1:]]).astype(f32)
    least = max(error_of(best, block) for block in blocks)
    for _ in range(turns):
        c = best.copy()
        for i in generator.choice(len(c), generator.integers(1, 5), replace=False):
            c[i] += f32(generator.integers(-5, 6)) * np.spacing(c[i])
        largest = 0
        for i, block in enumerate(blocks):
            largest = max(largest, error_of(c, block))
            if largest >= least:
                blocks.insert(0, blocks.pop(i))
                break
        else:
            least, best = largest, c
    return least, best[:len(top)], np.concatenate([[1], best[len(top):]])


def show(name, error, *coefficients):
    print(f"{name}: error {error:.2e}")
    for row in coefficients:
        print("  {" + ", ".join(repr(float(np.float32(c))) for c in row) + "}")


def main():
    r = chebyshev(-0.3476, 0.3476)
    r = r[np.abs(r) > 1e-3]
    show("(e^r - 1 - r) / r^2", *polynomial(r, 4, (np.expm1(r) - r) / r**2, r * r * np.exp(-r)))
    r = chebyshev(-0.501, 0.501)
    r = r[np.abs(r) > 1e-3]
    error, c = polynomial(r, 4, (np.exp2(r) - 1) / r, np.abs(r) * np.exp2(-r))
    show("twice 2^r, exact for 0", error, np.concatenate([[2], 2 * c]))
    f = chebyshev(math.sqrt(0.5) - 1, math.sqrt(2) - 1)
    f = f[np.abs(f) > 1e-3]
    show("(log(1 + f) - f + f^2 / 2) / f^3", *polynomial(f, 7, (np.log1p(f) - f + f * f / 2) / f**3, np.abs(f**3 / np.log1p(f))))
    x = chebyshev(1e-3, math.pi / 4)
    u = x * x
    show("(sin(x) / x - 1) / x^2", *polynomial(u, 2, (np.sin(x) / x - 1) / u, u * x / np.sin(x)))
    show("(cos(x) - 1 + x^2 / 2) / x^4", *polynomial(u, 2, (np.cos(x) - 1 + u / 2) / u**2, u * u / np.cos(x)))
    error, top, bottom = odd_rational(np.vectorize(math.erf), 3.6, 4, 5)
    show("erf", error, top, bottom)
    show("erf, rounded for gelu", *rounded_erf(top, bottom))


if __name__ == "__main__":
    main()
