// SPDX-License-Identifier: Apache-2.0
//
// node browser_test.mjs PAGE NATIVE PICTURE CHROMIUM: checks that the page in a headless Chromium has the results of
// native libraries: cross-origin isolated, with threads; not isolated; and isolated without threads. A screenshot of
// the first one is saved as PICTURE.
import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { isolated, serve } from '../../examples/web/serve.mjs';
import { Browser } from './browser.mjs';

const [page, native, picture, chromium] = process.argv.slice(2);
const prompt = 'In the beginning ', count = 150;
const wanted = JSON.parse(execFileSync(native, [prompt, count]));
const logits = wanted.pictures[1].slice(0, 10), best = logits.indexOf(Math.max(...logits));
const names = ['T-shirt', 'trouser', 'pullover', 'dress', 'coat', 'sandal', 'shirt', 'sneaker', 'bag', 'boot'];
const browser = new Browser(chromium);

/// Opens the page, and checks what it reports about threads. Returns the tab.
async function open(folder, headers, threads, rate) {
  const server = await serve(folder, 0, headers);
  const asked = new URLSearchParams({ prompt, characters: count, temperature: 0, picture: 1, threads: 2 });
  const tab = await browser.open(`http://127.0.0.1:${server.address().port}/?${asked}`, 1000, 760);
  // An isolated page moves to a separate process, during which there is none to query.
  const state = () => tab.evaluate('document.body?.dataset.state ?? "loading"').catch(() => 'loading');
  for (let tries = 0; (await state()) === 'loading' && tries < 600; ++tries)
    await new Promise(resume => setTimeout(resume, 100));
  const html = await tab.evaluate('document.documentElement.outerHTML');
  server.close();

  const inside = (pattern, what) => (html.match(pattern) ?? assert.fail(`no ${what} in ${html}`))[1];
  assert.equal(inside(/data-state="(\w+)"/, 'state'), 'ready', inside(/id="trouble">([^<]*)/, 'trouble'));
  assert.equal(inside(/id="threads">([^<]*)/, 'threads'), threads);
  assert.equal(inside(/id="written">([^<]*)/, 'text').replaceAll('\n', '|'), wanted.text);
  assert.match(inside(/id="rate">([^<]*)/, 'rate'), rate);
  assert.equal(inside(/<li[^>]*>([^ ]*)/, 'class'), names[best]);
  console.log(`${threads} ${inside(/id="rate">([^<]*)/, 'rate')}`);
  return tab;
}

const one = /^\d+ characters a second on one thread$/;
const without = await mkdtemp(`${tmpdir()}/page-`);
try {
  const tab = await open(page, isolated, '2 threads share its memory.', /^\d+ characters a second on 2 threads$/);
  await writeFile(picture, await tab.screenshot());
  await open(page, {}, 'One thread, since this page is not isolated from other origins.', one);
  await cp(page, without, { recursive: true });
  await rm(`${without}/models_threads.wasm`);
  await open(without, isolated, 'One thread, since more could not be had: there is no models_threads.wasm (404).', one);
} finally {
  browser.close();
  await rm(without, { recursive: true });
}
console.log(picture);
