// SPDX-License-Identifier: Apache-2.0
//
// node browser_test.mjs PAGE NATIVE PICTURE CHROMIUM: the page in a headless Chromium says what native libraries do;
// what it shows is saved as PICTURE.
import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { Browser } from './browser.mjs';

const [page, native, picture, chromium] = process.argv.slice(2);
const types = { html: 'text/html', js: 'text/javascript', wasm: 'application/wasm' };
const server = createServer(async (request, response) => {
  const name = new URL(request.url, 'http://here').pathname.slice(1) || 'index.html';
  try {
    const bytes = await readFile(`${page}/${name}`);
    response.writeHead(200, { 'Content-Type': types[name.split('.').pop()] ?? 'application/octet-stream' }).end(bytes);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise(ready => server.listen(0, '127.0.0.1', ready));

const prompt = 'In the beginning ', count = 150;
const wanted = JSON.parse(execFileSync(native, [prompt, count]));
const asked = new URLSearchParams({ prompt, characters: count, temperature: 0, picture: 1 });
const browser = new Browser(chromium);
const tab = await browser.open(`http://127.0.0.1:${server.address().port}/?${asked}`, 1000, 760);
for (let tries = 0; (await tab.evaluate('document.body?.dataset.state ?? "loading"')) === 'loading' && tries < 600; ++tries)
  await new Promise(resume => setTimeout(resume, 100));
const html = await tab.evaluate('document.documentElement.outerHTML');
await writeFile(picture, await tab.screenshot());
browser.close();
server.close();

const inside = (pattern, what) => (html.match(pattern) ?? assert.fail(`no ${what} in ${html}`))[1];
assert.equal(inside(/data-state="(\w+)"/, 'state'), 'ready', inside(/id="trouble">([^<]*)/, 'trouble'));
assert.equal(inside(/id="written">([^<]*)/, 'text').replaceAll('\n', '|'), wanted.text);
assert.match(inside(/id="rate">([^<]*)/, 'rate'), /^\d+ characters a second$/);
const logits = wanted.pictures[1].slice(0, 10), best = logits.indexOf(Math.max(...logits));
const names = ['T-shirt', 'trouser', 'pullover', 'dress', 'coat', 'sandal', 'shirt', 'sneaker', 'bag', 'boot'];
assert.equal(inside(/<li[^>]*>([^ ]*)/, 'class'), names[best]);
console.log(`${inside(/id="rate">([^<]*)/, 'rate')}; ${picture}`);
