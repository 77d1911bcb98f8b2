#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden outputs of tests/models: `make_goldens.py [MODEL ...]`.

Needs Debian 12's python3-torch and python3-numpy, 3 GB, and about a minute on two cores for all of them. README.md
states the files' format.

1. Weights and inputs come from counter.py, one layer at a time.
2. Every layer is PyTorch's own module where it has one, else written out of its tensor operations, run in f64 and in f32.
3. Samples of the f64 outputs, rounded to f32, are the goldens. How far PyTorch's f32 is from f64, max|f32 - f64| /
   max|f64| over the whole output, is printed and kept in the file.
"""
import argparse

import torch

import attention
import forecaster
import gradients
import images
import llama
import recurrent
import sequences
import spotter
import transformers

MODELS = (
    transformers.gpt2, transformers.bert_base, transformers.masked_words, transformers.transformer_base,
    transformers.transformer_blocks, transformers.vit_base, transformers.deit_tiny,
    attention.worked_attention, attention.attention_layers, llama.llama, images.small_cnn,
    images.swin, images.detr, images.mvit, forecaster.forecaster, gradients.gradients, recurrent.recurrent, sequences.names, sequences.captions, sequences.char_lstm, spotter.spotter,
)  # fmt: skip


def main():
    models = {f.__name__: f for f in MODELS}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(models))
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with torch.no_grad():
        for name in args.models or models:
            print(f"{name}: {models[name].__doc__}")
            models[name]()


if __name__ == "__main__":
    main()
