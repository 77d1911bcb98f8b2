# SPDX-License-Identifier: Apache-2.0
# main.py WEIGHTS: uses scorer.py, which `kiln compile --shared --bindings python` wrote. numpy arrays are accepted,
# too.
import array
import sys

from scorer import Error, Model

model = Model()
try:
    model.bind("nowhere.safetensors")
except Error as error:
    print("refused:", error.status != 0)
session = model.bind(sys.argv[1]).session()
x = memoryview(array.array("f", [1, 2, 3, 4, 1, 0, 0, 0])).cast("B").cast("f", [2, 4])
y = session.forward(x)
print("scores:", *(f"{score:.0f}" for row in y.tolist() for score in row))
