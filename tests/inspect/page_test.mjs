// SPDX-License-Identifier: Apache-2.0
//
// node page_test.mjs GENERATOR MANIFEST CHROMIUM: checks the page of a small model in a headless Chromium. The page
// makes no network requests, it has no errors, it shows as many buffers as the manifest has, and clicks have their
// effects.
import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Browser } from '../web/browser.mjs';

const [generator, manifestFile, chromium] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync(manifestFile));
const target = manifest.targets[0];
const folder = mkdtempSync(join(tmpdir(), 'kiln-page-'));
const page = join(folder, 'small.html');
execFileSync(generator, ['inspect', '--target', target.target, '--html', page, '--flops', '1e11', '--bandwidth', '1e10']);

const browser = new Browser(chromium);
try {
  const { evaluate } = await browser.open(`file://${page}`, 1400, 900);
  const ask = async expression => {
    const value = await evaluate(expression);
    assert.equal(await evaluate('document.body.dataset.error'), undefined, expression);
    return value;
  };
  for (let tries = 0; (await evaluate('document.body?.dataset.state')) !== 'ready' && tries < 100; ++tries)
    await new Promise(resume => setTimeout(resume, 100));
  assert.equal(await ask('document.body.dataset.state'), 'ready');

  // Each entry has its buffers, its calls and its kernels.
  const { entries } = target;
  assert.equal(await ask(`document.querySelectorAll('#entries button').length`), entries.length);
  for (const [i, entry] of entries.entries()) {
    await ask(`document.querySelectorAll('#entries button')[${i}].click()`);
    const kernels = new Set(entry.steps.flatMap(step => step.kernel ?? []));
    assert(entry.buffers.length > 0 && kernels.size > 0, entry.name);
    assert.equal(entry.steps.at(-1).kind, 'return');
    const loop = entry.steps.find(step => step.kind === 'loop');
    assert.equal(loop.times, 2, 'layers');
    assert.equal(entry.steps[entry.steps.indexOf(loop) + 1].times, 2, 'a kernel of the layers');
    for (const buffer of entry.buffers) assert(buffer.first <= buffer.last && buffer.last < entry.steps.length);
    assert.equal(await ask(`document.querySelectorAll('#plan rect.buffer').length`), entry.buffers.length, entry.name);
    assert.equal(await ask(`document.querySelectorAll('#kernels tbody tr').length`), kernels.size, entry.name);
  }

  // A layer is folded until it is clicked.
  await ask(`document.querySelectorAll('#entries button')[0].click()`);
  const visible = `[...document.querySelectorAll('#graph .node')].filter(node => node.offsetParent).length`;
  const folded = await ask(visible);
  assert.equal(await ask(`document.querySelector('#graph .head b').textContent`), 'layers');
  await ask(`document.querySelector('#graph .head').click()`);
  assert((await ask(visible)) > folded, 'a click unfolds the layer');
  assert.match(await ask(`document.querySelector('#details').textContent`), /layers\.\*/);
  assert((await ask(`document.querySelectorAll('#graph path').length`)) > 0, 'residual arcs');
  await ask(`document.querySelector('#graph .head').click()`);
  assert.equal(await ask(visible), folded, 'another one folds it');

  // A kernel shows all its details.
  const row = `document.querySelector('#kernels tbody tr')`;
  const name = await ask(`${row}.cells[0].textContent`);
  await ask(`${row}.click()`);
  assert.equal(await ask(`document.querySelector('#details h3').textContent`), name);
  const { schedule } = target.kernels.find(kernel => kernel.name === name);
  const details = await ask(`document.querySelector('#details').textContent`);
  for (const word of schedule.split(' ')) assert(details.includes(word), `${word} is not in ${details}`);
  assert.match(await ask(`document.querySelector('#details pre').textContent`), /for .* in \[/);

  // The search finds a weight.
  await ask(`byId('search').value = 'layers fc1 weight'; byId('search').dispatchEvent(new Event('input'))`);
  await ask(`document.querySelector('#found li.chosen').dispatchEvent(new Event('pointerdown'))`);
  assert.equal(await ask(`document.querySelector('#details .kind').textContent`), 'weight');

  assert.equal(await ask(`performance.getEntriesByType('resource').length`), 0, 'the page needs nothing else');
  console.log(`${page}: ${readFileSync(page).length} bytes, ${entries.length} entries`);
} finally {
  browser.close();
  rmSync(folder, { recursive: true });
}
