// SPDX-License-Identifier: MIT
// The functions of the current selection as a table: what the picture shows, for everyone who cannot or does not
// want to read it.
sdb.flameTable = ({ onPick, onSort }) => {
  const PAGE = 200;
  const COLUMNS = {
    name: { down: false, value: (f, view) => view.model.nameOf(f).toLowerCase() },
    kind: { down: false, value: (f, view) => view.model.categoryOf(f) },
    self: { down: true, value: (f, view) => view.stats.selfOf(f) },
    total: { down: true, value: (f, view) => view.stats.totalOf(f) },
  };
  const body = sdb.byId("functions-body");
  const more = sdb.byId("functions-more");
  const about = sdb.byId("functions-about");
  let shown = PAGE;
  let rows = [];
  let view = null;

  for (const name of Object.keys(COLUMNS)) {
    sdb.byId("sort-" + name).addEventListener("click", () => {
      const again = view.sort.column === name;
      onSort({ column: name, down: again ? !view.sort.down : COLUMNS[name].down });
    });
  }
  more.addEventListener("click", () => {
    const first = shown;
    shown += PAGE;
    fill();
    body.rows[first]?.querySelector("button").focus();
  });

  function figure(ns, whole) {
    const bar = sdb.el("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = (whole > 0 ? (100 * ns) / whole : 0) + "%";
    return sdb.el("td", { class: "figure" }, bar, sdb.el("span", { class: "ns" }, sdb.time(ns)), sdb.el("span", { class: "share" }, sdb.percent(ns, whole)));
  }

  function row(f) {
    const { model, stats, total } = view;
    const name = sdb.shorten(model.nameOf(f), 300);
    const place = model.placeOf(f) ? sdb.shorten(model.placeOf(f), 300) + (model.lineOf(f) ? ":" + model.lineOf(f) : "") : "";
    return sdb.el(
      "tr",
      {},
      figure(stats.selfOf(f), total),
      figure(stats.totalOf(f), total),
      sdb.el(
        "th",
        { scope: "row" },
        sdb.el("button", { type: "button", class: "link", title: "Show in the graph", onclick: () => onPick(f) }, name),
        sdb.el("span", { class: "place" }, place),
      ),
      sdb.el("td", { class: "kind" }, sdb.palette.CATEGORIES[model.categoryOf(f)].label),
    );
  }

  function fill() {
    body.replaceChildren(...rows.slice(0, shown).map(row));
    more.hidden = rows.length <= shown;
    more.textContent = "Show " + sdb.count(Math.min(PAGE, rows.length - shown)) + " more of " + sdb.count(rows.length);
    about.textContent = view.filtered
      ? sdb.plural(rows.length, "function") + " of " + sdb.count(view.all) + " match the search"
      : sdb.plural(rows.length, "function");
  }

  return {
    // next: { model, stats, total, sort, hits }
    show(next) {
      view = next;
      shown = PAGE;
      const all = next.stats.functions();
      rows = next.hits ? all.filter((f) => next.hits[f] === 1) : all;
      view.all = all.length;
      view.filtered = Boolean(next.hits);
      const { column, down } = next.sort;
      const keys = new Map(rows.map((f) => [f, COLUMNS[column].value(f, view)]));
      rows.sort((a, b) => {
        const [x, y] = [keys.get(a), keys.get(b)];
        const order = x < y ? -1 : x > y ? 1 : 0;
        return (down ? -order : order) || next.stats.totalOf(b) - next.stats.totalOf(a) || a - b;
      });
      for (const name of Object.keys(COLUMNS)) {
        const header = sdb.byId("sort-" + name).closest("th");
        if (name === column) header.setAttribute("aria-sort", down ? "descending" : "ascending");
        else header.removeAttribute("aria-sort");
      }
      fill();
    },
    // For tests and the picture's twin: all rows in order.
    rows: () => rows.map((f) => ({ name: view.model.nameOf(f), self: view.stats.selfOf(f), total: view.stats.totalOf(f) })),
  };
};
