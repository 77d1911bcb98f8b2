// SPDX-License-Identifier: Apache-2.0
//
// Runs the two models of models.wasm in a page. Only their weights are loaded in addition. A page that is isolated from
// other origins loads models_threads.wasm, and starts workers with this file. Node can import this file, too, as the
// tests do.

const alphabet = "\n !'(),-.:;?ABCDEFGHIJKLMNOPQRSTUVWYZabcdefghijklmnopqrstuvwxyz";
const context = 256, classes = 10, heads = 4, grid = 7, side = 28;
const names = ['T-shirt', 'trouser', 'pullover', 'dress', 'coat', 'sandal', 'shirt', 'sneaker', 'bag', 'boot'];
// The memory of models_threads.wasm, in pages of 64 KiB, and the stack size of a thread, as set in CMakeLists.txt.
const shared = { initial: 64, maximum: 1024, shared: true }, stackBytes = 131072;
const mostThreads = 4; // the models are small

/// Instantiates the module and returns its exports. It imports only functions that stop it at its end. A module with
/// threads also imports its memory; startHelper(job) starts a worker that calls help(job), and resolves once it runs.
export async function load(bytes, threads = 1, startHelper = undefined) {
  const module = await WebAssembly.compile(bytes).catch(({ message }) => {
    throw new Error(`WebAssembly: module not accepted; expected an engine with SIMD: ${message}`);
  });
  const memory = startHelper && new WebAssembly.Memory(shared), exports = await instantiate(module, memory);
  exports._initialize?.();
  if (!startHelper) return exports;
  const job = worker => ({ module, memory, worker, stack: take(exports, stackBytes) + stackBytes });
  await Promise.all(Array.from({ length: threads - 1 }, (_, i) => startHelper(job(i + 1))));
  exports.use_threads(threads);
  return exports;
}

async function instantiate(module, memory) {
  const stop = name => () => { throw new Error(`the module called ${name}`); };
  const imports = {};
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module))
    (imports[from] ??= {})[name] = kind === 'memory' ? memory : stop(name);
  return (await WebAssembly.instantiate(module, imports)).exports;
}

/// Runs a worker of the thread pool of load() until the worker is terminated; calls begun() first.
export async function help({ module, memory, worker, stack }, begun) {
  const exports = await instantiate(module, memory);
  exports.__stack_pointer.value = stack;
  begun();
  exports.help(worker);
}

function take(exports, bytes) {
  const at = exports.take(bytes);
  if (!at) throw new Error(`no memory for ${bytes} bytes`);
  return at;
}

/// Calls an open_ function with a file, whose copy in the module's memory is freed after the call.
function open(exports, name, bytes) {
  const at = take(exports, bytes.length);
  new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
  const status = exports[name](at, bytes.length);
  exports.give_back(at);
  if (status) throw new Error(reason(exports));
}

function reason(exports) {
  const bytes = new Uint8Array(exports.memory.buffer, exports.reason());
  return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
}

/// Continues a text, one character per call.
export class Writer {
  constructor(exports, weights) {
    this.exports = exports;
    open(exports, 'open_writer', weights);
    this.at = take(exports, 4 * context);
  }

  begin(prompt) {
    this.tokens = [...prompt].map(character => alphabet.indexOf(character)).filter(token => token >= 0);
    if (!this.tokens.length) this.tokens = [alphabet.indexOf('\n')];
    this.known = this.first = 0;
  }

  /// Returns the next character: the most likely one for temperature 0, otherwise sampled by `random`, in [0, 1).
  next(temperature, random = Math.random) {
    // The context is the text from `first` on. When it is full, it restarts with its second half.
    if (this.tokens.length - this.first > context) {
      this.first = this.tokens.length - context / 2;
      this.known = 0;
    }
    const text = this.tokens.slice(this.first);
    new Int32Array(this.exports.memory.buffer, this.at, text.length).set(text);
    const logits = this.exports.next(this.at, text.length, this.known);
    if (!logits) throw new Error(reason(this.exports));
    this.known = text.length;
    const token = choose(new Float32Array(this.exports.memory.buffer, logits, alphabet.length), temperature, random);
    this.tokens.push(token);
    return alphabet[token];
  }
}

