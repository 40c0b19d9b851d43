// SPDX-License-Identifier: MIT
// The flame graph's page: one state (kept in the URL's fragment), the controls that change it, and what shows it.
const METRIC_LABELS = { wall: "Wall", cpu: "CPU", gvl_wait: "GVL wait", blocked: "Blocked", gc: "GC" };

sdb.run((data, hook) => {
  const model = sdb.flameModel(data);
  document.title = sdb.visible(data.title);
  sdb.byId("title").textContent = sdb.visible(data.title);
  sdb.facts(model.facts);
  const hasTime = (metric) => model.times[metric].some((ns) => ns > 0);
  if (!model.metrics.some(hasTime)) {
    sdb.message(
      "No samples in this selection",
      "The recording holds no time that passed the filters: it was too short, every thread it saw ended before the first tick, or the filters leave nothing over.",
      "sdb doctor tells whether this process can be profiled; sdb status tells what a recording holds.",
    );
    hook.view = () => ({ total: 0, empty: true });
    return;
  }

  const initial = data.initial || {};
  const defaults = {
    m: model.metrics.includes(initial.metric) ? initial.metric : model.metrics[0],
    v: "icicle", r: false, t: "merged", o: Boolean(initial.only_app), q: "", f: initial.focus || "", h: initial.hide || "",
    z: "", tab: "graph", by: "self", down: true,
  };
  const threads = Array.from({ length: model.threads }, (_, i) => String(i));
  const hash = sdb.hashState(defaults, {
    m: model.metrics, v: ["icicle", "flame"], t: ["merged", "each", ...threads], tab: ["graph", "functions"],
    by: ["name", "kind", "self", "total"],
  });
  let state = { ...defaults };
  let forward, tree, stats, hits, searched, patterns;

  const controls = sdb.controls(model, { change, act });
  const tip = sdb.tip(figuresOf);
  const details = sdb.details(figuresOf, act);
  const crumbs = sdb.crumbs(zoomTo);
  const graph = sdb.byId("graph");
  const canvas = sdb.flameCanvas(graph, { onSelect: selectionChanged, onZoom: zoomTo, onHover: (id, event) => tip.show(id, event) });
  const table = sdb.flameTable({ onPick: (f) => change({ q: exactly(f), tab: "graph" }), onSort: (s) => change({ by: s.column, down: s.down }) });
  const showTab = sdb.tabs(["graph", "functions"], (tab, focus) => {
    change({ tab });
    if (focus) sdb.byId("tab-" + tab).focus();
  });
  sdb.palette.legend(sdb.byId("legend"), sdb.palette.CATEGORIES, data.categories);

  const exactly = (f) => "^" + sdb.literal(model.nameOf(f)) + "$";

  // Everything about a node that is said of it, wherever it is said.
  function figuresOf(id) {
    const f = tree.funcOf(id);
    const place = model.placeOf(f) + (model.lineOf(f) > 0 ? ":" + model.lineOf(f) : "");
    return {
      name: model.nameOf(f),
      place,
      kind: sdb.palette.CATEGORIES[model.categoryOf(f)].label,
      total: tree.totalOf(id), self: tree.selfOf(id),
      view: tree.totalOf(canvas.zoomed()), all: tree.totalOf(0),
      isFunction: f >= 0 && f < model.functions,
      functionSelf: stats.selfOf(f), functionTotal: stats.totalOf(f),
      reversed: state.r,
    };
  }

  function rebuild() {
    const began = performance.now();
    const thread = /^\d+$/.test(state.t) ? Number(state.t) : -1;
    forward = sdb.flameTree(model, {
      metric: state.m, thread, perThread: state.t === "each", onlyApp: state.o, focus: patterns.f, hide: patterns.h,
    });
    stats = sdb.flameStats(forward);
    tree = state.r ? sdb.reversedTree(forward) : forward;
    hook.rebuildMs = performance.now() - began;
    search();
    const zoom = sdb.findPath(tree, pathFrom(state.z));
    canvas.setTree(tree, zoom);
    const nothing = sdb.byId("nothing");
    nothing.hidden = tree.totalOf(0) > 0;
    nothing.textContent = "No " + METRIC_LABELS[state.m] + " time in this selection.";
    if (state.m === "gvl_wait" && model.facts.states === "inferred") {
      nothing.textContent += " This Ruby does not tell who waits for the GVL; that needs Ruby 3.2 or newer.";
    }
    zoomed();
  }

  function search() {
    hits = patterns.q && model.matching(patterns.q);
    searched = hits && stats.search(hits);
    canvas.setHits(hits);
  }

  function matchedIn(node) {
    return searched(state.r ? tree.leavesOf(node) : node);
  }

  function showSearch() {
    const output = sdb.byId("search-result");
    if (!hits) {
      output.textContent = "";
      return;
    }
    const zoom = canvas.zoomed();
    const ns = matchedIn(zoom);
    const functions = stats.functions().filter((f) => hits[f] === 1).length;
    const of = zoom > 0 ? " of view" : "";
    output.textContent = sdb.percent(ns, tree.totalOf(zoom)) + of + " · " + sdb.time(ns) + " · " + sdb.plural(functions, "function");
  }

  // Buttons of the selected box and their keys.
  function act(what) {
    const f = tree.funcOf(canvas.selected());
    if (what === "reset") {
      change({ ...defaults, tab: state.tab }, { forced: true });
    } else if (f >= 0 && f < model.functions) {
      const key = { search: "q", focus: "f", hide: "h" }[what];
      const text = exactly(f);
      change({ [key]: what === "hide" && state.h ? state.h + "|" + text : text });
      sdb.announce(what + " " + model.nameOf(f));
    }
  }

  function pathFrom(text) {
    return text === "" ? [] : text.split(".").map((code) => parseInt(code, 36));
  }

  function zoomTo(id) {
    state.z = sdb.pathTo(tree, id).map((f) => f.toString(36)).join(".");
    canvas.zoomTo(id);
    hash.write(state, true);
    zoomed();
  }

  function zoomed() {
    const path = [];
    for (let n = canvas.zoomed(); n >= 0; n = tree.parentOf(n)) path.push(n);
    crumbs.show(path.reverse().map((id) => ({ id, name: model.nameOf(tree.funcOf(id)) })));
    showSearch();
  }

  function selectionChanged(id, quiet) {
    details.show(id);
    if (quiet) return;
    const it = figuresOf(id);
    const callees = tree.children(id).length;
    sdb.announce(
      `${sdb.shorten(it.name, 120)}, ${it.kind}, total ${sdb.time(it.total)}, ${sdb.percent(it.total, it.view)} of view, ` +
        `self ${sdb.time(it.self)}, ${sdb.plural(callees, state.r ? "caller" : "callee")}`,
    );
  }

  // Takes some new values, shows what they change, and remembers them.
  function change(next, { write = true, forced = !write } = {}) {
    const old = state;
    state = { ...state, ...next };
    patterns = controls.patterns(state);
    controls.show(state, forced);
    const differs = (...keys) => keys.some((key) => state[key] !== old[key]) || !tree;
    canvas.setIcicle(state.v === "icicle");
    if (differs("m", "r", "t", "o", "f", "h")) rebuild();
    else if (differs("z")) {
      canvas.zoomTo(sdb.findPath(tree, pathFrom(state.z)), true);
      zoomed();
    }
    if (differs("q")) {
      search();
      showSearch();
    }
    showTab(state.tab);
    if (state.tab === "functions") {
      table.show({ model, stats, total: forward.totalOf(0), hits, sort: { column: state.by, down: state.down } });
    }
    if (write) hash.write(state, false);
    if (differs("m")) {
      sdb.announce(METRIC_LABELS[state.m] + ": " + sdb.time(tree.totalOf(0)) + " in " + sdb.plural(stats.functions().length, "function"));
    } else if (differs("q") && hits) sdb.announce(sdb.byId("search-result").textContent);
  }

  const cycle = (list, now) => list[(list.indexOf(now) + 1) % list.length];
  const inIcicle = (a, b) => () => canvas.walk(state.v === "icicle" ? a : b);
  sdb.keys(graph, {
    view: {
      ArrowLeft: () => canvas.walk("left"),
      ArrowRight: () => canvas.walk("right"),
      ArrowDown: inIcicle("callee", "caller"),
      ArrowUp: inIcicle("caller", "callee"),
      Home: () => canvas.walk("first"),
      End: () => canvas.walk("last"),
      Enter: () => zoomTo(canvas.selected()),
      Escape: () => (canvas.zoomed() > 0 ? zoomTo(tree.parentOf(canvas.zoomed())) : change({ q: "" })),
      n: () => canvas.nextHit(1) || sdb.announce("no match in sight"),
      N: () => canvas.nextHit(-1) || sdb.announce("no match in sight"),
      s: () => act("search"),
      f: () => act("focus"),
      x: () => act("hide"),
      m: () => change({ m: cycle(model.metrics, state.m) }),
      i: () => change({ v: cycle(["icicle", "flame"], state.v) }),
      r: () => change({ r: !state.r, z: "" }),
      t: () => change({ t: cycle(["merged", "each"], state.t), z: "" }),
      o: () => change({ o: !state.o }),
      0: () => act("reset"),
    },
    everywhere: {
      "/": () => (sdb.byId("search").focus(), sdb.byId("search").select()),
    },
  });

  const follow = () => change(hash.read(), { write: false });
  addEventListener("popstate", follow);
  addEventListener("hashchange", follow);
  follow();

  Object.assign(hook, {
    state: () => ({ ...state }),
    contrasts: sdb.palette.contrasts,
    view: () => ({
      metric: state.m, all: tree.totalOf(0), view: tree.totalOf(canvas.zoomed()), zoomed: model.nameOf(tree.funcOf(canvas.zoomed())),
      selected: figuresOf(canvas.selected()), matched: hits ? matchedIn(canvas.zoomed()) : null, nodes: forward.count - 1,
    }),
    boxes: () =>
      canvas.boxes().map((box) =>
        box.id < 0 ? box : { ...box, name: model.nameOf(tree.funcOf(box.id)), total: tree.totalOf(box.id), self: tree.selfOf(box.id) },
      ),
    functions: () => {
      table.show({ model, stats, total: forward.totalOf(0), hits, sort: { column: state.by, down: state.down } });
      return table.rows();
    },
  });
});
