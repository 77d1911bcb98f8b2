// SPDX-License-Identifier: Apache-2.0
//
// node take_pictures.mjs PAGE CHROMIUM FOLDER [dark]: takes the pictures of docs/inspect.md, from the page of char_gpt;
// then pngquant --quality 80-98 --strip compresses them.
import { writeFile } from 'node:fs/promises';
import { Browser } from '../web/browser.mjs';

const [page, chromium, folder, scheme] = process.argv.slice(2);
const browser = new Browser(chromium);
const pause = milliseconds => new Promise(resume => setTimeout(resume, milliseconds));
const tab = await browser.open(`file://${page}`, 1400, 940);
if (scheme === 'dark') await tab.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: 'dark' }] });
const take = async (name, ...steps) => {
  for (const step of steps) await tab.evaluate(step);
  await pause(400);
  await writeFile(`${folder}/${name}.png`, await tab.screenshot());
};
await pause(800);
const linear = `[...document.querySelectorAll('#kernels tbody tr')].find(row => row.textContent.includes('linear_2_'))`;
await take('inspect', `${linear}.click()`, `document.querySelector('#details details')?.setAttribute('open', '')`);
await take('inspect_graph', `document.querySelector('#graph .head').click()`,
  `document.querySelector('#memory').scrollIntoView()`, `scrollBy(0, -70)`);
browser.close();