function choose(logits, temperature, random) {
  const most = Math.max(...logits);
  if (temperature === 0) return logits.indexOf(most);
  const weights = Array.from(logits, logit => Math.exp((logit - most) / temperature));
  let left = random() * weights.reduce((a, b) => a + b);
  const token = weights.findIndex(weight => (left -= weight) < 0);
  return token < 0 ? logits.indexOf(most) : token;
}

/// Classifies a picture of 28 x 28 numbers from 0 to 1; also returns the attention weights of each head.
export class Looker {
  constructor(exports, weights) {
    this.exports = exports;
    open(exports, 'open_looker', weights);
    this.at = take(exports, 4 * side * side);
  }

  look(picture) {
    new Float32Array(this.exports.memory.buffer, this.at, picture.length).set(picture);
    const results = this.exports.look(this.at);
    if (!results) throw new Error(reason(this.exports));
    const all = new Float32Array(this.exports.memory.buffer, results, classes + heads * grid * grid);
    const most = Math.max(...all.slice(0, classes)), weights = Array.from(all.slice(0, classes), x => Math.exp(x - most));
    const sum = weights.reduce((a, b) => a + b);
    return { shares: weights.map(weight => weight / sum), seen: all.slice(classes) };
  }
}

async function fetched(name) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`cannot load ${name} (${response.status})`);
  return new Uint8Array(await response.arrayBuffer());
}

/// Returns a seeded generator of numbers in [0, 1), for ?seed=N (Marsaglia's xorshift32).
function seeded(seed) {
  let state = seed || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/// Both models in this thread; class Remote has the same methods and runs them in a worker.
class Models {
  async open(threads) {
    const [module, gpt, vit] = await Promise.all([threads > 1 ? 'models_threads.wasm' : 'models.wasm',
      'char_gpt.safetensors', 'fashion_vit.safetensors'].map(fetched));
    const exports = await load(module, threads, threads > 1 ? startHelper : undefined);
    this.writer = new Writer(exports, gpt);
    this.looker = new Looker(exports, vit);
  }

  async look(picture) { return this.looker.look(picture); }

  /// Calls `show` with the growing text; returns the characters per second.
  async write(prompt, count, temperature, seed, show) {
    const random = seed === null ? Math.random : seeded(Number(seed));
    let text = prompt, spent = 0, shown = performance.now();
    this.writer.begin(prompt);
    for (let i = 0; i < count; ++i) {
      const begun = performance.now();
      text += this.writer.next(temperature, random);
      spent += performance.now() - begun;
      if (performance.now() - shown > 50) {
        show(text);
        await new Promise(resume => setTimeout(resume)); // lets the page be drawn and messages arrive
        shown = performance.now();
      }
    }
    show(text);
    return 1000 * count / spent;
  }
}

// --- Workers ----------------------------------------------------------------------------------------------------------

const startWorker = name => new Worker(import.meta.url, { type: 'module', name });
const refused = event => new Error(`a worker did not start: ${event.message ?? 'its file was refused'}`);

/// Runs the models in a worker, since the main thread of a page must not block.
class Remote {
  asked = [];

  async open(threads) {
    this.worker = startWorker('models');
    this.worker.onmessage = ({ data: { id, text, result, error } }) => {
      if (text !== undefined) this.asked[id].show(text);
      else if (error !== undefined) this.asked[id].reject(new Error(error));
      else this.asked[id].resolve(result);
    };
    this.worker.onerror = event => this.asked.forEach(({ reject }) => reject(refused(event)));
    await this.ask('open', [threads]).catch(error => {
      this.worker.terminate();
      throw error;
    });
  }

  look(picture) { return this.ask('look', [picture]); }
  write(prompt, count, temperature, seed, show) { return this.ask('write', [prompt, count, temperature, seed], show); }

  ask(method, values, show) {
    return new Promise((resolve, reject) => {
      const id = this.asked.push({ resolve, reject, show }) - 1;
      this.worker.postMessage({ id, method, values });
    });
  }
}

/// Runs in the worker of a Remote: calls the models and posts the results.
function answer() {
  const models = new Models();
  addEventListener('message', async ({ data: { id, method, values } }) => {
    try {
      postMessage({ id, result: await models[method](...values, text => postMessage({ id, text })) });
    } catch ({ message }) {
      postMessage({ id, error: message });
    }
  });
}

function startHelper(job) {
  const worker = startWorker('helper');
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data: { error } }) => (error ? reject(new Error(error)) : resolve());
    worker.onerror = event => reject(refused(event));
    worker.postMessage(job);
  });
}

