// SPDX-License-Identifier: MIT
// The parts around the stack chart: facts, sums of the states, and the two tables.
sdb.spanHead = (model) => {
  const { span } = model;
  const text = (value) => sdb.shorten(sdb.visible(value), 200);
  const list = [];
  if (span.kind || span.id) list.push([span.kind, span.id].filter(Boolean).map(text).join(" "));
  list.push(sdb.time(model.length) + (span.open ? ", still open" : ""));
  // an HTTP status is a number, how anything else ended a word
  if (span.status != null && span.status !== "") list.push((/^\d+$/.test(span.status) ? "status " : "") + text(span.status));
  if (span.start) list.push(text(span.start).replace("T", " ").replace(/(\.\d{3})\d*/, "$1").replace("Z", " UTC"));
  if (span.pid) list.push("pid " + span.pid);
  if (span.tid) list.push("thread " + span.tid);
  if (span.allocations != null) list.push(sdb.count(span.allocations) + " allocations");
  if (span.trace_id) list.push("trace " + text(span.trace_id));
  for (const [key, value] of Object.entries(span.tags || {})) list.push(text(key) + "=" + text(value));
  sdb.byId("facts").replaceChildren(...list.map((fact) => sdb.el("li", {}, fact)));

  // From the runs themselves; the recorder's own exact figures beside them where they differ is no use here.
  const sums = new Float64Array(model.states.length);
  for (let run = 0; run < model.runs; run++) sums[model.state[run]] += model.ns[run];
  const items = model.states.flatMap((state, i) =>
    sums[i] > 0
      ? [sdb.el("li", {}, sdb.palette.swatch(sdb.palette.STATES[state]), " ", sdb.palette.STATES[state].label, " ", sdb.el("b", {}, sdb.time(sums[i])), " ", sdb.percent(sums[i], model.length))]
      : [],
  );
  if (span.cpu_ns != null) items.push(sdb.el("li", {}, "CPU ", sdb.el("b", {}, sdb.time(span.cpu_ns))));
  sdb.byId("states").replaceChildren(...items);
  return sums;
};

sdb.runsTable = (model, onPick) => {
  const PAGE = 200;
  const body = sdb.byId("runs-body");
  const more = sdb.byId("runs-more");
  let shown = PAGE;
  let list = [];
  more.addEventListener("click", () => {
    const first = shown;
    shown += PAGE;
    fill();
    body.rows[first]?.querySelector("button").focus();
  });

  function row(run) {
    const frames = model.framesAt(run);
    const f = frames.length > 0 ? frames[frames.length - 1] : -2;
    const place = f >= 0 && model.placeOf(f) ? sdb.shorten(model.placeOf(f), 300) + (model.lineAt(run) > 0 ? ":" + model.lineAt(run) : "") : "";
    const holder = model.holderOf(run);
    return sdb.el(
      "tr",
      {},
      sdb.el("td", { class: "number" }, sdb.el("button", { type: "button", class: "link", title: "Show in the chart", onclick: () => onPick(run) }, sdb.time(model.at[run]))),
      sdb.el("td", { class: "number" }, sdb.time(model.ns[run])),
      sdb.el("td", { class: "kind" }, sdb.palette.STATES[model.stateOf(run)].label),
      sdb.el("td", {}, f >= 0 ? sdb.shorten(model.nameOf(f), 300) : "no Ruby frames", sdb.el("span", { class: "place" }, place)),
      sdb.el("td", { class: "kind" }, holder ? sdb.shorten(holder.name + " · " + holder.thread, 120) : ""),
    );
  }

  function fill() {
    body.replaceChildren(...list.slice(0, shown).map(row));
    more.hidden = list.length <= shown;
    more.textContent = "Show " + sdb.count(Math.min(PAGE, list.length - shown)) + " more of " + sdb.count(list.length);
  }

  return {
    // Runs that overlap the window and, with a search, have a matching frame.
    show(from, to, matches) {
      shown = PAGE;
      list = [];
      for (let run = 0; run < model.runs; run++) {
        if (model.at[run] < to && model.at[run] + model.ns[run] > from && (!matches || matches(run))) list.push(run);
      }
      const what = matches ? " that match the search" : "";
      sdb.byId("runs-about").textContent = sdb.plural(list.length, "run") + what + (list.length < model.runs ? " of " + sdb.count(model.runs) : "") + " in this window";
      fill();
    },
    rows: () => list,
  };
};

// Who held the GVL while this span waited for it, longest first, within a window.
sdb.holdersTable = (model) => ({
  show(from, to) {
    const sums = new Map();
    let waited = 0;
    for (let run = 0; run < model.runs; run++) {
      const ns = Math.min(to, model.at[run] + model.ns[run]) - Math.max(from, model.at[run]);
      if (ns <= 0 || model.stateOf(run) !== "gvl_wait") continue;
      waited += ns;
      const holder = model.holderOf(run);
      sums.set(holder, (sums.get(holder) || 0) + ns);
    }
    const rows = [...sums].sort((a, b) => b[1] - a[1]);
    sdb.byId("holders-about").textContent = waited > 0 ? "Waited " + sdb.time(waited) + " for the GVL in this window" : "No waiting for the GVL in this window";
    sdb.byId("holders-body").replaceChildren(
      ...rows.map(([holder, ns]) =>
        sdb.el(
          "tr",
          {},
          sdb.el("td", { class: "number" }, sdb.time(ns) + " · " + sdb.percent(ns, waited)),
          sdb.el("td", {}, holder ? sdb.shorten(holder.name, 200) : "not known"),
          sdb.el("td", {}, holder ? sdb.shorten(holder.thread, 120) : ""),
          sdb.el("td", {}, holder ? holder.frames.slice(-6).map((name) => sdb.shorten(name, 120)).join(" › ") : "nobody was seen holding it, or the log does not tell"),
        ),
      ),
    );
    return rows.map(([holder, ns]) => ({ name: holder ? holder.name : null, ns }));
  },
});
