// SPDX-License-Identifier: Apache-2.0
//
// Draws the memory plan: one rectangle per buffer, from the step that first writes it to the step that last reads it,
// at its offset in the arena.

function drawMemory() {
  const entry = entryOf(), { steps, buffers } = entry;
  byId('memory-note').textContent = `${buffers.length} buffers in ${words.bytes(entry.planBytes)}; `
    + (entry.planBytes === entry.planLowerBound ? 'equal to the lower bound' : `lower bound ${words.bytes(entry.planLowerBound)}`)
    + (entry.stateBytes ? `; stored after ${words.bytes(entry.stateBytes)} of states` : '');
  if (!buffers.length) return byId('plan').replaceChildren('The arena has no buffers: all results are in the caller\'s memory or in states.');
  const left = 86, isLabelled = steps.length <= 70, top = 24, tall = 250, names = isLabelled ? 92 : 12;
  const step = Math.max(isLabelled ? 20 : 5, (1060 - left) / steps.length), width = left + step * steps.length + 8;
  const toX = at => left + step * at, toY = offset => top + tall * (1 - offset / entry.planBytes);
  const parts = [];
  for (let i = 0; i <= 4; ++i) {
    const offset = (entry.planBytes * i) / 4;
    parts.push(svg('line', { class: 'grid', x1: left, x2: width, y1: toY(offset), y2: toY(offset) }),
      svg('text', { x: left - 8, y: toY(offset) + 4, 'text-anchor': 'end' }, words.bytes(offset)));
  }
  const open = [];
  steps.forEach((each, i) => {
    if (each.kind === 'loop') open.push(i);
    if (each.kind === 'end') {
      const from = open.pop(), y = top - 8 - 9 * open.length;
      parts.push(svg('path', { class: 'roof', style: 'stroke-width:1;stroke:var(--faint)', d: `M${toX(from)} ${y + 5}v-5H${toX(i + 1)}v5` }),
        svg('text', { x: (toX(from) + toX(i + 1)) / 2, y: y - 3, 'text-anchor': 'middle' }, `${loopName(steps[from])}× ${words.count(steps[from].times)}`));
    }
    const name = each.kernel || each.kind, y = top + tall;
    const isKernel = Boolean(each.kernel);
    if (isKernel)
      parts.push(svg('rect', { class: 'pick', x: toX(i) + 1, y: y + 3, width: step - 2, height: 7, rx: 2, color: colorOfKernel(name), ...pickable(`kernel:${name}`), ...tip.on(`${name}\n${words.layer(each.layer)}`) }));
    if (isLabelled) {
      const x = toX(i) + step / 2 + 3;
      parts.push(svg('text', { x, y: y + 20, transform: `rotate(-38 ${x} ${y + 20})`, 'text-anchor': 'end', opacity: isKernel ? 1 : 0.6 }, shortName(name)));
    }
  });
  buffers.forEach((buffer, i) => {
    const writer = steps.slice(buffer.first, buffer.last + 1).find(each => each.kernel)?.kernel ?? '';
    const [x, y, wide, high] = [toX(buffer.first), toY(buffer.offset + buffer.bytes), step * (buffer.last - buffer.first + 1), (tall * buffer.bytes) / entry.planBytes];
    parts.push(svg('rect', { class: 'pick buffer', x, y, width: wide, height: Math.max(high, 1), rx: Math.min(4, high / 3), 'fill-opacity': 0.82, color: colorOfKernel(buffer.values.map(value => value.split(' ')[0]).find(name => kernelNamed.has(name)) ?? writer),
      ...pickable(`buffer:${i}`), ...tip.on(`${words.bytes(buffer.bytes)} at ${words.bytes(buffer.offset)}, steps ${buffer.first} to ${buffer.last}\n${buffer.values.join('\n')}`) }));
    const text = words.bytes(buffer.bytes);
    if (high > 15 && wide > 7 * text.length) parts.push(svg('text', { class: 'inside', x: x + wide / 2, y: y + high / 2 + 4, 'text-anchor': 'middle' }, text));
  });
  byId('plan').replaceChildren(svg('svg', { viewBox: `0 0 ${width} ${top + tall + names}`, width: Math.max(width, 0), style: 'max-width:' + (step * steps.length > 1060 ? 'none' : '100%') }, ...parts));
}

/// Shortens a name such as "linear_gelu 5 mlp.fc1" to the operation and the end of its layer's name.
function shortName(name) {
  const [, what, where] = name.match(/^(.*?)_\d+_?(.*)$/) ?? [null, name, ''];
  const text = where ? `${what.split('_')[0]} ${where.replace(/^self_attn_/, '').replaceAll('_', ' ')}` : what.replaceAll('_', ' ');
  return text.length > 20 ? `${text.slice(0, 19)}…` : text;
}
