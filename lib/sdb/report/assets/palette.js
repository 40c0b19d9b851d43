// SPDX-License-Identifier: MIT
// Colours and textures of what is drawn. No category is told by colour alone: the legend, the figures and the
// texture say it too.
sdb.palette = (() => {
  // [hue, saturation, lightness] in light and dark; labels keep a contrast of at least 4.5 on each.
  const CATEGORIES = {
    app: { label: "App", light: [32, 92, 73], dark: [24, 62, 32], texture: "none" },
    gem: { label: "Gem", light: [212, 78, 81], dark: [212, 46, 31], texture: "edge" },
    stdlib: { label: "Ruby library", light: [150, 42, 76], dark: [156, 38, 23], texture: "dots" },
    c: { label: "C", light: [266, 42, 84], dark: [266, 24, 35], texture: "hatch" },
    eval: { label: "Eval", light: [338, 66, 84], dark: [338, 38, 34], texture: "cross" },
    internal: { label: "Thread, VM", light: [220, 12, 88], dark: [220, 9, 25], texture: "none" },
  };
  const STATES = {
    running: { label: "Running", light: [150, 48, 70], dark: [154, 46, 27], texture: "none" },
    gvl_wait: { label: "Waiting for the GVL", light: [18, 90, 76], dark: [14, 58, 33], texture: "hatch" },
    blocked: { label: "Blocked", light: [220, 22, 86], dark: [220, 12, 27], texture: "edge" },
    gc: { label: "GC", light: [292, 44, 82], dark: [292, 28, 36], texture: "cross" },
    unknown: { label: "Unknown", light: [50, 10, 90], dark: [50, 6, 20], texture: "dots" },
  };
  const PLAIN = { light: [220, 8, 92], dark: [220, 6, 20] };
  const INK = { light: "#17181c", dark: "#f3f4f7" };
  const QUIET_INK = { light: "#5b5f6a", dark: "#a4a9b6" };

  const mode = () => (sdb.theme.dark() ? "dark" : "light");
  const hsl = ([h, s, l]) => `hsl(${h} ${s}% ${l}%)`;

  // Neighbours of one category are told apart by a small shift of the lightness, the same for a name everywhere.
  function shade(tone, seed) {
    const [h, s, l] = tone[mode()];
    const step = ((seed * 2654435761) >>> 0) % 5;
    return hsl([h, s, l + (step - 2) * (mode() === "light" ? 1.4 : 1.2)]);
  }

  const DRAW = {
    dots: (c) => (c.rect(1, 1, 1, 1), c.rect(4, 4, 1, 1)),
    hatch: (c) => (c.moveTo(-1, 7), c.lineTo(7, -1), c.moveTo(-1, 1), c.lineTo(1, -1), c.moveTo(5, 7), c.lineTo(7, 5)),
    cross: (c) => (c.moveTo(0, 0), c.lineTo(6, 6), c.moveTo(6, 0), c.lineTo(0, 6)),
  };
  const cache = new Map();

  // A CanvasPattern, or null where the category has none; "edge" is a line at the left, see drawBox.
  function texture(context, name) {
    if (name === "none" || name === "edge") return null;
    const key = name + mode();
    if (!cache.has(key)) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 6;
      const c = tile.getContext("2d");
      c.strokeStyle = c.fillStyle = mode() === "light" ? "rgb(20 24 40 / 11%)" : "rgb(255 255 255 / 9%)";
      c.beginPath();
      DRAW[name](c);
      if (name === "dots") c.fill();
      else c.stroke();
      cache.set(key, context.createPattern(tile, "repeat"));
    }
    return cache.get(key);
  }

  const edge = () => (mode() === "light" ? "rgb(10 50 120 / 38%)" : "rgb(160 200 255 / 45%)");

  // A small drawn sample for a legend.
  function swatch(tone) {
    const canvas = sdb.el("canvas", { class: "swatch", width: 26, height: 18, "aria-hidden": "true" });
    const paint = () => {
      const c = canvas.getContext("2d");
      c.fillStyle = hsl(tone[mode()]);
      c.fillRect(0, 0, 26, 18);
      const pattern = texture(c, tone.texture);
      c.fillStyle = pattern || edge();
      if (pattern || tone.texture === "edge") c.fillRect(0, 0, pattern ? 26 : 4, 18);
    };
    paint();
    sdb.theme.onChange(paint);
    return canvas;
  }

  function legend(host, tones, names, about = () => "") {
    host.replaceChildren(
      ...names.map((name) => sdb.el("li", { title: about(name) }, swatch(tones[name]), sdb.el("span", {}, tones[name].label))),
    );
  }

  // For tests: the contrast of a label on every shade, by the formula of WCAG.
  function contrasts() {
    const c = sdb.el("canvas").getContext("2d", { willReadFrequently: true });
    const luminance = (color) => {
      c.fillStyle = color;
      c.fillRect(0, 0, 1, 1);
      const [r, g, b] = [...c.getImageData(0, 0, 1, 1).data].map((v) => (v / 255 <= 0.04045 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const ink = luminance(INK[mode()]);
    const tones = Object.entries({ ...CATEGORIES, ...STATES });
    const found = tones.flatMap(([name, tone]) => [0, 1, 2, 3, 4].map((seed) => ({ name, ratio: ratio(ink, luminance(shade(tone, seed))) })));
    return [...found, { name: "dimmed", ratio: ratio(luminance(QUIET_INK[mode()]), luminance(hsl(PLAIN[mode()]))) }];
  }

  return {
    contrasts, swatch,
    CATEGORIES, STATES, legend, shade, texture, edge,
    plain: () => hsl(PLAIN[mode()]),
    ink: () => INK[mode()],
    quietInk: () => QUIET_INK[mode()],
    ring: () => (mode() === "light" ? "#0b4fd6" : "#8ab4ff"),
    mark: () => (mode() === "light" ? "#a3126f" : "#ff8bd1"),
  };
})();

// What "only my code" keeps: the app's, and what stands for frames that nobody knows or named, which may be that
// (Categories#kept? in categories.rb).
sdb.ownCode = (category) => category === "app" || category === "internal";
