# SPDX-License-Identifier: Apache-2.0
"""Text encoders: BERT and similar models."""
import json

import torch
import torch.nn.functional as F
from cases import IDS, Weights, attend, case

BERT_NAMES = {
    "layer": "encoder.layer.{}.",
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attended": "attention.output.dense",
    "attended_norm": "attention.output.LayerNorm",
    "intermediate": "intermediate.dense",
    "output": "output.dense",
    "output_norm": "output.LayerNorm",
}
DISTILBERT_NAMES = {
    "layer": "transformer.layer.{}.",
    "query": "attention.q_lin",
    "key": "attention.k_lin",
    "value": "attention.v_lin",
    "attended": "attention.out_lin",
    "attended_norm": "sa_layer_norm",
    "intermediate": "ffn.lin1",
    "output": "ffn.lin2",
    "output_norm": "output_layer_norm",
}


def encoder_rows(w, ids, prefix, names, width=32, heads=4, hidden=128, epsilon=1e-12, first=0, rows=40, segments=2):
    embeddings = prefix + "embeddings."

    def norm(x, name):
        return F.layer_norm(x, (width,), *w.norm(name, width), epsilon)

    x = w(embeddings + "word_embeddings.weight", 67, width)[torch.tensor(ids)]
    x = x + w(embeddings + "position_embeddings.weight", rows, width)[first : first + len(ids)]
    if segments:
        x = x + w(embeddings + "token_type_embeddings.weight", segments, width)[0]
    x = norm(x, embeddings + "LayerNorm")
    for i in range(2):
        layer = prefix + names["layer"].format(i)
        q, k, v = (F.linear(x, *w.linear(layer + names[part], width, width)) for part in ("query", "key", "value"))
        y = F.linear(attend(q, k, v, heads), *w.linear(layer + names["attended"], width, width))
        x = norm(x + y, layer + names["attended_norm"])
        y = F.gelu(F.linear(x, *w.linear(layer + names["intermediate"], hidden, width)))
        x = norm(x + F.linear(y, *w.linear(layer + names["output"], width, hidden)), layer + names["output_norm"])
    return x


def scores(w, rows, dense, norm, table, bias, width=32, epsilon=1e-12):
    """Returns the logits of every word for every row."""
    y = F.layer_norm(F.gelu(F.linear(rows, *w.linear(dense, width, width))), (width,), *w.norm(norm, width), epsilon)
    return F.linear(y, w(table, 67, width), w(bias, 67))


BERT = {
    "architectures": ["BertForMaskedLM"],
    "attention_probs_dropout_prob": 0.1,
    "gradient_checkpointing": False,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 128,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 40,
    "model_type": "bert",
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "transformers_version": "4.6.0.dev0",
    "type_vocab_size": 2,
    "use_cache": True,
    "vocab_size": 67,
}


def bert_words(w, ids):
    rows = encoder_rows(w, ids, "bert.", BERT_NAMES)
    w.linear("bert.pooler.dense", 32, 32)  # in the file but unused
    w.linear("cls.seq_relationship", 2, 32)
    head, table = "cls.predictions.", "bert.embeddings.word_embeddings.weight"
    return scores(w, rows, head + "transform.dense", head + "transform.LayerNorm", table, head + "bias")


case("bert", BERT, Weights(), IDS, bert_words)


def minilm_vector(w, ids):
    rows = encoder_rows(w, ids, "", BERT_NAMES)
    w.linear("pooler.dense", 32, 32)
    return F.normalize(rows.mean(0), dim=0)


case(
    "minilm",
    {**BERT, "architectures": ["BertModel"], "_name_or_path": "nreimers/MiniLM-L6-H384-uncased"},
    Weights(),
    IDS,
    minilm_vector,
    (
        (
            "modules.json",
            json.dumps(
                [
                    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
                ],
                indent=2,
            )
            + "\n",
        ),
    ),
)


def roberta_classes(w, ids):
    rows = encoder_rows(w, ids, "roberta.", BERT_NAMES, epsilon=1e-5, first=2, rows=42, segments=1)
    y = F.linear(rows[0], *w.linear("classifier.dense", 32, 32)).tanh()
    return F.linear(y, *w.linear("classifier.out_proj", 3, 32))


case(
    "roberta",
    {
        **BERT,
        "architectures": ["RobertaForSequenceClassification"],
        "bos_token_id": 0,
        "eos_token_id": 2,
        "id2label": {"0": "negative", "1": "neutral", "2": "positive"},
        "label2id": {"negative": 0, "neutral": 1, "positive": 2},
        "layer_norm_eps": 1e-05,
        "max_position_embeddings": 42,
        "model_type": "roberta",
        "pad_token_id": 1,
        "type_vocab_size": 1,
    },
    Weights(),
    IDS,
    roberta_classes,
)


def bert_tokens(w, ids):
    w.linear("bert.pooler.dense", 32, 32)
    return F.linear(encoder_rows(w, ids, "bert.", BERT_NAMES), *w.linear("classifier", 3, 32))


case(
    "bert_tokens",
    {
        **BERT,
        "_num_labels": 3,
        "architectures": ["BertForTokenClassification"],
        "id2label": {"0": "O", "1": "B-PER", "2": "I-PER"},
        "label2id": {"O": 0, "B-PER": 1, "I-PER": 2},
        "output_past": True,
    },
    Weights(),
    IDS,
    bert_tokens,
)


def distilbert_words(w, ids):
    rows = encoder_rows(w, ids, "distilbert.", DISTILBERT_NAMES, segments=0)
    w("vocab_projector.weight", 67, 32)  # stored in the file, but a copy of the embedding
    table = "distilbert.embeddings.word_embeddings.weight"
    return scores(w, rows, "vocab_transform", "vocab_layer_norm", table, "vocab_projector.bias")


case(
    "distilbert",
    {
        "activation": "gelu",
        "architectures": ["DistilBertForMaskedLM"],
        "attention_dropout": 0.1,
        "dim": 32,
        "dropout": 0.1,
        "hidden_dim": 128,
        "initializer_range": 0.02,
        "max_position_embeddings": 40,
        "model_type": "distilbert",
        "n_heads": 4,
        "n_layers": 2,
        "pad_token_id": 0,
        "qa_dropout": 0.1,
        "seq_classif_dropout": 0.2,
        "sinusoidal_pos_embds": False,
        "tie_weights_": True,
        "transformers_version": "4.10.0.dev0",
        "vocab_size": 67,
    },
    Weights(),
    IDS,
    distilbert_words,
)
