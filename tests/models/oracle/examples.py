# SPDX-License-Identifier: Apache-2.0
"""The PyTorch modules of examples/: its layers, and the models of each count.py."""
import importlib.util
import os
import sys

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples")
sys.path.append(os.path.join(EXAMPLES, "support"))
from layers import AdditiveAttention, EncoderBlock, Mlp, MultiHeadAttention  # noqa: E402, F401


def trained(name):
    """Returns the module examples/NAME/count.py."""
    spec = importlib.util.spec_from_file_location(f"{name}_count", os.path.join(EXAMPLES, name, "count.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
