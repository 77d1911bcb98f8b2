// SPDX-License-Identifier: Apache-2.0
//
// node run_wasi.mjs PROGRAM [ARGUMENT ...]: runs a WebAssembly program with access to all files.
import { readFile } from 'node:fs/promises';
import { WASI } from 'node:wasi';
const [file, ...args] = process.argv.slice(2);
const wasi = new WASI({ version: 'preview1', args: [file, ...args], env: process.env, preopens: { '/': '/' }, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(file));
const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasi.wasiImport });
process.exitCode = wasi.start(instance);
