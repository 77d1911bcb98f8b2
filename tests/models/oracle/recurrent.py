# SPDX-License-Identifier: Apache-2.0
"""PyTorch's recurrent layers."""
import numpy as np
import torch
from torch import nn

import counter
from golden import DTYPES, Golden, Weights, both


def recurrent():
    """nn.RNN, nn.LSTM, nn.GRU: layers, directions, without biases, initial states, lengths. Whole tensors."""
    width, hidden = 5, 7
    cells = {
        "rnn": nn.RNN(width, hidden),
        "relu": nn.RNN(width, hidden, num_layers=2, nonlinearity="relu", bias=False),
        "lstm": nn.LSTM(width, hidden, num_layers=2, bidirectional=True),
        "gru": nn.GRU(width, hidden, bidirectional=True),
    }
    weights, golden = Weights(), Golden("recurrent")
    for name, cell in cells.items():
        cell.load_state_dict({key: weights(f"{name}.{key}", *value.shape) for key, value in cell.state_dict().items()})
        passes = cell.num_layers * (2 if cell.bidirectional else 1)
        for steps, batch in ((1, 1), (7, 3), (33, 1), (33, 3)):
            x = both(torch.from_numpy(counter.uniform("x", (steps, batch, width))))
            h, c = (both(torch.from_numpy(counter.uniform(state, (passes, batch, hidden)))) for state in "hc")
            lengths = torch.tensor([(steps + 1) // 2, steps, 1][:batch])
            golden.tensors[f"T{steps}B{batch}.lengths"] = lengths.numpy().astype(np.int32)
            for padded in (False, True):
                prefix, error, outputs = f"{name}{'_padded' if padded else ''}.T{steps}B{batch}", 0.0, {}
                for dtype in reversed(DTYPES):
                    initial = (h[dtype], c[dtype]) if name == "lstm" else h[dtype]
                    if padded:
                        packed = nn.utils.rnn.pack_padded_sequence(x[dtype], lengths, enforce_sorted=False)
                        y, last = cell.to(dtype)(packed, initial)
                        y, _ = nn.utils.rnn.pad_packed_sequence(y, total_length=steps)
                    else:
                        y, last = cell.to(dtype)(x[dtype])
                    outputs[dtype] = (y, *last) if name == "lstm" else (y, last)
                for key, single, reference in zip("yhc", outputs[torch.float32], outputs[torch.float64]):
                    golden.tensors[f"{prefix}.{key}"] = reference.numpy().astype(np.float32)
                    error = max(error, ((single - reference).abs().max() / reference.abs().max()).item())
                golden.metadata[f"{prefix}.torch_f32_error"] = f"{error:.2e}"
        print(f"{name:5} torch f32 error {error:.2e}", flush=True)
    golden.metadata["parameters"] = str(weights.parameters)
    golden.write()
