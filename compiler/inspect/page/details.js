// SPDX-License-Identifier: Apache-2.0
//
// The panel with the details of the selection. Each element that can be selected has a `data-pick`: "kernel:NAME",
// "buffer:3", "op:7", "layer:h.{}" or "weight:NAME".

const state = { entry: 0, pick: '' };
const entryOf = () => model.entries[state.entry];
const graphOf = () => model.graphs[state.entry];
const timeWord = entry => (entry.isMeasured ? 'measured' : 'predicted');
const hasTimes = entry => entry.steps.some(step => step.seconds);

function select(pick) {
  state.pick = pick;
  for (const element of document.querySelectorAll('[data-pick]'))
    element.classList.toggle('selected', element.dataset.pick === pick);
  const [kind, name] = [pick.slice(0, pick.indexOf(':')), pick.slice(pick.indexOf(':') + 1)];
  byId('details').replaceChildren(...(describers[kind]?.(name) ?? describeModel()));
  byId('details').scrollTop = 0;
  markEdges(kind === 'op' ? Number(name) : -1);
}
const pickable = pick => ({ 'data-pick': pick, onclick: event => (event.stopPropagation(), select(pick)) });
const link = (text, pick) => html('a', { onclick: () => (select(pick), reveal(pick)) }, text);

function panel(title, kind, rows, ...more) {
  const list = html('dl', {}, ...rows.filter(([, value]) => value !== undefined && value !== '' && value.length !== 0)
    .map(([name, value]) => [html('dt', {}, name), html('dd', {}, ...[value].flat())]));
  return [html('h3', {}, title), html('p', { class: 'kind' }, kind), list, ...more];
}
const lines = texts => texts.flatMap((text, i) => (i ? [html('br'), text] : [text]));
const code = text => html('code', {}, text);

function describeModel() {
  return panel(model.name, 'Click a kernel, an op, a buffer or a weight to see its details.', [
    ['parameters', words.count(model.parameters)],
    ['weights', words.bytes(model.packedBytes)],
    ['shown for', model.target],
    ['archive for', model.targets.join(', ')],
    ['kernels', String(model.kernels.length)],
    ['peak', model.rates ? lines([`${words.flops(model.rates.operations)}/s`, `${words.bytes(model.rates.bytes)}/s copied`, model.rates.source]) : ''],
  ]);
}

/// Returns a loop nest with highlighted keywords.
function loopNest(text) {
  const pre = html('pre', {});
  for (const line of text.split('\n')) {
    const [, space, word, rest] = line.match(/^( *)(parallel for|for|produce|allocate|if|else|call|prefetch)?(.*)$/);
    const [, body, times] = rest.match(/^(.*?)(   x \d+)?$/);
    pre.append(space, word ? html('span', { class: word.startsWith('parallel') ? 'parallel' : 'keyword' }, word) : '',
      word || !body ? body : html('span', { class: 'store' }, body), times ? html('span', { class: 'times' }, times) : '', '\n');
  }
  return pre;
}

function tuned(kernel) {
  const text = { default: 'the analytic default', exact: 'measured', transferred: `transferred from ${kernel.donor}` }[kernel.provenance];
  if (kernel.gain > 1) return `${text}, ${kernel.gain.toFixed(2)} times as fast as the default`;
  return kernel.loss ? `${text}, loss ${words.percent(kernel.loss)}` : text;
}

