// SPDX-License-Identifier: Apache-2.0
//
// Controls a headless Chromium with the DevTools protocol over a pipe: JSON messages, each terminated by a zero.
import { spawn } from 'node:child_process';

export class Browser {
  constructor(program) {
    this.process = spawn(program, ['--headless=new', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe'],
      { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    this.waiting = new Map();
    this.sent = 0;
    let text = '';
    this.process.stdio[4].on('data', piece => {
      const messages = (text + piece).split('\0');
      text = messages.pop();
      for (const message of messages.map(JSON.parse)) this.take(message);
    });
  }

  take({ id, result, error }) {
    const { resolve, reject } = this.waiting.get(id) ?? {};
    this.waiting.delete(id);
    error ? reject?.(new Error(error.message)) : resolve?.(result);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.sent;
    this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + '\0');
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  async open(url, width, height) {
    const { targetId } = await this.send('Target.createTarget', { url, width, height, newWindow: true });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const send = (method, params) => this.send(method, params, sessionId);
    await send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
    return {
      send,
      evaluate: async expression => (await send('Runtime.evaluate', { expression, returnByValue: true })).result.value,
      screenshot: async () => Buffer.from((await send('Page.captureScreenshot')).data, 'base64'),
    };
  }

  close() { this.process.kill(); }
}
