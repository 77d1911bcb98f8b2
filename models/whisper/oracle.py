# SPDX-License-Identifier: Apache-2.0
"""Whisper: a sound, its log-mel frames, and PyTorch's results for it."""
import json
import math
import struct

import torch
import torch.nn.functional as F
from cases import Weights, case, counter

RATE, BINS, ROWS, LONGEST = 16000, 80, 8, 12
WAVE_SAMPLES = 2 * 160 * ROWS + 900  # a window, and a part of one


def wave():
    """Returns three amplitude-modulated tones, and some noise, as 16-bit samples."""
    t = torch.arange(WAVE_SAMPLES).double() / RATE
    noise = torch.from_numpy(counter.uniform("noise", (WAVE_SAMPLES,))).double()
    x = sum(a * torch.sin(2 * math.pi * f * t) for a, f in ((0.4, 220.0), (0.2, 1730.0), (0.1, 5100.0)))
    x = x * torch.sin(2 * math.pi * 9 * t).abs() + 0.01 * noise
    return (x * 32767).round().short()


def wave_file(samples):
    data = b"".join(int(x).to_bytes(2, "little", signed=True) for x in samples)
    form = struct.pack("<HHIIHH", 1, 1, RATE, 2 * RATE, 2, 16)
    extra = b"LIST" + struct.pack("<I", 3) + b"abc\0"  # of odd size, to be skipped
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + extra + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def log_mel(samples):
    """Returns [BINS, frames] of a window of samples: the Fourier transform by definition, mel triangles by corners
    (Slaney)."""
    x = F.pad(samples[None, None], (200, 200), mode="reflect")[0, 0].unfold(0, 400, 160)[:-1]
    x = x * (0.5 - 0.5 * torch.cos(2 * math.pi * torch.arange(400).double() / 400))
    turns = torch.outer(torch.arange(201), torch.arange(400)).double() * (2 * math.pi / 400)
    power = (x @ turns.cos().T).square() + (x @ turns.sin().T).square()

    linear, octave = 200 / 3, math.log(6.4) / 27  # Hz and, beyond 1 kHz, logarithm of one step of the scale
    mels = torch.linspace(0, 15 + math.log(8) / octave, BINS + 2, dtype=torch.float64)
    corners = torch.where(mels < 15, mels * linear, 1000 * torch.exp((mels - 15) * octave))
    hertz = torch.linspace(0, RATE / 2, 201, dtype=torch.float64)[:, None]
    rise = (hertz - corners[:-2]) / corners.diff()[:-1]
    fall = (corners[2:] - hertz) / corners.diff()[1:]
    filters = torch.minimum(rise, fall).clamp(min=0) * 2 / (corners[2:] - corners[:-2])
    x = (power @ filters).clamp(min=1e-10).log10().T
    return (torch.maximum(x, x.max() - 8) + 4) / 4


def windows():
    size, samples = 320 * ROWS, wave().double() / 32768
    return [F.pad(part, (0, size - len(part))) for part in samples.split(size)]


def whisper_attention(w, x, memory, name, heads, causal=False):
    width = x.shape[-1]
    q = F.linear(x, *w.linear(name + ".q_proj", width, width))
    k = F.linear(memory, *w.linear(name + ".k_proj", width, width, bias=False))
    v = F.linear(memory, *w.linear(name + ".v_proj", width, width))
    q, k, v = (y.reshape(len(y), heads, -1).transpose(0, 1) for y in (q, k, v))
    scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores + torch.full(scores.shape[1:], -math.inf).double().triu(1)
    y = (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)
    return F.linear(y, *w.linear(name + ".out_proj", width, width))


def whisper_blocks(w, x, part, heads, hidden, memory=None):
    width = x.shape[-1]

    def norm(x, name):
        return F.layer_norm(x, (width,), *w.norm(name, width))

    for i in range(2):
        layer = f"model.{part}.layers.{i}."
        y = norm(x, layer + "self_attn_layer_norm")
        x = x + whisper_attention(w, y, y, layer + "self_attn", heads, causal=memory is not None)
        if memory is not None:
            y = norm(x, layer + "encoder_attn_layer_norm")
            x = x + whisper_attention(w, y, memory, layer + "encoder_attn", heads)
        y = F.gelu(F.linear(norm(x, layer + "final_layer_norm"), *w.linear(layer + "fc1", hidden, width)))
        x = x + F.linear(y, *w.linear(layer + "fc2", width, hidden))
    return norm(x, f"model.{part}.layer_norm")


def whisper_memory(w, samples):
    x, name = log_mel(samples)[None], "model.encoder."
    x = F.gelu(F.conv1d(x, w(name + "conv1.weight", 32, BINS, 3), w(name + "conv1.bias", 32), padding=1))
    x = F.gelu(F.conv1d(x, w(name + "conv2.weight", 32, 32, 3), w(name + "conv2.bias", 32), stride=2, padding=1))
    return whisper_blocks(w, x[0].T + w(name + "embed_positions.weight", ROWS, 32), "encoder", 4, 48)


def whisper_logits(w, memory, tokens):
    table = w("model.decoder.embed_tokens.weight", 67, 32)
    x = table[torch.tensor(tokens)] + w("model.decoder.embed_positions.weight", LONGEST, 32)[: len(tokens)]
    return whisper_blocks(w, x, "decoder", 2, 64, memory)[-1] @ table.T


