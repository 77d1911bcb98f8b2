// SPDX-License-Identifier: Apache-2.0
//
// node compare.mjs FOLDER PACKAGES: contractions and an encoder block of BERT-base and ViT-B/16 in WebAssembly, of the modules
// of FOLDER beside ONNX Runtime Web of the npm folder PACKAGES. One thread; each round times all of them, and quotients are
// of one round.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cpus } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { WASI } from 'node:wasi';
import { Graph } from './onnx.mjs';

const [folder, packages] = process.argv.slice(2);
const require = createRequire(`${packages}/package.json`);
const ort = require('onnxruntime-web');
ort.env.wasm.numThreads = 1;
setFlagsFromString('--experimental-wasm-relaxed-simd'); // Node 20 has it behind that

const width = 768, hidden = 3072, heads = 12, epsilon = 1e-5;
const median = values => [...values].sort((a, b) => a - b)[values.length >> 1];

// SplitMix32: the same numbers in each run.
let state = 1;
function random() {
  let z = (state = (state + 0x9e3779b9) | 0);
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return ((z ^ (z >>> 15)) >>> 0) / 2 ** 31 - 1;
}
const randoms = (count, scale) => Float32Array.from({ length: count }, () => random() * scale);

function makeWeights() {
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

function safetensors(weights) {
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

// The entry of a module as a function of no arguments.
async function openModule(file, image) {
  const wasi = new WASI({ version: 'preview1' });
  const { instance } = await WebAssembly.instantiate(readFileSync(file), { wasi_snapshot_preview1: wasi.wasiImport });
  wasi.initialize(instance);
  const { exports } = instance;
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

function makeGraph(entry, rows, weights) {
  const inputs = entry === 'down' ? hidden : width, graph = new Graph('x', [rows, inputs]);
  const vector = name => graph.constant(...weights[name]);
  const linear = (name, x) => {
    const [[out, depth], values] = weights[`${name}.weight`], turned = new Float32Array(values.length);
    for (let n = 0; n < out; ++n) for (let k = 0; k < depth; ++k) turned[k * out + n] = values[n * depth + k];
    return graph.node('Add', [graph.node('MatMul', [x, graph.constant([depth, out], turned)]), vector(`${name}.bias`)]);
  };
  if (entry !== 'block') return graph.bytes(linear(entry, 'x'), [rows, entry === 'up' ? hidden : width]);
  const norm = (name, x) => graph.node('LayerNormalization', [x, vector(`${name}.weight`), vector(`${name}.bias`)], { axis: -1, epsilon });
  const split = (name, perm) => graph.node('Transpose', [graph.reshape(linear(`layer.self_attn.${name}`, 'x'), [rows, heads, width / heads])], { perm });
  const scale = graph.constant([1], Float32Array.of(1 / Math.sqrt(width / heads)));
  const scores = graph.node('MatMul', [graph.node('Mul', [split('q_proj', [1, 0, 2]), scale]), split('k_proj', [1, 2, 0])]);
  const mixed = graph.node('MatMul', [graph.node('Softmax', [scores], { axis: -1 }), split('v_proj', [1, 0, 2])]);
  const joined = graph.reshape(graph.node('Transpose', [mixed], { perm: [1, 0, 2] }), [rows, width]);
  const attended = norm('layer.norm1', graph.node('Add', ['x', linear('layer.self_attn.out_proj', joined)]));
  const mlp = linear('layer.mlp.fc2', graph.node('Gelu', [linear('layer.mlp.fc1', attended)]));
  return graph.bytes(norm('layer.norm2', graph.node('Add', [attended, mlp])), [rows, width]);
}

const weights = makeWeights(), image = safetensors(weights);
const modules = { wasm32: await openModule(`${folder}/shapes_wasm32.wasm`, image),
                  'wasm32-relaxed': await openModule(`${folder}/shapes_wasm32-relaxed.wasm`, image) };
console.log(`${cpus()[0].model}; Node ${process.versions.node}; ONNX Runtime Web ${ort.env.versions.web ?? ort.env.versions.common}; one thread\n`);
console.log('| what | rows | wasm32 ms | wasm32-relaxed ms | ONNX Runtime Web ms | ratio, wasm32 | ratio, relaxed |');
console.log('|---|--:|--:|--:|--:|--:|--:|');
let worst = Infinity;
for (const [model, rows] of [['BERT-base', 128], ['ViT-B/16', 197]])
  for (const entry of ['square', 'up', 'down', 'block']) {
    const inputs = entry === 'down' ? hidden : width, outputs = entry === 'up' ? hidden : width;
    const x = randoms(rows * inputs, 1);
    const ours = Object.values(modules).map(open => open(entry, rows, x, outputs));
    const session = await ort.InferenceSession.create(makeGraph(entry, rows, weights), { graphOptimizationLevel: 'all' });
    const feeds = { x: new ort.Tensor('float32', x, [rows, inputs]) };
    const wanted = (await session.run(feeds)).y.data;
    for (const one of ours) {
      one.run();
      one.output().forEach((value, i) => {
        if (!(Math.abs(value - wanted[i]) <= 1e-3)) throw new Error(`${entry}: element ${i} is ${value}, not ${wanted[i]}`);
      });
    }
    const times = [[], [], []];
    const time = async (list, run, repeats) => {
      const begin = performance.now();
      for (let i = 0; i < repeats; ++i) await run();
      list.push((performance.now() - begin) / repeats);
    };
    for (let round = 0; round < 15; ++round) {
      await time(times[0], ours[0].run, 5);
      await time(times[2], () => session.run(feeds), 5);
      await time(times[1], ours[1].run, 5);
    }
    const ratios = [0, 1].map(i => median(times[2].map((peer, round) => peer / times[i][round])));
    worst = Math.min(worst, ratios[0]);
    console.log(`| ${model}: ${entry} | ${rows} | ${times.map(list => median(list).toFixed(2)).join(' | ')} | ${ratios.map(r => r.toFixed(2)).join(' | ')} |`);
    await session.release();
  }
console.log(`\nthe least ratio of wasm32: ${worst.toFixed(2)}`);
