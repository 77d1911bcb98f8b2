// SPDX-License-Identifier: Apache-2.0
//
// Draws the kernels of the entry as a table, sorted by decreasing time.

function drawKernels() {
  const entry = entryOf(), calls = callsOf(entry);
  const most = Math.max(...calls.map(call => call.share), 1e-9);
  const head = ['kernel', hasTimes(entry) ? timeWord(entry) : '', '', 'calls', 'writes', 'work', 'memory', 'strategy'];
  const numeric = new Set([2, 3, 5, 6]);
  const rows = calls.map(call => {
    const kernel = kernelNamed.get(call.name), color = colorOfKernel(call.name);
    const cells = [
      [html('i', { class: 'dot', color }), call.name],
      hasTimes(entry) ? [html('span', { class: 'bar', color }, html('i', { style: `width:${(100 * call.share) / most}%` })), words.percent(call.share)] : '',
      call.seconds ? words.seconds(call.seconds) : '', words.count(call.times), call.step.results.join(', '),
      words.flops(call.operations), words.bytes(call.bytes), kernel.strategy,
    ];
    return html('tr', pickable(`kernel:${call.name}`),
      ...cells.map((cell, i) => html('td', { class: numeric.has(i) ? 'right' : i === 0 || i === 4 ? 'wide' : undefined }, ...[cell].flat())));
  });
  byId('kernels').replaceChildren(
    html('thead', {}, html('tr', {}, ...head.map((name, i) => html('th', { class: numeric.has(i) ? 'right' : undefined }, name)))),
    html('tbody', {}, ...rows));
  drawOthers();
}

/// Draws the kernels that no entry calls at its largest extents.
function drawOthers() {
  const called = new Set(model.entries.flatMap(entry => entry.steps.map(step => step.kernel)));
  const others = model.kernels.filter(kernel => !called.has(kernel.name));
  byId('others').replaceChildren(...(others.length ? [html('details', {},
    html('summary', {}, `${others.length} more kernels: shape-specialised variants`),
    ...others.map(kernel => html('span', { class: 'chip link', ...pickable(`kernel:${kernel.name}`) }, kernel.name)))] : []));
}
