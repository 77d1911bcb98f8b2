// SPDX-License-Identifier: Apache-2.0
//
// Draws kernels below the machine's roofline, by arithmetic intensity and rate (Williams, Waterman and Patterson 2009).
// Kernels with predicted times are on the roofline itself.

function drawRoofline() {
  const entry = entryOf(), place = byId('roofline');
  const calls = callsOf(entry).filter(call => call.operations > 0 && call.bytes > 0 && call.seconds > 0);
  if (!model.rates || !calls.length) {
    byId('roof-note').textContent = '';
    place.replaceChildren(model.rates ? 'No kernel of this entry has arithmetic operations.' : `There are no peak rates: this machine does not support ${model.target}, and no rates were given.`);
    return;
  }
  const { operations: peak, bytes: bandwidth, source } = model.rates;
  byId('roof-note').textContent = `${words.flops(peak)}/s and ${words.bytes(bandwidth)}/s, ${source}`;
  const points = calls.map(call => ({ call, x: call.operations / call.bytes, y: call.operations / call.seconds }));
  const ridge = peak / bandwidth;
  const [x0, x1] = [Math.floor(Math.log10(Math.min(...points.map(p => p.x), ridge))), Math.ceil(Math.log10(Math.max(...points.map(p => p.x), ridge * 3)))];
  const y1 = Math.ceil(Math.log10(peak * 1.4)), y0 = Math.floor(Math.log10(Math.min(...points.map(p => p.y), bandwidth * 10 ** x0)));
  const [width, height, left, bottom, top] = [520, 330, 62, 38, 8];
  const toX = x => left + ((Math.log10(x) - x0) / (x1 - x0)) * (width - left - 14);
  const toY = y => top + ((y1 - Math.log10(y)) / (y1 - y0)) * (height - bottom - top);
  const parts = [];
  for (let x = x0; x <= x1; ++x)
    parts.push(svg('line', { class: 'grid', x1: toX(10 ** x), x2: toX(10 ** x), y1: top, y2: height - bottom }),
      svg('text', { x: toX(10 ** x), y: height - bottom + 16, 'text-anchor': 'middle' }, String(Number((10 ** x).toPrecision(1)))));
  for (let y = y0; y <= y1; ++y)
    parts.push(svg('line', { class: 'grid', x1: left, x2: width - 14, y1: toY(10 ** y), y2: toY(10 ** y) }),
      svg('text', { x: left - 7, y: toY(10 ** y) + 4, 'text-anchor': 'end' }, words.flops(10 ** y).replace('FLOP', '')));
  parts.push(svg('text', { x: (left + width) / 2, y: height - 4, 'text-anchor': 'middle' }, 'FLOP/byte'),
    svg('text', { x: 12, y: height / 2 - 10, transform: `rotate(-90 12 ${height / 2 - 10})`, 'text-anchor': 'middle' }, 'FLOP/s'));
  const floor = Math.max(10 ** x0, 10 ** y0 / bandwidth);
  parts.push(svg('path', { class: 'roof', d: `M${toX(floor)} ${toY(bandwidth * floor)}L${toX(ridge)} ${toY(peak)}H${toX(10 ** x1)}` }));
  for (const { call, x, y } of points.sort((a, b) => b.call.share - a.call.share))
    parts.push(svg('circle', { class: 'pick', cx: toX(x), cy: toY(y), r: 4 + 13 * Math.sqrt(call.share), 'fill-opacity': 0.85, color: colorOfKernel(call.name),
      ...pickable(`kernel:${call.name}`), ...tip.on(`${call.name}\n${x.toFixed(2)} FLOP/byte, ${words.flops(y)}/s\n${words.percent(call.share)} of the time, ${timeWord(entry)}`) }));
  place.replaceChildren(svg('svg', { viewBox: `0 0 ${width} ${height}`, width: '100%' }, ...parts));
}
