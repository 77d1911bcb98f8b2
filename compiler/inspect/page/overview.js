// SPDX-License-Identifier: Apache-2.0
//
// Draws the properties of the model, and a call of the entry as a timeline.

function drawHeader() {
  byId('name').textContent = model.name;
  byId('entries').replaceChildren(...model.entries.map((entry, i) =>
    html('button', { 'aria-current': String(i === state.entry), onclick: () => showEntry(i) }, entry.name)));
}

function drawTiles() {
  const entry = entryOf(), sum = of => entry.steps.reduce((all, step) => all + of(step), 0);
  const extents = entry.extents.map(extent => `${extent.name} ${extent.min} to ${extent.max}`).join(', ');
  const tensors = list => list.map(tensor => `${tensor.name} ${tensor.type}`).join(', ');
  byId('signature').replaceChildren(code(`${entry.name}(${tensors(entry.inputs)}) → ${tensors(entry.outputs)}`),
    ` for ${model.target}${extents ? `, ${extents}; numbers are for ${entry.listedAt || 'the largest'}` : ''}`);
  const tiles = [
    [words.count(model.parameters), 'parameters'],
    [words.bytes(model.packedBytes), 'packed weights'],
    [words.flops(sum(step => step.times * step.operations)), `of work in ${entry.name}`],
    [words.bytes(entry.arenaFixed), 'arena'],
    ...(entry.stateBytes ? [[words.bytes(entry.stateBytes), 'of the arena for states']] : []),
    ...(hasTimes(entry) ? [[words.seconds(entry.seconds), timeWord(entry)]] : []),
  ];
  byId('tiles').replaceChildren(...tiles.map(([value, name]) => html('div', { class: 'tile' }, html('b', {}, value), html('span', {}, name))));
}

/// Returns the layer's name and a space for the loop of a stack, such as "h ", and an empty string for other loops.
const loopName = step => (step.layer.endsWith('.{}') ? `${words.layer(step.layer.slice(0, -3))} ` : '');

/// Draws the steps in order, each with a width in proportion to its time; loops are brackets below.
function drawTimeline() {
  const entry = entryOf(), width = 1000, height = 34;
  byId('time-note').textContent = !hasTimes(entry) ? 'no times: neither measured nor predicted'
    : entry.isMeasured ? `measured${entry.measuredAt ? ` at ${entry.measuredAt}` : ''}` : `predicted: the longer of operations and memory at the machine's peak, ${model.rates.source}`;
  const parts = [], brackets = [], open = [];
  let at = 0;
  const weightOf = hasTimes(entry) ? step => step.share : step => (step.kernel ? 1 / entry.steps.length : 0);
  entry.steps.forEach(step => {
    const wide = width * weightOf(step);
    if (step.kind === 'loop') open.push({ at, step });
    else if (step.kind === 'end') {
      const loop = open.pop();
      brackets.push({ ...loop, to: at, depth: open.length });
    } else if (step.kernel && wide > 0) {
      const label = step.kernel.replace(/_\d+(?=_|$).*/, '').replaceAll('_', ' ');
      parts.push(svg('rect', { class: 'pick', x: at, y: 0, width: Math.max(wide, 0.7), height, rx: wide > 8 ? 3 : 0, color: colorOfKernel(step.kernel),
        ...pickable(`kernel:${step.kernel}`), ...tip.on(`${step.kernel}\n${words.layer(step.layer)}, ${step.times} calls\n${step.seconds ? `${words.seconds(step.seconds)}, ` : ''}${words.percent(step.share)}`) }));
      if (wide > 6.3 * label.length + 8) parts.push(svg('text', { class: 'inside', x: at + wide / 2, y: 21, 'text-anchor': 'middle' }, label));
    }
    at += wide;
  });
  const depth = Math.max(0, ...brackets.map(bracket => bracket.depth + 1));
  for (const { at: from, to, step, depth: level } of brackets) {
    const y = height + 6 + 22 * level, text = `${loopName(step)}× ${words.count(step.times)}`;
    parts.push(svg('path', { class: 'roof', 'stroke-width': 1, style: 'stroke-width:1;stroke:var(--faint)', d: `M${from + 1} ${y}v5H${to - 1}v-5` }),
      svg('text', { x: (from + to) / 2, y: y + 17, 'text-anchor': 'middle' }, text));
  }
  byId('timeline').replaceChildren(svg('svg', { viewBox: `0 0 ${width} ${height + 24 * depth + 2}`, width: '100%' }, ...parts));
  const used = new Set(entry.steps.filter(step => step.kernel).map(step => familyOfKernel(step.kernel)));
  byId('legend').replaceChildren(...Object.entries(families).filter(([family]) => used.has(family))
    .map(([family, name]) => html('span', {}, html('i', { class: 'dot', color: `var(--${family})` }), name)));
}
