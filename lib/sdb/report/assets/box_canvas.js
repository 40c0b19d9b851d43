// SPDX-License-Identifier: MIT
// Rows of labelled boxes on a canvas: draws them, finds the one under the pointer, walks from one to the next.
// What the boxes mean is the business of `source`:
//
//   layout(width)  -> rows from the root on: [{ ids, xs, ws }], left to right; id -1 stands for boxes too small to draw
//   look(id)       -> { fill, texture, labels, bold, faded, hit } (hit: undefined without a search)
//   caller(id), callee(id) -> where walking up and down leads, or undefined
//   home()         -> the row to scroll to
//   lanes          -> optional { height, paint(context, width), hover(x, y, event) }: stays in sight above the rows
//   overlay(context, width, height) -> optional: drawn over everything
sdb.boxCanvas = (host, source, { onSelect, onClick, onHover }) => {
  const ROW = 20;
  const FAMILY = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';
  const palette = sdb.palette;
  const top = source.lanes ? source.lanes.height : 0;
  let icicle = true;
  let selected = 0;
  let hovered = -1;
  let rows = [];

  const surface = sdb.surface(host, { paint, laidOut: layout });

  const contentHeight = () => Math.max(rows.length * ROW + 2 + top, surface.height());
  const rowY = (depth) => (icicle ? top + depth * ROW + 1 : contentHeight() - (depth + 1) * ROW - 1);

  function layout() {
    const width = surface.width();
    rows = width > 0 ? source.layout(width) : [];
    surface.setContentHeight(rows.length * ROW + 2 + top);
  }

  function paint(context, width, height, scroll) {
    context.textBaseline = "middle";
    const ink = palette.ink();
    let font = "";
    rows.forEach((row, depth) => {
      const y = rowY(depth) - scroll;
      if (y > height || y + ROW < top) return;
      for (let i = 0; i < row.ids.length; i++) {
        const id = row.ids[i];
        const box = { x: row.xs[i], y, w: row.ws[i] - (row.ws[i] > 3 ? 1 : 0), h: ROW - 1 };
        if (id < 0) {
          context.fillStyle = palette.plain();
          context.fillRect(box.x, box.y, box.w, box.h);
          continue;
        }
        const look = source.look(id);
        const dim = look.hit === false;
        const wanted = ((look.hit === undefined ? look.bold : look.hit) ? "600 12px " : "12px ") + FAMILY;
        if (wanted !== font) context.font = font = wanted;
        sdb.drawBox(context, box, {
          fill: dim ? palette.plain() : look.fill,
          texture: dim ? null : palette.texture(context, look.texture),
          edge: !dim && look.texture === "edge" ? palette.edge() : null,
          underline: look.hit ? palette.mark() : null,
          ink: dim ? palette.quietInk() : ink,
          labels: look.labels,
          alpha: look.faded ? 0.62 : 1,
        });
        if (id === hovered && id !== selected) outline(context, box, ink, 1);
      }
    });
    const at = boxOf(selected);
    if (at) outline(context, { x: at.x, y: at.y - scroll, w: at.w, h: ROW - 1 }, palette.ring(), 2);
    if (source.lanes) {
      context.clearRect(0, 0, width, top);
      context.font = "12px " + FAMILY;
      source.lanes.paint(context, width);
    }
    if (source.overlay) source.overlay(context, width, height);
  }

  function outline(context, { x, y, w, h }, color, thick) {
    context.strokeStyle = color;
    context.lineWidth = thick;
    context.strokeRect(x + thick / 2, y + thick / 2, Math.max(w - thick, thick), h - thick);
  }

  // Where a box is, in content coordinates; null when it is not drawn.
  function boxOf(id) {
    for (let depth = 0; depth < rows.length; depth++) {
      const i = rows[depth].ids.indexOf(id);
      if (i >= 0) return { depth, i, x: rows[depth].xs[i], w: rows[depth].ws[i], y: rowY(depth) };
    }
    return null;
  }

  function boxAt(x, y) {
    if (y < top) return -1;
    const content = y + host.scrollTop;
    const row = rows[icicle ? Math.floor((content - top - 1) / ROW) : Math.floor((contentHeight() - 1 - content) / ROW)];
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
    if (box.y < host.scrollTop + top + ROW) host.scrollTop = Math.max(0, box.y - top - ROW * 2);
    else if (box.y + ROW * 2 > host.scrollTop + surface.height()) host.scrollTop = box.y + ROW * 3 - surface.height();
  }

  function select(id, quiet) {
    selected = id;
    reveal(id);
    surface.redraw();
    onSelect(id, quiet);
  }

  function scrollHome() {
    const y = rowY(source.home());
    host.scrollTop = icicle ? y - top - 1 : y + ROW + 1 - surface.height();
  }

  // direction: "caller", "callee", "left", "right", "first", "last". False when the selected box is out of sight.
  function walk(direction) {
    const box = boxOf(selected);
    if (!box) return false;
    const { ids } = rows[box.depth];
    const step = { left: box.i - 1, right: box.i + 1, first: 0, last: ids.findLastIndex((id) => id >= 0) }[direction];
    let next = step === undefined ? source[direction](selected) : ids[step];
    if (next === -1 && direction === "first") next = ids.find((id) => id >= 0);
    if (next >= 0 && boxOf(next)) select(next);
    return true;
  }

  // The next drawn box that matches the search, in reading order.
  function nextHit(step) {
    const found = rows.flatMap((row) => row.ids.filter((id) => id >= 0 && source.look(id).hit));
    if (found.length === 0) return false;
    const now = found.indexOf(selected);
    select(found[now < 0 ? (step > 0 ? 0 : found.length - 1) : (now + step + found.length) % found.length]);
    return true;
  }

  function hover(id, event) {
    if (id !== hovered) surface.redraw();
    hovered = id;
    host.classList.toggle("pointing", id >= 0);
    onHover(id, event);
  }
  host.addEventListener("pointermove", (event) => {
    const [x, y] = surface.at(event);
    hover(boxAt(x, y), event);
    if (y < top) source.lanes.hover(x, y, event);
  });
  host.addEventListener("pointerleave", () => hover(-1));
  host.addEventListener("click", (event) => {
    const id = boxAt(...surface.at(event));
    if (id >= 0) onClick(id, event);
  });

  return {
    walk, nextHit, select, layout, scrollHome,
    redraw: surface.redraw,
    width: surface.width,
    at: surface.at,
    selected: () => selected,
    // After a change of what is shown: `wanted` if it is drawn, else `otherwise` gets selected.
    show(wanted, otherwise) {
      hovered = -1;
      rows = []; // their numbers may mean nothing any more
      surface.fit();
      layout();
      scrollHome();
      select(boxOf(wanted) ? wanted : otherwise, true);
    },
    setIcicle(next) {
      if (icicle === next) return;
      icicle = next;
      surface.redraw();
      scrollHome();
    },
    // For tests: what is drawn.
    boxes: () =>
      rows.flatMap((row, depth) =>
        row.ids.map((id, i) => ({ id, depth, x: row.xs[i], w: row.ws[i], y: rowY(depth) - host.scrollTop, h: ROW - 1 })),
      ),
  };
};
