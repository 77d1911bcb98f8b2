# SPDX-License-Identifier: Apache-2.0
"""Weights and inputs from a counter: every value is a function of (name, flat index) only.

tests/models/counter.h is the same generator in C++; README.md specifies it. `python3 counter.py` prints the values that
tests/models/counter_test.cpp expects.
"""
import math

import numpy as np

VERSION = 1
GOLDEN_RATIO = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def fnv1a64(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def hashes(name, start, count):
    """Returns h(name, i) for i in [start, start + count), as uint64."""
    z = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    z *= np.uint64(GOLDEN_RATIO)
    z += np.uint64(fnv1a64(name))
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def unit(h):
    """Maps hashes to doubles in [-1, 1), multiples of 2^-23."""
    return (h >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0


def center_and_scale(name, shape):
    components = name.split(".")
    if components[-1] == "score":
        return 0.0, 1.0
    if len(shape) == 1:
        return (1.0, 0.1) if components[-1] in ("weight", "running_var") else (0.0, 0.02)
    if "embedding" in name or (len(components) > 1 and components[-2] in ("wte", "wpe")):
        return 0.0, 0.05
    # Larger for queries and keys, since attention weights would all be nearly equal otherwise. Chosen so that attention
    # stays uneven in all 12 layers while PyTorch's f32 stays within 3e-6 of f64.
    gain = 20.0 if set(components) & {"q_proj", "k_proj", "query", "key", "c_attn"} else 3.0
    return 0.0, math.sqrt(gain / (shape[0] + math.prod(shape) // shape[0]))


def weight(name, shape):
    """Returns the whole parameter in f32."""
    center, scale = center_and_scale(name, shape)
    scale = float(np.float32(scale))  # 24 bits: the product with a 24-bit u is then exact, so an FMA changes nothing
    size, block = math.prod(shape), 1 << 20
    out = np.empty(size, np.float32)
    for start in range(0, size, block):
        count = min(block, size - start)
        out[start : start + count] = center + scale * unit(hashes(name, start, count))
    return out.reshape(shape)


def uniform(name, shape):
    """Returns an f32 input in [-1, 1)."""
    return unit(hashes(name, 0, math.prod(shape))).astype(np.float32).reshape(shape)


def tokens(name, shape, vocabulary):
    """Returns an i32 input in [0, vocabulary)."""
    return (hashes(name, 0, math.prod(shape)) % np.uint64(vocabulary)).astype(np.int32).reshape(shape)


def main():
    for name in ("", "a", "h.0.ln_1.weight", "tokens"):
        print(f'fnv1a64("{name}") = {fnv1a64(name):#018x}')
    for name, i in (("", 0), ("tokens", 0), ("tokens", 1), ("wte.weight", 38597375)):
        print(f'counter_hash("{name}", {i}) = {int(hashes(name, i, 1)[0]):#018x}')
    for name, shape in (
        ("wte.weight", (50257, 768)),
        ("h.0.ln_1.weight", (768,)),
        ("h.0.ln_1.bias", (768,)),
        ("h.0.attn.c_attn.weight", (768, 2304)),
        ("h.11.mlp.c_fc.weight", (768, 3072)),
        ("embeddings.word_embeddings.weight", (30522, 768)),
        ("embeddings.LayerNorm.weight", (768,)),
        ("features.0.weight", (64, 3, 3, 3)),
    ):
        values = weight(name, shape).ravel()
        print(name, shape, " ".join(f"[{i}] {float(values[i]).hex()}" for i in (0, 1, values.size - 1)))
    print("tokens", tokens("tokens", (8,), 50257).tolist())
    print("uniform", [float(v).hex() for v in uniform("x", (4,))])


if __name__ == "__main__":
    main()
