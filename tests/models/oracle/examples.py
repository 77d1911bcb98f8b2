# SPDX-License-Identifier: Apache-2.0
"""The PyTorch modules of examples/: its layers, and the models that each train.py trains, or count.py counts with."""
import importlib.util
import os
import sys

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples")
sys.path.append(os.path.join(EXAMPLES, "support"))
from layers import AdditiveAttention, Mlp, MultiHeadAttention  # noqa: E402, F401


def trained(name):
    """The module examples/NAME/count.py of a model that Kiln trains, else train.py."""
    paths = [os.path.join(EXAMPLES, name, script) for script in ("count.py", "train.py")]
    spec = importlib.util.spec_from_file_location(f"{name}_trained", next(filter(os.path.exists, paths)))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