function describeKernel(name) {
  const kernel = kernelNamed.get(name), entry = entryOf();
  const call = callsOf(entry).find(call => call.name === name);
  const rows = [['layers', lines(kernel.layers)]];
  if (call) {
    const bound = model.rates && (call.operations / model.rates.operations >= call.bytes / model.rates.bytes ? 'operations' : 'memory');
    rows.push(
      ['reads', lines(call.step.operands)], ['writes', lines(call.step.results)],
      ['calls', `${words.count(call.times)} in ${entry.name}`],
      ['work', `${words.flops(call.operations)}, ${words.bytes(call.bytes)}`],
      ['intensity', call.bytes ? `${(call.operations / call.bytes).toFixed(2)} FLOP/byte${bound ? `, bound by ${bound}` : ''}` : ''],
      ['time', call.seconds ? `${words.seconds(call.seconds)} ${timeWord(entry)}, ${words.percent(call.share)}` : ''],
      ['rate', entry.isMeasured && call.seconds ? `${words.flops(call.operations / call.seconds)}/s` : '']);
  } else rows.push(['calls', `none in ${entry.name} at ${entry.listedAt || 'its largest extents'}`]);
  rows.push(
    ['strategy', kernel.strategy],
    ['schedule', kernel.schedule.split(' ').filter(Boolean).map(word => html('span', { class: 'chip mono' }, word))],
    ['chosen', tuned(kernel)],
    ['code', words.bytes(kernel.textBytes)], ['symbol', code(kernel.symbol)]);
  const nest = kernel.loops ? html('details', {}, html('summary', {}, 'Loop nest'), loopNest(kernel.loops)) : '';
  return panel(name, `kernel: ${families[familyOfKernel(name)]}`, rows, nest);
}

function describeBuffer(number) {
  const entry = entryOf(), buffer = entry.buffers[number];
  const at = step => entry.steps[step]?.kernel || entry.steps[step]?.kind;
  return panel(`${words.bytes(buffer.bytes)} at ${words.bytes(buffer.offset)}`, `buffer ${number} of ${entry.name}`, [
    ['holds', lines(buffer.values)],
    ['offset', `${words.count(buffer.offset)} bytes`], ['size', `${words.count(buffer.bytes)} bytes`],
    ['from', `step ${buffer.first}: ${at(buffer.first)}`], ['to', `step ${buffer.last}: ${at(buffer.last)}`],
  ]);
}

/// Returns the kernel calls of this layer and of the layers in it.
const stepsOfLayer = layer => entryOf().steps.filter(step => step.kernel && `${step.layer}.`.startsWith(`${layer}.`));
const kernelLinks = layer => [...new Set(stepsOfLayer(layer).map(step => step.kernel))]
  .flatMap(name => [link(name, `kernel:${name}`), html('br')]);
const weightsOfLayer = layer => model.weights.filter(weight => weight.name.startsWith(`${layer}.`));
const bytesOf = weights => weights.reduce((sum, weight) => sum + weight.bytes, 0);

function describeOp(number) {
  const { nodes } = graphOf(), node = nodes[number];
  const users = nodes.flatMap((user, i) => (user.operands.some(edge => edge.node === Number(number)) ? [i] : []));
  const named = i => link(`${nodes[i].op} ${words.layer(nodes[i].layer)}`, `op:${i}`);
  return panel(node.op, node.layer ? `op of ${words.layer(node.layer)}` : 'op', [
    ...node.attributes,
    ['inputs', node.operands.filter(edge => edge.node >= 0).flatMap(edge => [named(edge.node), html('br'), code(edge.type), html('br')])],
    ['weights', node.operands.filter(edge => edge.weight).flatMap(edge => [words.layer(edge.weight), html('br'), code(edge.type), html('br')])],
    ['results', node.results.flatMap(type => [code(type), html('br')])],
    ['read by', users.flatMap(i => [named(i), html('br')])],
    ['kernels', node.layer ? kernelLinks(node.layer) : ''],
  ]);
}

function describeLayer(layer) {
  const weights = weightsOfLayer(layer);
  return panel(words.layer(layer), 'layer', [
    ['weights', weights.length ? `${words.bytes(bytesOf(weights))} in ${weights.length} tensors` : 'none'],
    ['time', hasTimes(entryOf()) ? `${words.percent(stepsOfLayer(layer).reduce((sum, step) => sum + step.share, 0))} ${timeWord(entryOf())}` : ''],
    ['kernels', kernelLinks(layer)],
  ]);
}

function describeWeight(name) {
  const weight = model.weights.find(weight => weight.name === name);
  return panel(words.layer(name), 'weight', [
    ['type', code(weight.type)], ['stored as', weight.stored], ['copies', weight.copies > 1 ? `${weight.copies}, one per layer` : ''],
    ['bytes', `${words.bytes(weight.bytes)}, ${words.percent(weight.bytes / bytesOf(model.weights))} of all`],
  ]);
}

const describers = { kernel: describeKernel, buffer: describeBuffer, op: describeOp, layer: describeLayer, weight: describeWeight };
