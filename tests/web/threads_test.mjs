// SPDX-License-Identifier: Apache-2.0
//
// node threads_test.mjs PAGE MODULE: compares the page's models on threads of Node, bit for bit, with the
// single-threaded module. MODULE is the one with threads and with the loops of threads.c.
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

/// Returns two functions: the bits of logits after a prompt, after a longer one, and after each of some characters; of
/// images.
function makeModels(exports) {
  new Writer(exports, gpt); // opens the model
  const looker = new Looker(exports, vit);
  const tokens = Int32Array.from({ length: 140 }, (_, i) => (i * 29 + 7) % 63), at = exports.take(tokens.byteLength);
  new Int32Array(exports.memory.buffer, at, tokens.length).set(tokens);
  const logits = (count, known) => [...new Uint32Array(exports.memory.buffer, exports.next(at, count, known), 63)];
  const seen = picture => [...new Uint32Array(looker.look(pixels.slice(784 * picture, 784 * (picture + 1))).seen.buffer)];
  return [() => [[97, 0], [131, 97], [132, 131], [133, 132], [134, 133]].flatMap(counts => logits(...counts)),
          () => [0, 1, 2].flatMap(seen)];
}

const wanted = makeModels(await load(readFileSync(`${page}/models.wasm`))).map(answer => answer());
assert.deepEqual(wanted.map(bits => bits.length), [5 * 63, 3 * 4 * 49]);
for (const threads of [1, 2, 3]) {
  const exports = await load(readFileSync(file), threads, startHelper), helpers = workers.splice(0);
  assert.equal(helpers.length, threads - 1);
  for (let repeat = 0; repeat < 300; ++repeat)
    for (const count of [0, 1, 2, 3, 7, 64, 1000]) assert.equal(exports.mistakes_of_loop(count), 0, `a loop of ${count}`);
  for (let repeat = 0; repeat < 10; ++repeat) exports.meet();
  for (let count = 0; count < 20; ++count) assert.equal(exports.tasks_inside(count), (count * (count - 1)) / 2);

  exports.count_tasks();
  const ran = () => Array.from({ length: threads }, (_, worker) => exports.tasks_of(worker));
  makeModels(exports).forEach((answer, model) => {
    // Repeats until each thread has run tasks, which a busy machine may delay. One thread needs no executor.
    const before = ran(), idle = () => threads > 1 && ran().some((tasks, worker) => tasks === before[worker]);
    for (let repeat = 0; repeat < 3 || (repeat < 1000 && idle()); ++repeat)
      assert.deepEqual(answer(), wanted[model], `${threads} threads, model ${model}`);
    assert(!idle(), `tasks of ${threads} threads, model ${model}: ${before}, then ${ran()}`);
  });
  console.log(`${threads} threads: the same bits; tasks of each: ${ran().join(', ')}`);
  await Promise.all(helpers.map(helper => helper.terminate()));
}
await assert.rejects(load(Uint8Array.of(0, 97, 115, 109, 1, 0, 0)),
  /^Error: WebAssembly: module not accepted; expected an engine with SIMD/);
