// SPDX-License-Identifier: MIT
// A canvas in a scrolling box: keeps it as large as the box, sharp on every screen, and drawn once a frame.
//
// host: the scrolling element. paint(context, width, height, scrollTop) draws the visible part;
// laidOut(width) is called when the width changed.
sdb.surface = (host, { paint, laidOut }) => {
  const canvas = sdb.el("canvas", { "aria-hidden": "true" });
  const spacer = sdb.el("div", { class: "spacer", "aria-hidden": "true" });
  host.append(canvas, spacer);
  const context = canvas.getContext("2d");
  let width = 0;
  let height = 0;
  let pending = 0;

  function draw() {
    pending = 0;
    if (width === 0 || height === 0) return;
    const ratio = devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    paint(context, width, height, host.scrollTop);
  }
  function redraw() {
    pending ||= requestAnimationFrame(draw);
  }
  function fit() {
    const oldWidth = width;
    width = host.clientWidth;
    height = host.clientHeight;
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    if (width !== oldWidth) laidOut(width);
    draw();
  }
  new ResizeObserver(fit).observe(host);
  host.addEventListener("scroll", redraw, { passive: true });
  sdb.theme.onChange(redraw);

  return {
    redraw,
    fit,
    drawNow: draw,
    width: () => width,
    height: () => height,
    // Height of the whole content; the canvas itself takes the first screen of it.
    setContentHeight(pixels) {
      spacer.style.height = Math.max(0, pixels - height) + "px";
    },
    at(event) {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    },
  };
};

// Draws one box with its texture and a label that fits.
sdb.drawBox = (context, box, look) => {
  const { x, y, w, h } = box;
  context.globalAlpha = look.alpha || 1;
  context.fillStyle = look.fill;
  context.fillRect(x, y, w, h);
  if (look.texture) {
    context.fillStyle = look.texture;
    context.fillRect(x, y, w, h);
  }
  if (look.edge && w > 5) {
    context.fillStyle = look.edge;
    context.fillRect(x, y, 2, h);
  }
  if (look.underline) {
    context.fillStyle = look.underline;
    context.fillRect(x, y + h - 3, w, 3);
  }
  if (w > 26) {
    const label = sdb.fitted(context, look.labels, w - 10);
    if (label) {
      context.fillStyle = look.ink;
      context.fillText(label, x + 5, y + h / 2 + 0.5);
    }
  }
  context.globalAlpha = 1;
};

// The longest of some wordings of a name that fits, or the shortest one cut off; "" where not even three
// letters fit.
sdb.fitted = (context, labels, room) => {
  for (const label of labels) if (context.measureText(label).width <= room) return label;
  const last = labels[labels.length - 1];
  let keep = Math.min(last.length, Math.floor((room / context.measureText(last).width) * last.length));
  while (keep > 2 && context.measureText(last.slice(0, keep) + "…").width > room) keep--;
  return keep > 2 ? last.slice(0, keep) + "…" : "";
};

// "block in A::B::C#each" as it is, without the namespaces, and the method alone; of a template, its file alone.
sdb.withoutNamespaces = (name) => name.replace(/(?:\p{Lu}[\p{L}\p{N}_]*::)+/gu, "");
sdb.wordings = (name) => {
  const full = name.length > 240 ? name.slice(0, 240) + "…" : name;
  const template = full.match(/^((?:block (?:\(\d+ levels\) )?in |rescue in |ensure in )?)(?:[^\s#/]+\/)*(\p{Ll}[^\s#/]*|_[^\s#/]*)$/u);
  if (template && template[2].includes(".")) return [...new Set([full, template[1] + template[2]])];
  const short = sdb.withoutNamespaces(full);
  const method = short.replace(/^((?:block (?:\(\d+ levels\) )?in |rescue in |ensure in )?)[^\s#.]+[#.](?=[^#.])/u, "$1#");
  return [...new Set([full, short, method])];
};

// Puts a tooltip beside the pointer, inside the window.
sdb.placeTip = (tip, event) => {
  const { width, height } = tip.getBoundingClientRect();
  const left = event.clientX + 14 + width > innerWidth ? event.clientX - width - 10 : event.clientX + 14;
  const top = event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = Math.max(4, top) + "px";
};
