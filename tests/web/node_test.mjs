// SPDX-License-Identifier: Apache-2.0
//
// node node_test.mjs PAGE NATIVE MODULE ...: checks that the page's models in Node have the results of native
// libraries, and the sizes of modules with one of them.
import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';

const [page, native, ...modules] = process.argv.slice(2);
// as a data URL, since Node does not import a .js file as a module by default
const script = readFileSync(`${page}/web.js`, 'base64');
const { load, Looker, Writer } = await import(`data:text/javascript;base64,${script}`);
const prompt = 'And God said, ', count = 300; // longer than the context, which then restarts
const wanted = JSON.parse(execFileSync(native, [prompt, 200]));
const exports = await load(readFileSync(`${page}/models.wasm`));

const writer = new Writer(exports, readFileSync(`${page}/char_gpt.safetensors`));
writer.begin(prompt);
let text = prompt;
for (let i = 0; i < count; ++i) text += writer.next(0);
assert.equal(text.slice(0, prompt.length + 200).replaceAll('\n', '|'), wanted.text);

const pictures = readFileSync(`${page}/pictures.bin`);
const looker = new Looker(exports, readFileSync(`${page}/fashion_vit.safetensors`));
wanted.pictures.forEach((results, n) => {
  const { shares, seen } = looker.look(Array.from(pictures.subarray(n * 784, (n + 1) * 784), x => x / 255));
  const exponents = results.slice(0, 10).map(Math.exp), sum = exponents.reduce((a, b) => a + b);
  exponents.forEach((exponent, i) => assert(Math.abs(shares[i] - exponent / sum) < 1e-5, `picture ${n}, class ${i}`));
  seen.forEach((share, i) => assert(Math.abs(share - results[10 + i]) < 1e-5, `picture ${n}, seen ${i}`));
});

assert.throws(() => new Writer(exports, new Uint8Array(100)), /safetensors/); // with an error message
const sizes = modules.map(module => statSync(module).size);
assert(sizes.every(size => size <= 160000), `one model takes ${sizes} bytes`);
console.log(`${count} characters, ${wanted.pictures.length} pictures; modules of one model take ${sizes} bytes`);
