#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a byte-pair vocabulary (Sennrich et al. 2016) on the King James Bible and writes it as a tokenizer.json.

Two kinds, in the layouts that published models have:

    python3 train_tokenizer.py bytes FILE       # GPT-2, Llama 3: a token is a sequence of bytes
    python3 train_tokenizer.py characters FILE  # Llama 2, TinyLlama: of characters, a space is "▁"; others are bytes

Debian's bible-kjv and the standard library are all it needs; a run takes some seconds.

1. The text is cut into words, each with the space before it. A merge never crosses the border of one.
2. A word begins as its bytes or characters. Again and again the pair that is most frequent over all words becomes one
   symbol; of equally frequent ones the first in order of text. Its rank is the number of merges before it.
3. Words that have the pair are found by an index, so a merge costs what it changes.

`Encoder` turns text into tokens for the training scripts; programs have support/tokenizer.h.
"""
import argparse
import collections
import json
import re

from king_james import read_text, split

SIZE = 2000
BYTES_WORD = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?[^\s\w]+|\s+(?!\S)|\s+")
CHARACTERS_WORD = re.compile(r"▁?(?:[^\W\d_▁]+|\d|[^\w▁])|▁+")


def byte_characters():
    """Returns the printable character of each byte: itself if it is printable, else one after Latin-1."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {byte: chr(byte) for byte in shown}
    rest = (byte for byte in range(256) if byte not in table)
    table.update({byte: chr(256 + i) for i, byte in enumerate(rest)})
    return table


def merges_of(counts, wanted):
    """Returns up to `wanted` pairs, in order of rank; `counts` has the frequency of each word, a tuple of symbols."""
    words = [(list(word), count) for word, count in sorted(counts.items())]
    pairs, index = collections.Counter(), collections.defaultdict(set)
    for i, (word, count) in enumerate(words):
        for pair in zip(word, word[1:]):
            pairs[pair] += count
            index[pair].add(i)
    merges = []
    while len(merges) < wanted and pairs:
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        if pairs[best] < 2:
            break
        merges.append(best)
        for i in index.pop(best):
            word, count = words[i]
            for pair in zip(word, word[1:]):
                pairs[pair] -= count
                if not pairs[pair]:
                    del pairs[pair]
            at = 0
            while at + 1 < len(word):
                if (word[at], word[at + 1]) == best:
                    word[at : at + 2] = ["".join(best)]
                at += 1
            for pair in zip(word, word[1:]):
                pairs[pair] += count
                index[pair].add(i)
    return merges


def model_of(vocabulary, merges, **options):
    return {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, **options,
        "vocab": {token: i for i, token in enumerate(vocabulary)}, "merges": merges,
    }  # fmt: skip


def special(i, content):
    return {
        "id": i, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
        "special": True,
    }  # fmt: skip


def of_bytes(text):
    table = byte_characters()
    words = collections.Counter(BYTES_WORD.findall(text))
    counts = {tuple(table[byte] for byte in word.encode()): n for word, n in words.items()}
    alphabet = [table[byte] for byte in sorted(table, key=lambda byte: table[byte])]
    merges = merges_of(counts, SIZE - len(alphabet) - 1)
    vocabulary = [*alphabet, *map("".join, merges), "<|endoftext|>"]
    stage = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [special(len(vocabulary) - 1, "<|endoftext|>")],
        "normalizer": None, "pre_tokenizer": stage, "post_processor": stage, "decoder": stage,
        "model": model_of(vocabulary, [list(pair) for pair in merges]),
    }  # fmt: skip


def of_characters(text):
    words = collections.Counter()
    for line in text.splitlines():
        words.update(CHARACTERS_WORD.findall("▁" + line.replace(" ", "▁")))
    alphabet = sorted({character for word in words for character in word})
    first = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    turns = ["<|im_start|>", "<|im_end|>"]  # around each turn of a conversation
    merges = merges_of({tuple(word): n for word, n in words.items()}, SIZE - len(first) - len(alphabet) - len(turns))
    specials = [special(i, content) for i, content in enumerate(first[:3])]
    specials += [special(SIZE - len(turns) + i, content) for i, content in enumerate(turns)]
    start = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    a, b = ({"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB"))
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": specials,
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": None,
        "post_processor": {"type": "TemplateProcessing", "single": [start, a], "pair": [start, a, start, b],
                           "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
            {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": model_of([*first, *map("".join, merges), *alphabet, *turns], [" ".join(pair) for pair in merges],
                          unk_token="<unk>", fuse_unk=True, byte_fallback=True),
    }  # fmt: skip


class Encoder:
    """Encodes text with a tokenizer.json of either kind, word by word; each distinct word is encoded once."""

    def __init__(self, path):
        with open(path) as file:
            model = json.load(file)["model"]
        self.vocabulary = model["vocab"]
        merges = [merge if isinstance(merge, list) else merge.split(" ") for merge in model["merges"]]
        self.ranks = {tuple(merge): rank for rank, merge in enumerate(merges)}
        self.table = None if model["byte_fallback"] else byte_characters()
        self.known = {}

    def __call__(self, text):
        if self.table:
            words = BYTES_WORD.findall(text)
        else:
            words = re.findall(CHARACTERS_WORD.pattern + "|.", "▁" + text.replace(" ", "▁"), re.DOTALL)
        return [token for word in words for token in self.tokens_of(word)]

    def tokens_of(self, word):
        if word not in self.known:
            symbols = [self.table[byte] for byte in word.encode()] if self.table else list(word)
            pairs = lambda: enumerate(zip(symbols, symbols[1:]))  # noqa: E731
            while ranked := [(self.ranks[pair], at) for at, pair in pairs() if pair in self.ranks]:
                _, at = min(ranked)
                symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
            self.known[word] = [token for symbol in symbols for token in self.of_symbol(symbol)]
        return self.known[word]

    def of_symbol(self, symbol):
        if symbol in self.vocabulary:
            return [self.vocabulary[symbol]]
        return [self.vocabulary[f"<0x{byte:02X}>"] for byte in symbol.encode()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("bytes", "characters"))
    parser.add_argument("file")
    args = parser.parse_args()
    training, _ = split(read_text())
    tokenizer = of_bytes(training) if args.kind == "bytes" else of_characters(training)
    with open(args.file, "w") as file:
        json.dump(tokenizer, file, ensure_ascii=False, indent=1)
        file.write("\n")
    print(f"{len(tokenizer['model']['vocab'])} tokens")


if __name__ == "__main__":
    main()