function beHelper() {
  addEventListener('message', ({ data: job }) =>
    help(job, () => postMessage({})).catch(({ message }) => postMessage({ error: message })), { once: true });
}

// --- The page ---------------------------------------------------------------------------------------------------------

const byId = id => document.getElementById(id);

/// Draws a picture in grey, and the attention weights over it in red.
function draw(canvas, picture, seen) {
  const scale = canvas.width / side, pen = canvas.getContext('2d'), most = seen ? Math.max(...seen) : 1;
  for (let y = 0; y < side; ++y)
    for (let x = 0; x < side; ++x) {
      const grey = 255 * picture[y * side + x];
      const share = seen ? seen[Math.floor(y / 4) * grid + Math.floor(x / 4)] / most : 0;
      pen.fillStyle = `rgb(${grey + (255 - grey) * share} ${grey * (1 - share)} ${grey * (1 - share)})`;
      pen.fillRect(x * scale, y * scale, scale + 1, scale + 1);
    }
}

async function show(models, picture) {
  const { shares, seen } = await models.look(picture);
  draw(byId('picture'), picture);
  for (let head = 0; head < heads; ++head)
    draw(byId(`head${head}`), picture, seen.slice(head * grid * grid, (head + 1) * grid * grid));
  const order = shares.map((_, i) => i).sort((a, b) => shares[b] - shares[a]).slice(0, 3);
  byId('classes').replaceChildren(...order.map(i => {
    const line = document.createElement('li');
    line.textContent = `${names[i]} ${(100 * shares[i]).toFixed(1)} %`;
    line.style.backgroundSize = `${100 * shares[i]}% 100%`;
    return line;
  }));
}

/// Opens the models on all available threads and returns the number as text, or on one; the page shows the reason.
async function openModels(asked) {
  let why = 'this page is not isolated from other origins';
  if (globalThis.crossOriginIsolated) {
    const threads = Math.min(Number(asked.get('threads') ?? navigator.hardwareConcurrency), mostThreads);
    why = asked.has('threads') ? 'its address requests one' : 'there is one core for it';
    if (threads > 1)
      try {
        const models = new Remote();
        await models.open(threads);
        byId('threads').textContent = `${threads} threads share its memory.`;
        return [models, `${threads} threads`];
      } catch ({ message }) {
        why = `no more could be started: ${message}`;
      }
  }
  const models = new Models();
  await models.open(1);
  byId('threads').textContent = `One thread, since ${why}.`;
  return [models, 'one thread'];
}

async function start() {
  const asked = new URLSearchParams(location.search);
  const [[models, threads], pictures] = await Promise.all([openModels(asked), fetched('pictures.bin')]);
  const picture = i => Array.from(pictures.slice(i * side * side, (i + 1) * side * side), x => x / 255);
  const count = pictures.length / (side * side);
  for (let i = 0; i < count; ++i) {
    const small = document.createElement('canvas');
    small.width = small.height = 56;
    draw(small, picture(i));
    small.onclick = () => show(models, picture(i));
    byId('choice').append(small);
  }
  if (asked.has('prompt')) byId('prompt').value = asked.get('prompt');
  if (asked.has('temperature')) byId('temperature').value = asked.get('temperature');
  const write = async () => {
    byId('write').disabled = true;
    const rate = await models.write(byId('prompt').value, Number(asked.get('characters') ?? 400),
      Number(byId('temperature').value), asked.get('seed'), text => (byId('written').textContent = text));
    byId('rate').textContent = `${Math.round(rate)} characters a second on ${threads}`;
    byId('write').disabled = false;
  };
  byId('write').onclick = write;
  await show(models, picture(Number(asked.get('picture') ?? 0)));
  await write();
  document.body.dataset.state = 'ready';
}

if (typeof document !== 'undefined')
  start().catch(error => {
    byId('trouble').textContent = error.message;
    document.body.dataset.state = 'failed';
  });
else if (globalThis.name === 'models') answer();
else if (globalThis.name === 'helper') beHelper();
