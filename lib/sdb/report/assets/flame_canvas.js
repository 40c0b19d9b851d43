// SPDX-License-Identifier: MIT
// A tree as boxes: as wide as their time, callers above what they call, zoomed to one of them.
sdb.flameCanvas = (host, { onSelect, onZoom, onHover }) => {
  const LEAST = 0.6; // px: narrower boxes are drawn together as one
  const palette = sdb.palette;
  let tree = null;
  let hits = null;
  let zoom = 0;
  let ancestors = 0;
  const depthOf = new Map(); // of the zoomed node's callers, which are drawn faded
  const looks = new Map();
  sdb.theme.onChange(() => looks.clear());

  function layout(width) {
    const rows = [];
    if (!tree) return rows;
    const put = (depth, id, x, w) => {
      const row = (rows[depth] ||= { ids: [], xs: [], ws: [] });
      row.ids.push(id);
      row.xs.push(x);
      row.ws.push(w);
    };
    const chain = [];
    for (let n = zoom; n >= 0; n = tree.parentOf(n)) chain.push(n);
    chain.reverse();
    ancestors = chain.length - 1;
    depthOf.clear();
    chain.forEach((n, depth) => {
      put(depth, n, 0, width);
      if (n !== zoom) depthOf.set(n, depth);
    });

    const todo = [[zoom, 0, width, ancestors + 1]];
    while (todo.length > 0) {
      const [n, left, room, depth] = todo.pop();
      const whole = tree.totalOf(n);
      if (!(whole > 0)) continue;
      let x = left;
      let rest = 0;
      const later = [];
      for (const child of tree.children(n)) {
        const w = (tree.totalOf(child) / whole) * room;
        if (w < LEAST) rest += w;
        else {
          put(depth, child, x, w);
          later.push([child, x, w, depth + 1]);
          x += w;
        }
      }
      if (rest >= LEAST) put(depth, -1, x, rest);
      for (let i = later.length - 1; i >= 0; i--) todo.push(later[i]);
    }
    return rows;
  }

  // What a function looks like, made once; what depends on the node is set on it each time.
  function look(id) {
    const f = tree.funcOf(id);
    let found = looks.get(f);
    if (!found) {
      const category = tree.model.categoryOf(f);
      const tone = palette.CATEGORIES[category];
      found = { fill: palette.shade(tone, f + 2), texture: tone.texture, labels: sdb.wordings(tree.model.nameOf(f)), bold: category === "app" };
      looks.set(f, found);
    }
    found.hit = hits ? f >= 0 && hits[f] === 1 : undefined;
    found.faded = depthOf.has(id);
    return found;
  }

  const source = {
    layout,
    look,
    home: () => Math.max(0, ancestors - 2), // two callers of the zoomed box in sight
    caller: (id) => (tree.parentOf(id) >= 0 ? tree.parentOf(id) : undefined),
    callee(id) {
      if (!depthOf.has(id)) return tree.children(id)[0];
      for (let n = zoom; n > 0; n = tree.parentOf(n)) if (tree.parentOf(n) === id) return n;
    },
  };
  const boxes = sdb.boxCanvas(host, source, { onSelect, onClick: onZoom, onHover });

  return {
    select: boxes.select, nextHit: boxes.nextHit, selected: boxes.selected, setIcicle: boxes.setIcicle, boxes: boxes.boxes,
    walk: (direction) => boxes.walk(direction) || boxes.select(zoom),
    zoomed: () => zoom,
    zoomTo(id, quiet) {
      zoom = id;
      boxes.layout();
      boxes.scrollHome();
      boxes.select(id, quiet);
    },
    setTree(next, zoomed) {
      tree = next;
      zoom = zoomed;
      looks.clear();
      boxes.show(zoomed, zoomed);
    },
    setHits(next) {
      hits = next;
      boxes.redraw();
    },
  };
};
