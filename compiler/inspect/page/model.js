// SPDX-License-Identifier: Apache-2.0
//
// The inspection, and functions that all parts of the page share: elements, number formats, colours and tooltips.
'use strict';
window.addEventListener('error', event => {
  document.body.dataset.error = event.message;
  document.getElementById('details').textContent = `Error in this page: ${event.message}`;
});

const model = JSON.parse(document.getElementById('model').textContent);
const byId = id => document.getElementById(id);
const kernelNamed = new Map(model.kernels.map(kernel => [kernel.name, kernel]));

function make(space, tag, attributes, children) {
  const element = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'color') element.style.setProperty('--color', value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter(child => child !== undefined && child !== ''));
  return element;
}
const html = (tag, attributes, ...children) => make(null, tag, attributes, children);
const svg = (tag, attributes, ...children) => make('http://www.w3.org/2000/svg', tag, attributes, children);

/// Formats the value with three digits in the largest unit of which it has at least one.
function inUnits(value, step, units) {
  let unit = 0;
  for (; unit + 1 < units.length && value >= step; ++unit) value /= step;
  const digits = value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit]}`;
}
const words = {
  bytes: value => inUnits(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']),
  flops: value => inUnits(value, 1000, ['FLOP', 'kFLOP', 'MFLOP', 'GFLOP', 'TFLOP']),
  seconds: value => inUnits(value * 1e9, 1000, ['ns', 'µs', 'ms', 's']),
  count: value => value.toLocaleString('en-US'),
  percent: value => `${(100 * value).toFixed(1)} %`,
  layer: name => name.replaceAll('{}', '*'),
};

const families = {
  product: 'matrix products', attention: 'attention', reduction: 'norms and reductions', lookup: 'look-ups',
  pointwise: 'elementwise', movement: 'data movement', host: 'host code',
};
const patterns = [
  ['product', /^(linear|matmul|conv|logits|lora)/], ['attention', /^attention/],
  ['reduction', /(norm|softmax|reduce|sum|mean|max|pool|loss)/],
  ['lookup', /(embedding|gather|positions|sinusoid|rotary)/],
  ['movement', /^(copy|reshape|transpose|slice|concat|expand|pad|roll|flip|state|append|store|last|split|window|repeat)/],
  ['host', /^(input|output)$/],
];
/// Returns the family of an op, or of a kernel that is named after an op.
const familyOfOp = op => (patterns.find(([, pattern]) => pattern.test(op)) ?? ['pointwise'])[0];
const strategies = {
  contraction: 'product', skinny_gemm: 'product', convolution: 'product', winograd: 'product', attention: 'attention',
  one_query: 'attention', row_reduction: 'reduction', rows: 'reduction',
};
const familyOfKernel = name => strategies[kernelNamed.get(name)?.strategy] ?? familyOfOp(name);
const colorOfOp = op => `var(--${familyOfOp(op)})`;
const colorOfKernel = name => `var(--${familyOfKernel(name)})`;

/// The tooltip next to the pointer.
const tip = {
  on: text => ({
    onpointermove: event => {
      const box = byId('tip');
      box.hidden = false;
      box.textContent = typeof text === 'function' ? text() : text;
      box.style.left = `${Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 10)}px`;
      box.style.top = `${Math.min(event.clientY + 16, innerHeight - box.offsetHeight - 10)}px`;
    },
    onpointerleave: () => (byId('tip').hidden = true),
  }),
};

/// Returns the total of each kernel's calls in an entry.
function callsOf(entry) {
  const calls = new Map();
  for (const step of entry.steps) {
    if (!step.kernel) continue;
    const bytes = step.bytesRead + step.bytesWritten;
    const all = calls.get(step.kernel) ?? { name: step.kernel, step, layers: new Set(), times: 0, operations: 0, bytes: 0, seconds: 0, share: 0 };
    all.layers.add(step.layer);
    all.times += step.times;
    all.operations += step.times * step.operations;
    all.bytes += step.times * bytes;
    all.seconds += step.seconds ?? 0;
    all.share += step.share;
    calls.set(step.kernel, all);
  }
  return [...calls.values()].sort((a, b) => b.share - a.share);
}
