// SPDX-License-Identifier: MIT
// The stack chart's page: one state (kept in the URL's fragment), the controls that change it, and what shows it.
sdb.run((data, hook) => {
  const model = sdb.stackModel(data);
  document.title = sdb.visible(data.title);
  sdb.byId("title").textContent = sdb.visible(data.title);
  const sums = sdb.spanHead(model);
  if (model.runs === 0) {
    sdb.message(
      "Nothing was seen of this request",
      "It was shorter than the sampling interval, or the log no longer holds the time in which it ran.",
      "sdb ls tells how far back a log goes.",
    );
    hook.view = () => ({ runs: 0, empty: true });
    return;
  }

  const defaults = { a: 0, b: model.length, q: "", h: "", o: false, tab: "graph" };
  const hash = sdb.hashState(defaults, { tab: ["graph", "runs", "holders"] });
  const back = []; // windows to come back to
  let state = { ...defaults };
  let made = null;
  let hits = null;
  let patterns = { q: null, h: null };

  const graph = sdb.byId("graph");
  const tip = sdb.byId("tip");
  const fields = sdb.patternFields({ q: "search", h: "hide" }, graph, change);
  const canvas = sdb.stackCanvas(graph, model, { onSelect: selectionChanged, onRange: showRange, onHover: hoverCall, onLane: hoverLane });
  const runs = sdb.runsTable(model, (run) => (showRange(model.at[run], model.at[run] + model.ns[run]), change({ tab: "graph" })));
  const holders = sdb.holdersTable(model);
  const showTab = sdb.tabs(["graph", "runs", "holders"], (tab, focus) => {
    change({ tab });
    if (focus) sdb.byId("tab-" + tab).focus();
  });
  sdb.palette.legend(sdb.byId("legend"), sdb.palette.CATEGORIES, data.categories);
  sdb.byId("controls").addEventListener("submit", (event) => event.preventDefault());
  sdb.byId("only-app").addEventListener("change", (event) => change({ o: event.target.checked }));
  sdb.byId("whole").addEventListener("click", () => showRange(0, model.length));
  sdb.byId("do-search").addEventListener("click", () => act("search"));
  sdb.byId("do-hide").addEventListener("click", () => act("hide"));

  // What is said of a call wherever it is said: its time, and how that divides into states.
  function figuresOf(id) {
    const call = made.calls[id];
    const states = new Float64Array(model.states.length);
    for (let run = call.first; run <= call.last; run++) states[model.state[run]] += model.ns[run];
    const path = model.placeOf(call.func);
    return {
      name: model.nameOf(call.func),
      place: path + (path && model.lineOf(call.func) > 0 ? ":" + model.lineOf(call.func) : ""),
      kind: call.func < 0 ? sdb.visible(data.span.kind || "span") : sdb.palette.CATEGORIES[model.categoryOf(call.func)].label,
      from: call.from, ns: call.to - call.from, isFunction: call.func >= 0,
      states: model.states.map((state, i) => [sdb.palette.STATES[state].label, states[i]]).filter(([, ns]) => ns > 0),
    };
  }

  const spelled = (states) => states.map(([label, ns]) => label.toLowerCase().replace("gvl", "GVL").replace(/^gc$/, "GC") + " " + sdb.time(ns)).join(" · ");

  function selectionChanged(id, quiet) {
    if (!made) return;
    const it = figuresOf(id);
    sdb.byId("who").textContent = sdb.shorten(it.name, 400);
    sdb.byId("kind").textContent = it.kind;
    sdb.byId("place").textContent = sdb.shorten(it.place, 400);
    const figure = (name, text, more) => sdb.el("div", {}, sdb.el("dt", {}, name), sdb.el("dd", {}, sdb.el("b", {}, text), more || ""));
    sdb.byId("figures").replaceChildren(
      figure("At", it.from > 0 ? sdb.time(it.from) : "0"),
      figure("For", sdb.time(it.ns), " " + sdb.percent(it.ns, model.length) + " of the request"),
      ...it.states.map(([label, ns]) => figure(label, sdb.time(ns))),
    );
    for (const what of ["search", "hide"]) sdb.byId("do-" + what).disabled = !it.isFunction;
    if (!quiet) sdb.announce(`${sdb.shorten(it.name, 120)}, ${it.kind}, at ${sdb.time(it.from)}, for ${sdb.time(it.ns)}: ${spelled(it.states)}`);
  }

  function showTip(event, ...lines) {
    tip.hidden = false;
    tip.replaceChildren(...lines);
    sdb.placeTip(tip, event);
  }

  function hoverCall(id, event) {
    tip.hidden = id < 0 || !event;
    if (tip.hidden) return;
    const it = figuresOf(id);
    showTip(
      event,
      sdb.el("strong", {}, sdb.shorten(it.name, 400)),
      sdb.el("div", { class: "place" }, it.kind + (it.place ? " · " + sdb.shorten(it.place, 400) : "")),
      sdb.el("div", {}, sdb.el("b", {}, sdb.time(it.ns)), " at " + sdb.time(it.from) + " · " + sdb.percent(it.ns, model.length) + " of the request"),
      sdb.el("div", {}, spelled(it.states)),
    );
  }

  function hoverLane(lane, ns, event) {
    const run = model.runAt(ns);
    const holder = run >= 0 && model.holderOf(run);
    if (run < 0 || lane === "axis") return;
    if (lane === "state") {
      showTip(event, sdb.el("strong", {}, sdb.palette.STATES[model.stateOf(run)].label), sdb.el("div", {}, "for " + sdb.time(model.ns[run]) + " at " + sdb.time(model.at[run])));
    } else if (holder) {
      showTip(
        event,
        sdb.el("strong", {}, sdb.shorten(holder.name, 200)),
        sdb.el("div", { class: "place" }, "held the GVL on " + sdb.shorten(holder.thread, 120)),
        ...holder.frames.slice(-5).map((name) => sdb.el("div", {}, sdb.shorten(name, 200))),
      );
    }
  }

  // Time of the runs with a matching frame, each once, inside the window.
  function matchedNs() {
    let ns = 0;
    for (let run = 0; run < model.runs; run++) {
      const part = Math.min(state.b, model.at[run] + model.ns[run]) - Math.max(state.a, model.at[run]);
      if (part > 0 && matches(run)) ns += part;
    }
    return ns;
  }
  const matches = (run) => model.framesAt(run).some((f) => hits[f] === 1);

  function showSearch() {
    const ns = hits ? matchedNs() : 0;
    sdb.byId("search-result").textContent = hits ? sdb.percent(ns, state.b - state.a) + " · " + sdb.time(ns) : "";
  }

  function showRange(a, b, wanted) {
    if (b - a < 1000) return;
    if (a === state.a && b === state.b && wanted === undefined) return;
    back.push([state.a, state.b]);
    change({ a, b }, { wanted });
  }

  function zoom(factor) {
    const call = made.calls[canvas.selected()];
    const middle = Math.min(state.b, Math.max(state.a, (call.from + call.to) / 2));
    const half = ((state.b - state.a) * factor) / 2;
    const a = Math.round(Math.max(0, middle - half));
    showRange(a, Math.round(Math.min(model.length, Math.max(a + 2000, middle + half))));
  }

  function move(part) {
    const width = state.b - state.a;
    const a = Math.round(Math.min(model.length - width, Math.max(0, state.a + part * width)));
    showRange(a, a + width);
  }

  function act(what) {
    const { func } = made.calls[canvas.selected()];
    if (func < 0) return;
    const text = "^" + sdb.literal(model.nameOf(func)) + "$";
    change(what === "search" ? { q: text } : { h: state.h ? state.h + "|" + text : text });
    sdb.announce(what + " " + model.nameOf(func));
  }

  function change(next, { forced = false, wanted } = {}) {
    const old = state;
    state = { ...state, ...next };
    state.a = Math.min(Math.max(0, state.a), model.length - 1);
    if (!(state.b > state.a && state.b <= model.length)) state.b = model.length;
    patterns = fields.parse(state);
    fields.show(state, forced);
    sdb.byId("only-app").checked = state.o;
    const first = !made;
    const differs = (...keys) => first || keys.some((key) => state[key] !== old[key]);
    if (differs("o", "h")) {
      made = sdb.stackCalls(model, { onlyApp: state.o, hide: patterns.h });
      canvas.setCalls(made);
    }
    if (differs("q")) {
      hits = patterns.q && model.matching(patterns.q);
      canvas.setHits(hits);
    }
    if (differs("a", "b") || wanted !== undefined) canvas.setRange(state.a, state.b, wanted);
    showSearch();
    const whole = state.a === 0 && state.b === model.length;
    sdb.byId("whole").disabled = whole;
    sdb.byId("range").textContent = whole ? "the whole " + sdb.time(model.length) : sdb.time(state.b - state.a) + " from " + (sdb.time(state.a)) + " on";
    showTab(state.tab);
    if (state.tab === "runs") runs.show(state.a, state.b, hits && matches);
    if (state.tab === "holders") holders.show(state.a, state.b);
    if (!forced) hash.write(state, differs("a", "b") && !first);
    if (!first && differs("a", "b")) sdb.announce("showing " + sdb.byId("range").textContent);
    else if (!first && differs("q") && hits) sdb.announce(sdb.byId("search-result").textContent);
  }

  sdb.keys(graph, {
    view: {
      ArrowLeft: () => canvas.walk("left"),
      ArrowRight: () => canvas.walk("right"),
      ArrowDown: () => canvas.walk("callee"),
      ArrowUp: () => canvas.walk("caller"),
      Home: () => canvas.walk("first"),
      End: () => canvas.walk("last"),
      Enter: () => showRange(made.calls[canvas.selected()].from, made.calls[canvas.selected()].to, canvas.selected()),
      Escape() {
        const [a, b] = back.pop() || [0, model.length];
        if (a === state.a && b === state.b) change({ q: "" });
        else change({ a, b });
      },
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      "[": () => move(-0.5),
      "]": () => move(0.5),
      n: () => canvas.nextHit(1) || sdb.announce("no match in sight"),
      N: () => canvas.nextHit(-1) || sdb.announce("no match in sight"),
      s: () => act("search"),
      x: () => act("hide"),
      o: () => change({ o: !state.o }),
      0: () => showRange(0, model.length),
    },
    everywhere: {
      "/": () => (sdb.byId("search").focus(), sdb.byId("search").select()),
    },
  });

  const follow = () => change(hash.read(), { forced: true });
  addEventListener("popstate", follow);
  addEventListener("hashchange", follow);
  follow();

  Object.assign(hook, {
    state: () => ({ ...state }),
    contrasts: sdb.palette.contrasts,
    view: () => ({
      runs: model.runs, length: model.length, from: state.a, to: state.b, matched: hits ? matchedNs() : null, calls: made.calls.length - 1,
      states: Object.fromEntries(model.states.map((name, i) => [name, sums[i]])), selected: figuresOf(canvas.selected()),
    }),
    calls: () => made.calls.slice(1).map((call) => ({ name: model.nameOf(call.func), depth: call.depth, from: call.from, to: call.to })),
    holders: () => holders.show(state.a, state.b),
    boxes: () => canvas.boxes().map((box) => (box.id < 0 ? box : { ...box, name: model.nameOf(made.calls[box.id].func) })),
  });
});
