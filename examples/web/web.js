// SPDX-License-Identifier: Apache-2.0
//
// The two models of models.wasm, and the page around them. Nothing else is loaded but the models' weights. Node can
// import this file, too, as the tests do.

const alphabet = "\n !'(),-.:;?ABCDEFGHIJKLMNOPQRSTUVWYZabcdefghijklmnopqrstuvwxyz";
const context = 256, classes = 10, heads = 4, grid = 7, side = 28;
const names = ['T-shirt', 'trouser', 'pullover', 'dress', 'coat', 'sandal', 'shirt', 'sneaker', 'bag', 'boot'];

/// The module, from its bytes. It asks its host for nothing but, at its end, to stop.
export async function load(bytes) {
  const stop = name => () => { throw new Error(`the module called ${name}`); };
  const module = await WebAssembly.compile(bytes);
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) (imports[from] ??= {})[name] = stop(name);
  const { exports } = await WebAssembly.instantiate(module, imports);
  exports._initialize?.();
  return exports;
}

/// Gives a file to one of the open_ functions, whose memory it is only as long as that needs it.
function open(exports, name, bytes) {
  const at = exports.take(bytes.length);
  if (!at) throw new Error(`no memory for ${bytes.length} bytes`);
  new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
  const status = exports[name](at, bytes.length);
  exports.give_back(at);
  if (status) throw new Error(reason(exports));
}

function reason(exports) {
  const bytes = new Uint8Array(exports.memory.buffer, exports.reason());
  return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
}

/// Writes a text on, a character a call.
export class Writer {
  constructor(exports, weights) {
    this.exports = exports;
    open(exports, 'open_writer', weights);
    this.at = exports.take(4 * context);
  }

  begin(prompt) {
    this.tokens = [...prompt].map(character => alphabet.indexOf(character)).filter(token => token >= 0);
    if (!this.tokens.length) this.tokens = [alphabet.indexOf('\n')];
    this.known = this.first = 0;
  }

  /// The next character: the likeliest if the temperature is 0, or drawn by `random`, which gives numbers in [0, 1).
  next(temperature, random = Math.random) {
    // The context is the text from `first` on. When it is full, it begins anew with its second half.
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

/// Says what is on a picture of 28 x 28 numbers from 0 to 1, and where each head looked.
export class Looker {
  constructor(exports, weights) {
    this.exports = exports;
    open(exports, 'open_looker', weights);
    this.at = exports.take(4 * side * side);
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

// --- The page ---------------------------------------------------------------------------------------------------------

const byId = id => document.getElementById(id);
const fetched = async name => new Uint8Array(await (await fetch(name)).arrayBuffer());

/// Repeatable numbers in [0, 1), for ?seed=N (Marsaglia's xorshift32).
function seeded(seed) {
  let state = seed || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

async function write(writer, prompt, count, temperature, random) {
  const output = byId('written');
  output.textContent = prompt;
  writer.begin(prompt);
  let spent = 0, shown = performance.now();
  for (let i = 0; i < count; ++i) {
    const begun = performance.now();
    output.textContent += writer.next(temperature, random);
    spent += performance.now() - begun;
    if (performance.now() - shown > 50) { // lets the page be drawn
      await new Promise(resume => setTimeout(resume));
      shown = performance.now();
    }
  }
  byId('rate').textContent = `${Math.round(1000 * count / spent)} characters a second`;
}

/// A picture in grey, and above it what is seen, in red.
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

function show(looker, picture) {
  const { shares, seen } = looker.look(picture);
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

async function start() {
  const asked = new URLSearchParams(location.search);
  const exports = await load(await fetched('models.wasm'));
  const [writer, looker, pictures] = await Promise.all([
    fetched('char_gpt.safetensors').then(weights => new Writer(exports, weights)),
    fetched('fashion_vit.safetensors').then(weights => new Looker(exports, weights)), fetched('pictures.bin')]);
  const picture = i => Array.from(pictures.slice(i * side * side, (i + 1) * side * side), x => x / 255);
  const count = pictures.length / (side * side);
  for (let i = 0; i < count; ++i) {
    const small = document.createElement('canvas');
    small.width = small.height = 56;
    draw(small, picture(i));
    small.onclick = () => show(looker, picture(i));
    byId('choice').append(small);
  }
  if (asked.has('prompt')) byId('prompt').value = asked.get('prompt');
  if (asked.has('temperature')) byId('temperature').value = asked.get('temperature');
  const random = asked.has('seed') ? seeded(Number(asked.get('seed'))) : Math.random;
  const again = async () => {
    byId('write').disabled = true;
    await write(writer, byId('prompt').value, Number(asked.get('characters') ?? 400), Number(byId('temperature').value), random);
    byId('write').disabled = false;
  };
  byId('write').onclick = again;
  show(looker, picture(Number(asked.get('picture') ?? 0)));
  await again();
  document.body.dataset.state = 'ready';
}

if (typeof document !== 'undefined')
  start().catch(error => {
    byId('trouble').textContent = error.message;
    document.body.dataset.state = 'failed';
  });
