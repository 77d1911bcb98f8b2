// SPDX-License-Identifier: Apache-2.0
//
// Handles events: the choice of an entry, the search for a name, and a change of the page's size.

function showEntry(number) {
  state.entry = number;
  drawHeader();
  drawTiles();
  drawTimeline();
  drawKernels();
  drawMemory();
  drawRoofline();
  drawGraph();
  select('');
}

/// Scrolls to the target of a link or of the search.
function reveal(pick) {
  const element = document.querySelector(`#graph [data-pick="${CSS.escape(pick)}"], #content [data-pick="${CSS.escape(pick)}"]`);
  if (!element) return;
  if (element.closest('#graph')) revealOp(element);
  element.scrollIntoView({ block: 'center', behavior: 'smooth' });
}

function findAll(text) {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = name => wanted.every(word => name.toLowerCase().includes(word));
  const ops = (graphOf()?.nodes ?? []).map((node, i) => ['op', `${node.op} ${words.layer(node.layer)}`, `op:${i}`]);
  const kernels = callsOf(entryOf()).map(call => ['kernel', call.name, `kernel:${call.name}`]);
  const weights = model.weights.map(weight => ['weight', words.layer(weight.name), `weight:${weight.name}`]);
  return wanted.length ? [...kernels, ...ops, ...weights].filter(([, name]) => fits(name)).slice(0, 14) : [];
}

function showFound() {
  const found = findAll(byId('search').value), list = byId('found');
  list.hidden = !found.length;
  list.replaceChildren(...found.map(([kind, name, pick], i) =>
    html('li', { class: i ? undefined : 'chosen', onpointerdown: () => choose(pick) }, html('small', {}, kind), name)));
  return found;
}

function choose(pick) {
  byId('found').hidden = true;
  select(pick);
  reveal(pick);
}

byId('search').addEventListener('input', showFound);
byId('search').addEventListener('focus', showFound);
byId('search').addEventListener('blur', () => (byId('found').hidden = true));
byId('search').addEventListener('keydown', event => {
  if (event.key !== 'Enter') return;
  const [first] = showFound();
  if (first) choose(first[2]);
});
byId('unfold').addEventListener('click', () => foldAll(true));
byId('fold').addEventListener('click', () => foldAll(false));
addEventListener('resize', () => graphOf()?.nodes.length && drawEdges());

drawWeights();
showEntry(0);
document.body.dataset.state = 'ready';
