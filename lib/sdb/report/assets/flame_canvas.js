// SPDX-License-Identifier: MIT
// Draws a tree as boxes, finds the box under the pointer, and walks from box to box.
sdb.flameCanvas = (host, { onSelect, onZoom, onHover }) => {
  const ROW = 20;
  const LEAST = 0.6; // px: narrower boxes are drawn together as one
  const palette = sdb.palette;
  let tree = null;
  let icicle = true;
  let hits = null;
  let zoom = 0;
  let selected = 0;
  let hovered = -1;
  let rows = []; // per depth: { ids, xs, ws }, from left to right; id -1 is the rest of too small ones
  let ancestors = 0;
  const looks = new Map();
  const fonts = { app: "600 12px ", other: "12px " };
  const FAMILY = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';

  const surface = sdb.surface(host, { paint, laidOut: layout });
  sdb.theme.onChange(() => looks.clear());

  const contentHeight = () => Math.max(rows.length * ROW + 2, surface.height());
  const rowY = (depth) => (icicle ? depth * ROW + 1 : contentHeight() - (depth + 1) * ROW - 1);

  function layout() {
    rows = [];
    const width = surface.width();
    if (!tree || width === 0) return;
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
    chain.forEach((n, depth) => put(depth, n, 0, width));

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
    surface.setContentHeight(rows.length * ROW + 2);
  }

  function look(id) {
    const f = tree.funcOf(id);
    let found = looks.get(f);
    if (!found) {
      const category = tree.model.categoryOf(f);
      const tone = palette.CATEGORIES[category];
      const name = tree.model.nameOf(f);
      found = { fill: palette.shade(tone, f + 2), pattern: tone.texture, labels: sdb.wordings(name), bold: category === "app" };
      looks.set(f, found);
    }
    return found;
  }

  function paint(context, width, height, scroll) {
    context.fillStyle = palette.plain();
    context.textBaseline = "middle";
    const found = hits && { ink: palette.ink(), quiet: palette.quietInk(), plain: palette.plain(), mark: palette.mark() };
    let font = "";
    rows.forEach((row, depth) => {
      const y = rowY(depth) - scroll;
      if (y > height || y + ROW < 0) return;
      for (let i = 0; i < row.ids.length; i++) {
        const id = row.ids[i];
        const gap = row.ws[i] > 3 ? 1 : 0;
        const box = { x: row.xs[i], y, w: row.ws[i] - gap, h: ROW - 1 };
        if (id < 0) {
          context.fillStyle = palette.plain();
          context.fillRect(box.x, box.y, box.w, box.h);
          continue;
        }
        const style = look(id);
        const f = tree.funcOf(id);
        const hit = hits && f >= 0 && hits[f] === 1;
        const bold = hits ? hit : style.bold;
        const wanted = (bold ? fonts.app : fonts.other) + FAMILY;
        if (wanted !== font) context.font = font = wanted;
        const dim = hits && !hit;
        sdb.drawBox(context, box, {
          fill: dim ? palette.plain() : style.fill,
          texture: dim ? null : palette.texture(context, style.pattern),
          edge: !dim && style.pattern === "edge" ? palette.edge() : null,
          underline: hit ? found.mark : null,
          ink: dim ? found.quiet : palette.ink(),
          labels: style.labels,
          alpha: depth < ancestors ? 0.62 : 1,
        });
        if (id === hovered && id !== selected) outline(context, box, palette.ink(), 1);
      }
    });
    const at = boxOf(selected);
    if (at) outline(context, { x: at.x, y: at.y - scroll, w: at.w, h: ROW - 1 }, palette.ring(), 2);
  }

  function outline(context, { x, y, w, h }, color, thick) {
    context.strokeStyle = color;
    context.lineWidth = thick;
    context.strokeRect(x + thick / 2, y + thick / 2, Math.max(w - thick, thick), h - thick);
  }

  // Where a node is drawn, in content coordinates; null when it is not.
  function boxOf(id) {
    for (let depth = 0; depth < rows.length; depth++) {
      const i = rows[depth].ids.indexOf(id);
      if (i >= 0) return { depth, i, x: rows[depth].xs[i], w: rows[depth].ws[i], y: rowY(depth) };
    }
    return null;
  }

  function nodeAt(x, y) {
    const content = y + host.scrollTop;
    const depth = icicle ? Math.floor((content - 1) / ROW) : Math.floor((contentHeight() - 1 - content) / ROW);
    const row = rows[depth];
    if (!row) return -1;
    let low = 0;
    let high = row.xs.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (row.xs[middle] <= x) low = middle;
      else high = middle - 1;
    }
    return x >= row.xs[low] && x < row.xs[low] + row.ws[low] ? row.ids[low] : -1;
  }

  function reveal(id) {
    const box = boxOf(id);
    if (!box) return;
    if (box.y < host.scrollTop + ROW) host.scrollTop = Math.max(0, box.y - ROW * 2);
    else if (box.y + ROW * 2 > host.scrollTop + surface.height()) host.scrollTop = box.y + ROW * 3 - surface.height();
  }

  function select(id, quiet) {
    selected = id;
    reveal(id);
    surface.redraw();
    onSelect(id, quiet);
  }

  // The zoomed node near the edge it grows from, two callers above it in sight.
  function scrollHome() {
    const y = rowY(Math.max(0, ancestors - 2));
    host.scrollTop = icicle ? y - 1 : y + ROW + 1 - surface.height();
  }

  function zoomTo(id, quiet) {
    zoom = id;
    layout();
    scrollHome();
    select(id, quiet);
  }

  // direction: "caller", "callee", "left", "right", "first", "last"
  function walk(direction) {
    const box = boxOf(selected);
    if (!box) return select(zoom);
    const row = rows[box.depth];
    const step = (i) => row.ids[i] !== undefined && row.ids[i] >= 0 && select(row.ids[i]);
    if (direction === "caller" && tree.parentOf(selected) >= 0) select(tree.parentOf(selected));
    if (direction === "left") step(box.i - 1);
    if (direction === "right") step(box.i + 1);
    if (direction === "first") step(0);
    if (direction === "last") step(row.ids.findLastIndex((id) => id >= 0));
    if (direction === "callee") {
      const below = box.depth < ancestors ? rows[box.depth + 1].ids[0] : tree.children(selected)[0];
      if (below !== undefined && boxOf(below)) select(below);
    }
  }

  // The next drawn box that matches the search, in reading order.
  function nextHit(step) {
    const found = rows.flatMap((row) => row.ids.filter((id) => id >= 0 && tree.funcOf(id) >= 0 && hits && hits[tree.funcOf(id)] === 1));
    if (found.length === 0) return false;
    const now = found.indexOf(selected);
    const next = now < 0 ? (step > 0 ? 0 : found.length - 1) : (now + step + found.length) % found.length;
    select(found[next]);
    return true;
  }

  host.addEventListener("pointermove", (event) => {
    const id = nodeAt(...surface.at(event));
    if (id !== hovered) surface.redraw();
    hovered = id;
    host.classList.toggle("pointing", id >= 0);
    onHover(id, event);
  });
  host.addEventListener("pointerleave", () => {
    hovered = -1;
    surface.redraw();
    onHover(-1);
  });
  host.addEventListener("click", (event) => {
    const id = nodeAt(...surface.at(event));
    if (id >= 0) onZoom(id);
  });

  return {
    walk, nextHit, select, zoomTo,
    setTree(next, zoomed, chosen) {
      tree = next;
      hovered = -1;
      looks.clear();
      zoom = zoomed;
      layout();
      surface.fit();
      scrollHome();
      select(boxOf(chosen) ? chosen : zoomed, true);
    },
    setHits(next) {
      hits = next;
      surface.redraw();
    },
    setIcicle(next) {
      icicle = next;
      surface.redraw();
      if (tree) scrollHome();
    },
    selected: () => selected,
    zoomed: () => zoom,
    // For tests: what is drawn.
    boxes: () =>
      rows.flatMap((row, depth) =>
        row.ids.map((id, i) => ({ id, depth, x: row.xs[i], w: row.ws[i], y: rowY(depth) - host.scrollTop, h: ROW - 1 })),
      ),
  };
};
