// SPDX-License-Identifier: Apache-2.0
//
// node serve.mjs FOLDER [PORT]: serves a page to this machine, cross-origin isolated, so that it may have threads.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

/// The headers that any server must send with each file of the page.
export const isolated = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};
const types = { html: 'text/html', js: 'text/javascript', wasm: 'application/wasm' };

/// Returns the server once it listens; port 0 is any free port.
export async function serve(folder, port, headers) {
  const server = createServer(async (request, response) => {
    const name = new URL(request.url, 'http://here').pathname.slice(1) || 'index.html';
    try {
      const bytes = await readFile(`${folder}/${name}`);
      response.writeHead(200, { ...headers, 'Content-Type': types[name.split('.').pop()] ?? 'application/octet-stream' });
      response.end(bytes);
    } catch {
      response.writeHead(404, headers).end();
    }
  });
  await new Promise((listens, fails) => server.on('error', fails).listen(port, '127.0.0.1', listens));
  return server;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder, port = 8000] = process.argv.slice(2);
  await serve(folder, port, isolated);
  console.log(`http://127.0.0.1:${port}`);
}
