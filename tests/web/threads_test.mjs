// SPDX-License-Identifier: Apache-2.0
//
// node threads_test.mjs PAGE MODULE: the page's models on threads of Node, beside the module that has one, to the bit. MODULE
// is the one with threads, and with loops of threads.c.
import assert from 'node:assert';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

const [page, file] = process.argv.slice(2);
const url = `data:text/javascript;base64,${readFileSync(`${page}/web.js`, 'base64')}`;
const { load, Looker, Writer } = await import(url);
const gpt = readFileSync(`${page}/char_gpt.safetensors`), vit = readFileSync(`${page}/fashion_vit.safetensors`);
const pixels = Float32Array.from(readFileSync(`${page}/pictures.bin`), x => x / 255);

const workers = [];
const script = `const { parentPort, workerData: { url, job } } = require('node:worker_threads');
  import(url).then(({ help }) => help(job, () => parentPort.postMessage('begun')));`;
function startHelper(job) {
  workers.push(new Worker(script, { eval: true, workerData: { url, job } }));
  return once(workers.at(-1), 'message');
}

function makeModels(exports) {
  const models = { writer: new Writer(exports, gpt), looker: new Looker(exports, vit) };
  const tokens = Int32Array.from({ length: 140 }, (_, i) => (i * 29 + 7) % 63), at = exports.take(tokens.byteLength);
  new Int32Array(exports.memory.buffer, at, tokens.length).set(tokens);
  /// The bits of logits behind a prompt, behind more of it, and behind each of some characters; of pictures.
  return () => {
    const bits = [], floats = (from, count) => bits.push(...new Uint32Array(exports.memory.buffer, from, count));
    [97, 131, 132, 133, 134].reduce((known, count) => (floats(exports.next(at, count, known), 63), count), 0);
    for (let picture = 0; picture < 3; ++picture)
      bits.push(...new Uint32Array(models.looker.look(pixels.slice(784 * picture, 784 * (picture + 1))).seen.buffer));
    return bits;
  };
}

const wanted = makeModels(await load(readFileSync(`${page}/models.wasm`)))();
assert.equal(wanted.length, 5 * 63 + 3 * 4 * 49);
for (const threads of [1, 2, 3]) {
  const exports = await load(readFileSync(file), threads, startHelper), helpers = workers.splice(0);
  assert.equal(helpers.length, threads - 1);
  for (let repeat = 0; repeat < 300; ++repeat)
    for (const count of [0, 1, 2, 3, 7, 64, 1000]) assert.equal(exports.mistakes_of_loop(count), 0, `a loop of ${count}`);
  for (let repeat = 0; repeat < 10; ++repeat) exports.meet();
  for (let count = 0; count < 20; ++count) assert.equal(exports.tasks_inside(count), (count * (count - 1)) / 2);

  exports.count_tasks();
  const answer = makeModels(exports);
  const ran = () => Array.from({ length: threads > 1 ? threads : 0 }, (_, worker) => exports.tasks_of(worker));
  // Until each has helped, which a machine that is busy may put off.
  for (let repeat = 0; repeat < 3 || (repeat < 500 && ran().includes(0)); ++repeat)
    assert.deepEqual(answer(), wanted, `${threads} threads`);
  assert(!ran().includes(0), `tasks of ${threads} threads: ${ran()}`);
  console.log(`${threads} threads: the same bits; tasks of each: ${ran().join(', ')}`);
  await Promise.all(helpers.map(helper => helper.terminate()));
}
await assert.rejects(load(Uint8Array.of(0, 97, 115, 109, 1, 0, 0)), /^Error: WebAssembly with SIMD is wanted here/);
