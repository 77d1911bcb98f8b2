# SPDX-License-Identifier: Apache-2.0
"""The PyTorch modules of examples/: its layers, and the models that scripts there train or measure."""
import importlib.util
import os
import sys

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples")
sys.path.append(os.path.join(EXAMPLES, "support"))
from layers import AdditiveAttention, Mlp, MultiHeadAttention  # noqa: E402, F401


def trained(name, script="train"):
    """The module examples/NAME/SCRIPT.py."""
    spec = importlib.util.spec_from_file_location(f"{name}_{script}", os.path.join(EXAMPLES, name, f"{script}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
