// SPDX-License-Identifier: Apache-2.0
//
// Draws the ops from top to bottom, in layers that unfold. A value from the op directly above is a straight line with
// the tensor's type; a value from further away is an arc on the left.

const graph = { items: [], edges: [] };

/// Draws consecutive ops of a layer as a group. A layer with a single op is drawn as that op.
function drawGroup(numbers, depth, nodes, loops) {
  const parts = numbers.map(i => nodes[i].layer.replaceAll('.{}', '{}').split('.'));
  const elements = [];
  for (let begin = 0; begin < numbers.length;) {
    const part = parts[begin][depth];
    let end = begin + 1;
    while (part && end < numbers.length && parts[end][depth] === part) ++end;
    const inside = numbers.slice(begin, end);
    elements.push(html('div', { class: 'flow' }));
    if (part && inside.length > 1) {
      const layer = parts[begin].slice(0, depth + 1).join('.').replaceAll('{}', '.{}');
      elements.push(drawLayer(layer, part, inside, drawGroup(inside, depth + 1, nodes, loops), loops));
    } else elements.push(drawNode(inside[0], nodes[inside[0]], parts[begin].slice(depth).join('.')));
    begin = end;
  }
  return elements;
}

function drawLayer(layer, name, numbers, children, loops) {
  const [first, last] = [numbers[0], numbers[numbers.length - 1]];
  const loop = loops.filter(loop => (name.endsWith('{}') ? loop.first <= first && loop.last >= last : loop.first === first && loop.last === last))
    .sort((a, b) => a.last - a.first - (b.last - b.first))[0];
  // Count only these ops, because a layer may be called at several places.
  const ops = numbers.map(i => graphOf().nodes[i]), layers = new Set(ops.map(op => op.layer));
  const names = new Set(ops.flatMap(op => op.operands.map(edge => edge.weight)));
  const bytes = bytesOf(model.weights.filter(weight => names.has(weight.name)));
  const share = entryOf().steps.reduce((sum, step) => sum + (layers.has(step.layer) ? step.share : 0), 0);
  const head = html('div', { class: 'head', ...pickable(`layer:${layer}`) },
    html('b', {}, name.replace('{}', '')), loop ? html('span', { class: 'times' }, `× ${loop.times}`) : '',
    html('small', { class: 'right' }, [`${numbers.length} ops`, bytes && `${words.bytes(bytes)} of weights`, share && `${words.percent(share)} of the time`].filter(Boolean).join(', ')));
  const group = html('div', { class: 'group' }, head, html('div', { class: 'body' }, ...children));
  head.addEventListener('click', () => {
    group.classList.toggle('open');
    drawEdges();
  });
  graph.items.push({ element: head, numbers, group });
  return group;
}

function drawNode(number, node, layer) {
  const weights = node.operands.filter(edge => edge.weight).map(edge => `${edge.weight.replace(/^constant .*/, 'constant').split('.').pop()} ${edge.type}`);
  const name = node.op === 'input' || node.op === 'output' ? node.attributes[0][1] : layer;
  const element = html('div', { class: 'node', color: colorOfOp(node.op), ...pickable(`op:${number}`) },
    html('b', {}, node.op), html('small', {}, [name, ...weights].filter(Boolean).join(' · ')));
  graph.items.push({ element, numbers: [number] });
  return element;
}

function drawGraph() {
  const drawn = graphOf(), place = byId('graph');
  Object.assign(graph, { items: [], edges: [], lines: svg('svg', { width: '1', height: '1' }) });
  if (!drawn?.nodes.length) {
    byId('graph-note').textContent = '';
    place.replaceChildren(drawn ? `The compiler derives ${entryOf().name} from ${entryOf().batchOf || 'other entries'}, so it has no graph.`
      : 'An archive does not contain the graph; inspect the spec: kiln inspect --html model.html spec.cpp');
    return;
  }
  byId('graph-note').textContent = `${drawn.nodes.length} ops; click a layer`;
  place.replaceChildren(graph.lines, ...drawGroup(drawn.nodes.map((_, i) => i), 0, drawn.nodes, drawn.loops).slice(1));
  openAFew();
  drawEdges();
}

