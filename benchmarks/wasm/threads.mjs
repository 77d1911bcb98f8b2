// SPDX-License-Identifier: Apache-2.0
//
// node threads.mjs FOLDER: the cases of compare.mjs on one thread and on two, whose results are bit-identical. Each
// round times both, and quotients are within a round.
import { once } from 'node:events';
import { cpus } from 'node:os';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { compile, hidden, instantiate, makeWeights, median, openModel, randoms, safetensors, shapes, width } from './model.mjs';

if (!isMainThread) {
  const { module, memory, stack } = workerData, { exports } = await instantiate(module, memory);
  exports.__stack_pointer.value = stack;
  parentPort.postMessage('begun');
  exports.help(1); // until the process ends
}

const folder = process.argv[2], image = safetensors(makeWeights());
async function openAlone() {
  const { exports, initialize } = await instantiate(await compile(`${folder}/shapes_wasm32.wasm`));
  initialize();
  return openModel(exports, image);
}
async function openShared() {
  const module = await compile(`${folder}/shapes_threads.wasm`);
  const memory = new WebAssembly.Memory({ initial: 64, maximum: 8192, shared: true }); // the limits in CMakeLists.txt
  const { exports, initialize } = await instantiate(module, memory), stackBytes = 65536;
  initialize();
  const job = { module, memory, stack: exports.take(stackBytes) + stackBytes };
  await once(new Worker(new URL(import.meta.url), { workerData: job }), 'message');
  exports.use_threads(2);
  return openModel(exports, image);
}

const modules = [await openAlone(), await openShared()];
console.log(`${cpus()[0].model}; Node ${process.versions.node}\n`);
console.log('| what | rows | one thread ms | two threads ms | ratio |');
console.log('|---|--:|--:|--:|--:|');
for (const [model, rows] of shapes)
  for (const entry of ['square', 'up', 'down', 'block']) {
    const inputs = entry === 'down' ? hidden : width, outputs = entry === 'up' ? hidden : width, x = randoms(rows * inputs, 1);
    const ours = modules.map(open => open(entry, rows, x, outputs)), times = [[], []];
    for (let round = 0; round < 15; ++round)
      ours.forEach(({ run }, i) => {
        const begin = performance.now();
        for (let repeat = 0; repeat < 5; ++repeat) run();
        times[i].push((performance.now() - begin) / 5);
      });
    const [wanted, got] = ours.map(({ output }) => output());
    if (!wanted.every((value, i) => Object.is(value, got[i]))) throw new Error(`${entry}: two threads return other results`);
    const ratio = median(times[0].map((time, round) => time / times[1][round]));
    console.log(`| ${model}: ${entry} | ${rows} | ${times.map(list => median(list).toFixed(2)).join(' | ')} | ${ratio.toFixed(2)} |`);
  }
process.exit();
