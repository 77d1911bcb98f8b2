// SPDX-License-Identifier: Apache-2.0
//
// Draws weights as a treemap of nested layers, with areas in proportion to bytes (squarified: Bruls, Huizing and van
// Wijk 2000).

/// Returns the layers as a tree, in which "h.{}" is one level.
function weightTree() {
  const root = { name: '', bytes: 0, children: new Map() };
  for (const weight of model.weights) {
    let at = root;
    root.bytes += weight.bytes;
    for (const part of weight.name.replaceAll('.{}', '{}').split('.')) {
      if (!at.children.has(part)) at.children.set(part, { name: part.replace('{}', ' × '), bytes: 0, children: new Map() });
      at = at.children.get(part);
      at.bytes += weight.bytes;
      if (part.includes('{}') && at.name.endsWith(' × ')) at.name += weight.copies;
    }
    at.weight = weight;
  }
  return root;
}

/// Places the items in rows of rectangles that are as square as possible.
function squarify(items, x, y, width, height, place) {
  let rest = items.filter(item => item.bytes > 0).sort((a, b) => b.bytes - a.bytes);
  let bytes = rest.reduce((sum, item) => sum + item.bytes, 0);
  while (rest.length) {
    const side = Math.min(width, height), area = (width * height) / bytes;
    const worst = row => {
      const sum = row.reduce((all, item) => all + item.bytes * area, 0);
      return Math.max(...row.map(item => Math.max((side * side * item.bytes * area) / (sum * sum), (sum * sum) / (side * side * item.bytes * area))));
    };
    let count = 1;
    while (count < rest.length && worst(rest.slice(0, count + 1)) <= worst(rest.slice(0, count))) ++count;
    const row = rest.slice(0, count), sum = row.reduce((all, item) => all + item.bytes, 0), thick = (sum * area) / side;
    let at = 0;
    for (const item of row) {
      const long = (side * item.bytes) / sum;
      width >= height ? place(item, x, y + at, thick, long) : place(item, x + at, y, long, thick);
      at += long;
    }
    width >= height ? ((x += thick), (width -= thick)) : ((y += thick), (height -= thick));
    rest = rest.slice(count);
    bytes -= sum;
  }
}

function drawWeights() {
  const root = weightTree(), width = 520, height = 330, parts = [];
  byId('weights-note').textContent = `${words.bytes(root.bytes)}, by layer`;
  const hues = ['product', 'attention', 'pointwise', 'reduction', 'lookup'];
  const labelled = (text, x, y, wide) => (wide > 6.4 * text.length + 8 ? [svg('text', { class: 'inside', x: x + 5, y }, text)] : []);
  const draw = (node, path, x, y, wide, high, depth, hue) => {
    // A layer with a single child is drawn as that child.
    while (!node.weight && node.children.size === 1) {
      const [only] = node.children.values();
      path = `${path}${node.name ? `${node.name}.` : ''}`;
      node = { ...only, name: only.name };
    }
    if (node.weight) {
      const name = `${path}${node.name}`;
      parts.push(svg('rect', { class: 'pick', x, y, width: Math.max(wide - 1, 0.5), height: Math.max(high - 1, 0.5), rx: 2, color: `var(--${hue})`, 'fill-opacity': 0.88,
        ...pickable(`weight:${node.weight.name}`), ...tip.on(`${words.layer(node.weight.name)}\n${node.weight.type}${node.weight.copies > 1 ? ` × ${node.weight.copies}` : ''} as ${node.weight.stored}\n${words.bytes(node.weight.bytes)}, ${words.percent(node.weight.bytes / root.bytes)}`) }));
      if (high > 16) parts.push(...labelled(name, x, y + 14, wide));
      if (high > 32) parts.push(...labelled(words.bytes(node.weight.bytes), x, y + 28, wide));
      return;
    }
    const title = depth > 0 && high > 40 && wide > 60 ? 17 : 0;
    if (title)
      parts.push(svg('rect', { x, y, width: wide - 1, height: high - 1, rx: 3, fill: `var(--${hue})`, 'fill-opacity': 0.22 }),
        ...(wide > 6.4 * node.name.length + 12 ? [svg('text', { x: x + 5, y: y + 13 }, `${path}${node.name}`.length * 6.4 < wide - 10 ? `${path}${node.name}` : node.name)] : []));
    const margin = title ? 2 : 0;
    let next = 0;
    squarify([...node.children.values()], x + margin, y + title, wide - 2 * margin - (title ? 1 : 0), high - title - margin - (title ? 1 : 0), (child, ...box) =>
      draw(child, '', ...box, depth + 1, depth === 0 ? hues[next++ % hues.length] : hue));
  };
  draw(root, '', 0, 0, width, height, 0, hues[0]);
  byId('weights').replaceChildren(svg('svg', { viewBox: `0 0 ${width} ${height}`, width: '100%' }, ...parts));
}
