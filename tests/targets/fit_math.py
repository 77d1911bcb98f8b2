# SPDX-License-Identifier: Apache-2.0
"""Fits the polynomials of compiler/transforms/ExpandMath.cpp and prints their coefficients and errors.

Weighted least squares at Chebyshev points, reweighted by the error until all its peaks are equal (Lawson's method); rational functions
by the same on the linearised problem. Needs numpy."""
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
    """function(x) = x * P(x^2) / Q(x^2) for |x| <= limit, least relative error."""
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


def show(name, error, *coefficients):
    print(f"{name}: error {error:.2e}")
    for row in coefficients:
        print("  {" + ", ".join(repr(float(np.float32(c))) for c in row) + "}")


def main():
    r = chebyshev(-0.3476, 0.3476)
    error, c = polynomial(r, 5, np.exp(r), np.exp(-r))
    show("twice e^r", error, 2 * c)
    r = chebyshev(-0.501, 0.501)
    error, c = polynomial(r, 5, np.exp2(r), np.exp2(-r))
    show("twice 2^r", error, 2 * c)
    f = chebyshev(math.sqrt(0.5) - 1, math.sqrt(2) - 1)
    f = f[np.abs(f) > 1e-3]
    show("(log(1 + f) - f + f^2 / 2) / f^3", *polynomial(f, 7, (np.log1p(f) - f + f * f / 2) / f**3, np.abs(f**3 / np.log1p(f))))
    x = chebyshev(1e-3, math.pi / 4)
    u = x * x
    show("(sin(x) / x - 1) / x^2", *polynomial(u, 2, (np.sin(x) / x - 1) / u, u * x / np.sin(x)))
    show("(cos(x) - 1 + x^2 / 2) / x^4", *polynomial(u, 2, (np.cos(x) - 1 + u / 2) / u**2, u * u / np.cos(x)))
    show("tanh", *odd_rational(np.tanh, 9.0, 5, 4))
    show("erf", *odd_rational(np.vectorize(math.erf), 3.6, 4, 5))


if __name__ == "__main__":
    main()
