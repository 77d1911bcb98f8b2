// SPDX-License-Identifier: Apache-2.0
//
// node compare.mjs FOLDER PACKAGES: times GEMMs and an encoder block of BERT-base and ViT-B/16 in WebAssembly: the
// modules in FOLDER compared with ONNX Runtime Web in the npm folder PACKAGES. One thread; each round times all of
// them, and quotients are within a round.
import { createRequire } from 'node:module';
import { cpus } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { compile, heads, hidden, instantiate, makeWeights, median, openModel, randoms, safetensors, shapes,
         width } from './model.mjs';
import { Graph } from './onnx.mjs';

const [folder, packages] = process.argv.slice(2);
const require = createRequire(`${packages}/package.json`);
const ort = require('onnxruntime-web');
ort.env.wasm.numThreads = 1;
setFlagsFromString('--experimental-wasm-relaxed-simd'); // Node 20 needs this flag

const epsilon = 1e-5;

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
const open = async target => {
  const { exports, initialize } = await instantiate(await compile(`${folder}/shapes_${target}.wasm`));
  initialize();
  return openModel(exports, image);
};
const modules = [await open('wasm32'), await open('wasm32-relaxed')];
console.log(`${cpus()[0].model}; Node ${process.versions.node}; ONNX Runtime Web ${ort.env.versions.web ?? ort.env.versions.common}; one thread\n`);
console.log('| what | rows | wasm32 ms | wasm32-relaxed ms | ONNX Runtime Web ms | ratio, wasm32 | ratio, relaxed |');
console.log('|---|--:|--:|--:|--:|--:|--:|');
let worst = Infinity;
for (const [model, rows] of shapes)
  for (const entry of ['square', 'up', 'down', 'block']) {
    const inputs = entry === 'down' ? hidden : width, outputs = entry === 'up' ? hidden : width;
    const x = randoms(rows * inputs, 1);
    const ours = modules.map(open => open(entry, rows, x, outputs));
    const session = await ort.InferenceSession.create(makeGraph(entry, rows, weights), { graphOptimizationLevel: 'all' });
    const feeds = { x: new ort.Tensor('float32', x, [rows, inputs]) };
    const wanted = (await session.run(feeds)).y.data;
    for (const one of ours) {
      one.run();
      one.output().forEach((value, i) => {
        if (!(Math.abs(value - wanted[i]) <= 1e-3)) throw new Error(`${entry}: element ${i}: wrong; expected ${wanted[i]}, got ${value}`);
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
