# SPDX-License-Identifier: Apache-2.0
"""A deep averaging network."""
import torch
import torch.nn.functional as F
from cases import IDS, Weights, case


def dan_classes(w, ids):
    x = w("embedding.weight", 67, 32)[torch.tensor(ids)].mean(0)
    for i in range(2):
        x = F.linear(x, *w.linear(f"hidden.{i}.dense", 32, 32)).tanh()
    return F.linear(x, *w.linear("output", 3, 32))


case(
    "dan",
    {
        "architectures": ["DanForSequenceClassification"],
        "hidden_act": "tanh",
        "hidden_size": 32,
        "id2label": {"0": "negative", "1": "neutral", "2": "positive"},
        "model_type": "dan",
        "num_hidden_layers": 2,
        "vocab_size": 67,
        "word_dropout": 0.3,
    },
    Weights("dan."),
    IDS,
    dan_classes,
)
