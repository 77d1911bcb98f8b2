# SPDX-License-Identifier: Apache-2.0
"""Reads and writes safetensors files: 8 bytes of header length, a JSON header, then the tensors' bytes."""
import json
import struct

import numpy as np

DTYPES = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8"), "I32": np.dtype("<i4")}


def write(path, tensors, metadata):
    """`tensors`: name -> f32 or i32 array; `metadata`: str -> str."""
    header, offset = {"__metadata__": metadata}, 0
    for name, array in tensors.items():
        dtype = next(key for key, value in DTYPES.items() if value == array.dtype)
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            f.write(np.ascontiguousarray(array).tobytes())


def read(path):
    """Returns (name -> array, metadata)."""
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[8 + size + begin : 8 + size + end], DTYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors, metadata
