// SPDX-License-Identifier: MIT
// Calls as boxes over time, with three lanes above them: the time, the state, and who held the GVL meanwhile.
sdb.stackCanvas = (host, model, { onSelect, onRange, onHover, onLane }) => {
  const LEAST = 0.6; // px: narrower calls are drawn together as one
  const LANES = { axis: [0, 20], state: [20, 20], holder: [42, 20], height: 66 };
  const palette = sdb.palette;
  let calls = [];
  let rows = [];
  let hits = null;
  let from = 0;
  let to = model.length || 1;
  let drag = null;
  const looks = new Map();
  sdb.theme.onChange(() => looks.clear());

  const x = (ns, width) => ((ns - from) / (to - from)) * width;
  const timeAt = (px) => from + (px / Math.max(boxes.width(), 1)) * (to - from);

  // First of some calls in order of time that ends after `ns`.
  function firstAfter(row, ns) {
    let low = 0;
    let high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (calls[row[middle]].to <= ns) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function layout(width) {
    const laid = [];
    rows.forEach((row) => {
      const out = { ids: [], xs: [], ws: [] };
      let rest = null; // too small ones next to each other
      const flush = () => {
        if (rest && rest.end - rest.x >= LEAST) {
          out.ids.push(-1);
          out.xs.push(rest.x);
          out.ws.push(rest.end - rest.x);
        }
        rest = null;
      };
      for (let i = firstAfter(row, from); i < row.length && calls[row[i]].from < to; i++) {
        const call = calls[row[i]];
        const left = Math.max(0, x(call.from, width));
        const right = Math.min(width, x(call.to, width));
        if (right - left < LEAST) {
          if (rest && left - rest.end > 1) flush();
          rest ||= { x: left, end: right };
          rest.end = right;
          continue;
        }
        flush();
        out.ids.push(row[i]);
        out.xs.push(left);
        out.ws.push(right - left);
      }
      flush();
      laid.push(out);
    });
    while (laid.length > 1 && laid[laid.length - 1].ids.length === 0) laid.pop();
    return laid;
  }

  function look(id) {
    const f = calls[id].func;
    let found = looks.get(f);
    if (!found) {
      const category = model.categoryOf(f);
      const tone = palette.CATEGORIES[category];
      found = { fill: palette.shade(tone, f + 2), texture: tone.texture, labels: sdb.wordings(model.nameOf(f)), bold: category === "app" };
      looks.set(f, found);
    }
    found.hit = hits ? f >= 0 && hits[f] === 1 : undefined;
    return found;
  }

  // A round step with about 90 px between two marks.
  function step(width) {
    const rough = ((to - from) / width) * 90;
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  }

  function paintAxis(context, width) {
    const every = step(width);
    context.fillStyle = palette.quietInk();
    for (let ns = Math.ceil(from / every) * every; ns <= to; ns += every) {
      const at = Math.round(x(ns, width));
      context.fillRect(at, 14, 1, 5);
      const label = ns === 0 ? "0" : sdb.time(ns);
      const room = context.measureText(label).width;
      if (at + 4 + room < width) context.fillText(label, at + 4, 9);
    }
  }

  // Each column of pixels shows the states in the share they had of its time, so that nothing too short vanishes.
  function paintStates(context, width) {
    const [top, height] = LANES.state;
    const share = new Float64Array(model.states.length);
    const perPixel = (to - from) / width;
    let run = Math.max(0, firstRun(from));
    let start = 0;
    let shown = "";
    const flush = (end, states) => {
      let y = top;
      for (const [state, part] of states) {
        const tone = palette.STATES[state];
        const h = part * height;
        for (const style of [palette.shade(tone, 2), palette.texture(context, tone.texture)]) {
          if (!style) continue;
          context.fillStyle = style;
          context.fillRect(start, y, end - start, h);
        }
        y += h;
      }
    };
    let pending = [];
    for (let px = 0; px < width; px++) {
      share.fill(0);
      const a = from + px * perPixel;
      const b = a + perPixel;
      while (run < model.runs && model.at[run] + model.ns[run] <= a) run++;
      for (let r = run; r < model.runs && model.at[r] < b; r++) {
        share[model.state[r]] += Math.max(0, Math.min(b, model.at[r] + model.ns[r]) - Math.max(a, model.at[r]));
      }
      const states = [...share].map((ns, i) => [model.states[i], Math.min(1, ns / perPixel)]).filter(([, part]) => part > 0.001);
      const key = states.map(([state, part]) => state + part.toFixed(2)).join();
      if (key !== shown) {
        flush(px, pending);
        start = px;
        shown = key;
        pending = states;
      }
    }
    flush(width, pending);
  }

  function firstRun(ns) {
    let low = 0;
    let high = model.runs;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (model.at[middle] + model.ns[middle] <= ns) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Neighbouring runs with one holder are one box.
  function paintHolders(context, width) {
    const [y, h] = LANES.holder;
    let box = null;
    const flush = () => {
      if (!box) return;
      const left = Math.max(0, x(box.from, width));
      const w = Math.max(1, Math.min(width, x(box.to, width)) - left);
      const index = model.holders.indexOf(box.holder);
      sdb.drawBox(context, { x: left, y, w: w > 3 ? w - 1 : w, h }, {
        fill: palette.shade(palette.STATES.gvl_wait, index), texture: null, ink: palette.ink(),
        labels: [box.holder.name + " · " + box.holder.thread, box.holder.name, box.holder.thread],
      });
      box = null;
    };
    for (let run = firstRun(from); run < model.runs && model.at[run] < to; run++) {
      const holder = model.holderOf(run);
      const end = model.at[run] + model.ns[run];
      if (holder && box && box.holder === holder && box.to === model.at[run]) box.to = end;
      else {
        flush();
        if (holder) box = { holder, from: model.at[run], to: end };
      }
    }
    flush();
  }

  const source = {
    layout,
    look,
    home: () => 0,
    caller: (id) => (calls[id].parent >= 0 ? calls[id].parent : undefined),
    // The longest call under it that is in the window.
    callee(id) {
      const row = rows[calls[id].depth + 1] || [];
      let best;
      for (let i = firstAfter(row, Math.max(from, calls[id].from)); i < row.length && calls[row[i]].from < Math.min(to, calls[id].to); i++) {
        const length = calls[row[i]].to - calls[row[i]].from;
        if (best === undefined || length > calls[best].to - calls[best].from) best = row[i];
      }
      return best;
    },
    lanes: {
      height: LANES.height,
      paint(context, width) {
        paintAxis(context, width);
        paintStates(context, width);
        paintHolders(context, width);
      },
      hover(px, y, event) {
        onLane(y < LANES.state[0] ? "axis" : y < LANES.holder[0] ? "state" : "holder", timeAt(px), event);
      },
    },
    overlay(context, width, height) {
      if (!drag || !drag.moved) return;
      const [a, b] = [drag.x, drag.now].sort((p, q) => p - q);
      context.fillStyle = palette.ring();
      context.globalAlpha = 0.18;
      context.fillRect(a, 0, b - a, height);
      context.globalAlpha = 1;
      context.fillRect(a, 0, 1, height);
      context.fillRect(b, 0, 1, height);
    },
  };

  // A click on a box shows its time; a drag shows the range; the click that ends a drag is none.
  let dragged = false;
  const boxes = sdb.boxCanvas(host, source, { onSelect, onHover, onClick: (id) => dragged || onRange(calls[id].from, calls[id].to, id) });
  host.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch") return; // a finger scrolls
    drag = { x: boxes.at(event)[0], now: 0, moved: false };
    dragged = false;
  });
  host.addEventListener("pointermove", (event) => {
    if (!drag) return;
    drag.now = boxes.at(event)[0];
    if (Math.abs(drag.now - drag.x) > 5 && !drag.moved) {
      drag.moved = true;
      host.setPointerCapture(event.pointerId);
    }
    if (drag.moved) boxes.redraw();
  });
  host.addEventListener("pointerup", () => {
    dragged = Boolean(drag && drag.moved);
    if (dragged) {
      const [a, b] = [timeAt(drag.x), timeAt(drag.now)].sort((p, q) => p - q);
      onRange(Math.max(0, a), Math.min(model.length, b));
    }
    drag = null;
    boxes.redraw();
  });

  return {
    select: boxes.select, selected: boxes.selected, nextHit: boxes.nextHit, boxes: boxes.boxes,
    walk: (direction) => boxes.walk(direction) || boxes.select(0),
    setCalls(next) {
      ({ calls, rows } = next);
      looks.clear();
      boxes.show(0, 0);
    },
    setRange(a, b, wanted) {
      from = a;
      to = Math.max(b, a + 1);
      boxes.show(wanted ?? boxes.selected(), 0);
    },
    setHits(next) {
      hits = next;
      boxes.redraw();
    },
    range: () => [from, to],
  };
};