def likeliest(scores, allowed):
    """Returns the allowed token with the largest logit, which no rounding may change."""
    first, second = sorted(((scores[token].item(), token) for token in allowed), reverse=True)[:2]
    assert first[0] - second[0] > 1e-3
    return first[1]


def whisper_tokens(w):
    """Returns the tokens that greedy search generates for each window, one after the other."""
    written = []
    for samples in windows():
        memory, made = whisper_memory(w, samples), GENERATION
        start, words = WHISPER["decoder_start_token_id"], set(range(67)) - set(made["suppress_tokens"])
        language = likeliest(whisper_logits(w, memory, [start]), made["lang_to_id"].values())
        context = [start, language, made["forced_decoder_ids"][1][1], made["no_timestamps_token_id"]]
        allowed = words - set(made["begin_suppress_tokens"])
        while len(context) <= LONGEST:
            token, allowed = likeliest(whisper_logits(w, memory, context), allowed), words
            if token == WHISPER["eos_token_id"]:
                break
            context.append(token)
        written += context[4:]
    return written


def whisper_numbers(w, given):
    if " / " not in given:
        return torch.tensor(whisper_tokens(w))
    return whisper_logits(w, whisper_memory(w, windows()[0]), [int(word) for word in given.split(" / ")[1].split()])


WHISPER = {
    "activation_dropout": 0.0,
    "activation_function": "gelu",
    "apply_spec_augment": False,
    "architectures": ["WhisperForConditionalGeneration"],
    "attention_dropout": 0.0,
    "begin_suppress_tokens": None,
    "bos_token_id": 50,
    "classifier_proj_size": 256,
    "d_model": 32,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 64,
    "decoder_layerdrop": 0.0,
    "decoder_layers": 2,
    "decoder_start_token_id": 51,
    "dropout": 0.0,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "encoder_layerdrop": 0.0,
    "encoder_layers": 2,
    "eos_token_id": 22,
    "forced_decoder_ids": [[1, 52], [2, 59], [3, 63]],
    "init_std": 0.02,
    "is_encoder_decoder": True,
    "mask_feature_length": 10,
    "mask_feature_min_masks": 0,
    "mask_feature_prob": 0.0,
    "mask_time_length": 10,
    "mask_time_min_masks": 2,
    "mask_time_prob": 0.05,
    "max_length": LONGEST,
    "max_source_positions": ROWS,
    "max_target_positions": LONGEST,
    "median_filter_width": 7,
    "model_type": "whisper",
    "num_hidden_layers": 2,
    "num_mel_bins": BINS,
    "pad_token_id": 50,
    "scale_embedding": False,
    "suppress_tokens": [14, 46, 50],
    "torch_dtype": "float32",
    "transformers_version": "4.27.0.dev0",
    "use_cache": True,
    "use_weighted_layer_sum": False,
    "vocab_size": 67,
}
GENERATION = {
    "begin_suppress_tokens": [5, 22],
    "decoder_start_token_id": 51,
    "eos_token_id": 22,
    "forced_decoder_ids": [[1, None], [2, 59]],
    "is_multilingual": True,
    "lang_to_id": {"<|de|>": 52, "<|en|>": 53, "<|fr|>": 54},
    "max_length": LONGEST,
    "no_timestamps_token_id": 63,
    "pad_token_id": 50,
    "suppress_tokens": [14, 46, 50],
    "task_to_id": {"transcribe": 59, "translate": 58},
}
PREPROCESSOR = {
    "chunk_length": 30,
    "feature_extractor_type": "WhisperFeatureExtractor",
    "feature_size": BINS,
    "hop_length": 160,
    "n_fft": 400,
    "n_samples": 320 * ROWS,
    "nb_max_frames": 2 * ROWS,
    "padding_side": "right",
    "padding_value": 0.0,
    "processor_class": "WhisperProcessor",
    "return_attention_mask": False,
    "sampling_rate": RATE,
}

# Tokenizer files as in early checkpoints: a token for each byte, the printable ones first.
SHOWN = [chr(code) for code in range(33, 127)]
OTHERS = [code for code in range(256) if not 33 <= code < 127 and not (code > 0xA0 and code != 0xAD)]
LATIN = [chr(code) for code in range(0xA1, 256) if code != 0xAD]
VOCABULARY = {name: token for token, name in enumerate(SHOWN + LATIN + [chr(256 + i) for i in range(len(OTHERS))])}


def lines(numbers):
    return "\n".join(" ".join(f"{number:.9g}" for number in row) for row in numbers.tolist()) + "\n"


case(
    "whisper",
    WHISPER,
    Weights(),
    ["speech.wav / 51", "speech.wav / 51 53 59 63 7 30", "speech.wav"],
    whisper_numbers,
    (
        ("generation_config.json", json.dumps(GENERATION, indent=2) + "\n"),
        ("log_mel.txt", lines(log_mel(windows()[1]))),
        ("merges.txt", "#version: 0.2\n"),
        ("preprocessor_config.json", json.dumps(PREPROCESSOR, indent=2) + "\n"),
        ("speech.wav", wave_file(wave().tolist())),
        ("vocab.json", json.dumps(VOCABULARY) + "\n"),
    ),
)
