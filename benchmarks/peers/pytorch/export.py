#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the models as ONNX files: `export.py FOLDER [MODEL ...]` writes FOLDER/MODEL.FORM.onnx for every form, and for
some models FOLDER/MODEL_int8.fused.onnx, too.

Constant folding is left to the runtime, so that no weight is stored twice.
"""
import os
import sys
import warnings

os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"
import torch

from models import MODELS, make
from operators import DOMAIN, FORMS, Plain, Quantised

# Models that are also exported with int8 weights and activations.
QUANTISED = ["bert_base", "gpt2_prefill_512"]

folder = sys.argv[1]
warnings.filterwarnings("ignore")
files = [(f"{name}.{form}", name, ops) for name in MODELS for form, ops in FORMS.items()]
files += [(f"{name}_int8.fused", name, Quantised) for name in QUANTISED]
for file, name, ops in files:
    path = os.path.join(folder, f"{file}.onnx")
    if os.path.exists(path) or name not in (sys.argv[2:] or MODELS):
        continue
    module, inputs, outputs = make(name, ops)
    with torch.no_grad():
        torch.onnx.export(
            module, tuple(value for _, value in inputs), path + ".part", opset_version=17,
            custom_opsets={DOMAIN: 1} if ops is not Plain else None, do_constant_folding=False,
            input_names=[input for input, _ in inputs], output_names=outputs)  # fmt: skip
    os.replace(path + ".part", path)
    print(f"{path}: {os.path.getsize(path) >> 20} MiB", flush=True)
