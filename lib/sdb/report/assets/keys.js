// SPDX-License-Identifier: MIT
// Keyboard: the help dialog and the keys of a view. Single letters only act while the view itself has the focus,
// so that they cannot be hit by speech input or by typing elsewhere; "/" and "?" act everywhere outside of fields.
sdb.keys = (host, { view, everywhere }) => {
  const dialog = sdb.byId("help");
  const typing = (target) => target.closest?.("input, select, textarea, dialog");
  const help = () => dialog.showModal();
  sdb.byId("help-open").addEventListener("click", help);
  sdb.byId("help-close").addEventListener("click", () => dialog.close());

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const act = (host.contains(event.target) && view[event.key]) || everywhere[event.key] || (event.key === "?" && help);
    if (!act) return;
    event.preventDefault();
    act();
  });
};

// Tabs as the ARIA practices have them: arrows move, the panel follows.
sdb.tabs = (ids, onShow) => {
  const show = (id, focus) => {
    for (const other of ids) {
      const on = other === id;
      const tab = sdb.byId("tab-" + other);
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      sdb.byId("panel-" + other).hidden = !on;
      if (on && focus) tab.focus();
    }
  };
  ids.forEach((id, i) => {
    const tab = sdb.byId("tab-" + id);
    tab.addEventListener("click", () => onShow(id));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      onShow(ids[(i + step + ids.length) % ids.length], true);
    });
  });
  return show;
};

// A view's state in the URL's fragment. defaults gives each key and its type; only what differs is written.
// allowed: per key the values that make sense, where not every one does.
sdb.hashState = (defaults, allowed) => {
  const read = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    const state = { ...defaults };
    for (const [key, standard] of Object.entries(defaults)) {
      if (!given.has(key)) continue;
      const text = given.get(key);
      if (allowed[key] && !allowed[key].includes(text)) continue;
      if (typeof standard === "boolean") state[key] = text === "1";
      else if (typeof standard === "number") state[key] = Number.isFinite(+text) ? +text : standard;
      else state[key] = text;
    }
    return state;
  };
  const write = (state, push) => {
    const given = new URLSearchParams();
    for (const [key, standard] of Object.entries(defaults)) {
      if (state[key] !== standard) given.set(key, typeof standard === "boolean" ? (state[key] ? "1" : "0") : state[key]);
    }
    const hash = "#" + given;
    if (hash === (location.hash || "#")) return;
    history[push ? "pushState" : "replaceState"](null, "", hash);
  };
  return { read, write };
};
