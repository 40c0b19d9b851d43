// SPDX-License-Identifier: MIT
// The parts around the flame graph: controls, breadcrumb, tooltip, and the strip about the selected box.
sdb.controls = (model, { change, act }) => {
  const form = sdb.byId("controls");
  const fields = sdb.patternFields({ q: "search", f: "focus", h: "hide" }, sdb.byId("graph"), change);
  form.addEventListener("submit", (event) => event.preventDefault());

  sdb.byId("metrics").append(
    ...model.metrics.map((metric) => {
      const sum = model.times[metric].reduce((a, b) => a + b, 0);
      return sdb.el(
        "label",
        {},
        sdb.el("input", { type: "radio", name: "metric", value: metric }),
        sdb.el("span", {}, METRIC_LABELS[metric], " ", sdb.el("small", {}, sdb.time(sum))),
      );
    }),
  );

  const select = sdb.byId("thread");
  const perThread = new Float64Array(model.threads);
  model.cellThread.forEach((thread, i) => (perThread[thread] += model.times[model.metrics[0]][i]));
  const order = [...perThread.keys()].filter((t) => perThread[t] > 0).sort((a, b) => perThread[b] - perThread[a]);
  select.append(...order.map((t) => sdb.el("option", { value: t }, sdb.shorten(model.threadLabels[t], 60))));
  select.disabled = order.length < 2;

  form.addEventListener("change", (event) => {
    const { name, value, id, checked } = event.target;
    if (name === "metric") change({ m: value });
    if (name === "shape") change({ v: value });
    if (name === "order") change({ r: value === "callers", z: "" });
    if (id === "thread") change({ t: value, z: "" });
    if (id === "only-app") change({ o: checked });
  });
  sdb.byId("reset").addEventListener("click", () => act("reset"));

  return {
    patterns: fields.parse,
    // forced: also over what is being typed just now.
    show(state, forced) {
      const radio = (name, value) => (form.querySelector(`input[name=${name}][value=${value}]`).checked = true);
      radio("metric", state.m);
      radio("shape", state.v);
      radio("order", state.r ? "callers" : "callees");
      select.value = state.t;
      if (select.selectedIndex < 0) select.value = "merged";
      sdb.byId("only-app").checked = state.o;
      fields.show(state, forced);
    },
  };
};

sdb.crumbs = (onZoom) => {
  const MOST = 12; // the middle of a longer way is left out
  const host = sdb.byId("crumbs");
  return {
    // path: [{ id, name }] from the root to what is zoomed to
    show(path) {
      const skipped = path.length > MOST ? path.length - MOST : 0;
      const shown = skipped ? [path[0], null, ...path.slice(skipped + 1)] : path;
      const last = path[path.length - 1];
      host.replaceChildren(
        ...shown.map((step) => {
          if (!step) return sdb.el("li", {}, sdb.el("span", { class: "skipped" }, "… " + skipped + " more …"));
          const name = sdb.shorten(sdb.withoutNamespaces(step.name), 60);
          if (step === last) return sdb.el("li", { "aria-current": "true" }, sdb.el("span", {}, name));
          return sdb.el("li", {}, sdb.el("button", { type: "button", class: "link", onclick: () => onZoom(step.id) }, name));
        }),
      );
      host.scrollLeft = host.scrollWidth;
    },
  };
};

sdb.tip = (figuresOf) => {
  const tip = sdb.byId("tip");
  return {
    show(id, event) {
      tip.hidden = id < 0 || !event;
      if (tip.hidden) return;
      const it = figuresOf(id);
      tip.replaceChildren(
        sdb.el("strong", {}, sdb.shorten(it.name, 400)),
        sdb.el("div", { class: "place" }, it.kind + (it.place ? " · " + sdb.shorten(it.place, 400) : "")),
        sdb.el("div", {}, sdb.el("b", {}, sdb.time(it.total)), " total · " + sdb.percent(it.total, it.view) + " of view · " + sdb.percent(it.total, it.all) + " of all"),
        sdb.el("div", {}, sdb.el("b", {}, sdb.time(it.self)), it.reversed ? " where the stack begins" : " self · " + sdb.percent(it.self, it.view) + " of view"),
      );
      sdb.placeTip(tip, event);
    },
  };
};

sdb.details = (figuresOf, act) => {
  for (const what of ["search", "focus", "hide"]) sdb.byId("do-" + what).addEventListener("click", () => act(what));
  return {
    show(id) {
      const it = figuresOf(id);
      sdb.byId("who").textContent = id === 0 ? "All" : sdb.shorten(it.name, 400);
      sdb.byId("kind").textContent = id === 0 ? "everything that passed the filters" : it.kind;
      sdb.byId("place").textContent = sdb.shorten(it.place, 400);
      const figure = (name, ns, whole, of) =>
        sdb.el("div", {}, sdb.el("dt", {}, name), sdb.el("dd", {}, sdb.el("b", {}, sdb.time(ns)), of && ns > 0 ? " " + sdb.percent(ns, whole) + of : ""));
      const figures = [figure("Total", it.total, it.view, " of view, " + sdb.percent(it.total, it.all) + " of all")];
      if (!it.reversed) figures.push(figure("Self", it.self, it.view, " of view"));
      if (it.isFunction) {
        figures.push(figure("Function total", it.functionTotal, it.all, ""), figure("Function self", it.functionSelf, it.all, ""));
      }
      sdb.byId("figures").replaceChildren(...figures);
      for (const what of ["search", "focus", "hide"]) sdb.byId("do-" + what).disabled = !it.isFunction;
    },
  };
};
