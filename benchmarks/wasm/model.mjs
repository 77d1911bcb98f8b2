// SPDX-License-Identifier: Apache-2.0
//
// The weights of spec.cpp, and modules with these weights.
import { readFileSync } from 'node:fs';
import { WASI } from 'node:wasi';

export const width = 768, hidden = 3072, heads = 12;
export const shapes = [['BERT-base', 128], ['ViT-B/16', 197]];
export const median = values => [...values].sort((a, b) => a - b)[values.length >> 1];

// SplitMix32: the same numbers in each run.
let state = 1;
function random() {
  let z = (state = (state + 0x9e3779b9) | 0);
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return ((z ^ (z >>> 15)) >>> 0) / 2 ** 31 - 1;
}
export const randoms = (count, scale) => Float32Array.from({ length: count }, () => random() * scale);

export function makeWeights() {
  const weights = {}, linear = (name, inputs, outputs) => {
    weights[`${name}.weight`] = [[outputs, inputs], randoms(inputs * outputs, Math.sqrt(3 / inputs))];
    weights[`${name}.bias`] = [[outputs], randoms(outputs, 0.1)];
  };
  linear('square', width, width), linear('up', width, hidden), linear('down', hidden, width);
  for (const part of ['q_proj', 'k_proj', 'v_proj', 'out_proj']) linear(`layer.self_attn.${part}`, width, width);
  linear('layer.mlp.fc1', width, hidden), linear('layer.mlp.fc2', hidden, width);
  for (const norm of ['norm1', 'norm2']) {
    weights[`layer.${norm}.weight`] = [[width], randoms(width, 0.1).map(x => 1 + x)];
    weights[`layer.${norm}.bias`] = [[width], randoms(width, 0.1)];
  }
  return weights;
}

export function safetensors(weights) {
  const header = {};
  let at = 0;
  for (const [name, [shape, values]] of Object.entries(weights))
    header[name] = { dtype: 'F32', shape, data_offsets: [at, (at += values.byteLength)] };
  const words = new TextEncoder().encode(JSON.stringify(header)), image = new Uint8Array(8 + words.length + at);
  new DataView(image.buffer).setBigUint64(0, BigInt(words.length), true);
  image.set(words, 8);
  for (const [name, [, values]] of Object.entries(weights))
    image.set(new Uint8Array(values.buffer), 8 + words.length + header[name].data_offsets[0]);
  return image;
}

/// Instantiates compiled WebAssembly; it has its own memory unless `memory` is given.
export async function instantiate(module, memory) {
  const wasi = new WASI({ version: 'preview1' });
  const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasi.wasiImport, env: { memory } });
  return { exports: instance.exports, initialize: () => wasi.initialize(instance) };
}
export const compile = file => WebAssembly.compile(readFileSync(file));

/// Returns the entries of an instance with these weights, as functions without arguments.
export function openModel(exports, image) {
  const put = bytes => {
    const at = exports.take(bytes.byteLength);
    new Uint8Array(exports.memory.buffer).set(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength), at);
    return at;
  };
  const weights = put(image);
  if (exports.open_model(weights, image.length) !== 0) throw new Error('the model could not be opened');
  exports.give_back(weights);
  return (entry, rows, input, outputs) => {
    const x = put(input), y = exports.take(4 * rows * outputs);
    return {
      run: () => { if (exports[entry](rows, x, y) !== 0) throw new Error(`${entry} failed`); },
      output: () => new Float32Array(exports.memory.buffer, y, rows * outputs),
    };
  };
}