/// Unfolds outer layers until several elements are shown; a model that is one layer would be a single line.
function openAFew() {
  for (let { order } = standIns(); order.length < 6; { order } = standIns()) {
    const folded = order.find(element => element.classList.contains('head'));
    if (!folded) return;
    folded.parentElement.classList.add('open');
  }
}

/// Returns the visible element of each op: the op's own, or that of its outermost folded layer.
function standIns() {
  const shown = new Map();
  const order = [...byId('graph').querySelectorAll('.node, .head')].filter(element => element.offsetParent);
  const itemOf = new Map(graph.items.map(item => [item.element, item]));
  for (const element of order) {
    const item = itemOf.get(element);
    if (!item.group?.classList.contains('open')) for (const number of item.numbers) shown.set(number, element);
  }
  return { shown, order: [...new Set(order.filter(element => !itemOf.get(element).group?.classList.contains('open')))] };
}

function drawEdges() {
  const { nodes } = graphOf(), place = byId('graph');
  const { shown, order } = standIns();
  const positions = new Map(order.map((element, i) => [element, i]));
  for (const flow of place.querySelectorAll('.flow')) (flow.classList.remove('on'), (flow.textContent = ''));
  const frame = place.getBoundingClientRect(), paths = new Map();
  nodes.forEach((node, number) => {
    for (const { node: source, type } of node.operands) {
      const [from, to] = [shown.get(source), shown.get(number)];
      if (source === undefined || from === to) continue;
      if (positions.get(to) === positions.get(from) + 1) {
        let flow = (to.parentElement.classList.contains('group') ? to.parentElement : to).previousElementSibling;
        flow.textContent = type;
        // If the op is the first of its layer, the line also passes the layer's head.
        for (; flow; flow = flow.previousElementSibling ? null : flow.closest('.group')?.previousElementSibling) flow.classList.add('on');
        continue;
      }
      const key = `${positions.get(from)} ${positions.get(to)}`;
      const path = paths.get(key) ?? { from, to, ends: new Set() };
      paths.set(key, path);
      path.ends.add(source).add(number);
    }
  });
  const leftOf = element => element.getBoundingClientRect();
  graph.edges = [...paths.values()].map(({ from, to, ends }) => {
    const [a, b] = [leftOf(from), leftOf(to)];
    const [ax, ay, bx, by] = [a.left - frame.left + place.scrollLeft, (a.top + a.bottom) / 2 - frame.top, b.left - frame.left + place.scrollLeft, (b.top + b.bottom) / 2 - frame.top];
    const far = Math.min(14 + 4 * (positions.get(to) - positions.get(from)), 58);
    const x = Math.min(ax, bx) - far;
    return { ends, element: svg('path', { d: `M${ax} ${ay}C${x} ${ay} ${x} ${ay} ${x} ${Math.min(ay + 24, (ay + by) / 2)}V${Math.max(by - 24, (ay + by) / 2)}C${x} ${by} ${x} ${by} ${bx - 5} ${by}l-4 -3m4 3l-4 3` }) };
  });
  graph.lines.replaceChildren(...graph.edges.map(edge => edge.element));
}

function markEdges(number) {
  for (const { ends, element } of graph.edges) element.classList.toggle('on', ends.has(number));
}

function foldAll(isOpen) {
  for (const { group } of graph.items) group?.classList.toggle('open', isOpen);
  drawEdges();
}

/// Unfolds the layers around an op and shows it.
function revealOp(element) {
  for (let group = element.closest('.group'); group; group = group.parentElement.closest('.group'))
    if (group.firstChild !== element) group.classList.add('open');
  drawEdges();
}
