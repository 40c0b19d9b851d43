// SPDX-License-Identifier: MIT
// Light, dark, or what the system says. The colours of the page are light-dark() in base.css and follow
// color-scheme by themselves; a canvas has to be told.
sdb.theme = (() => {
  const NAMES = ["auto", "light", "dark"];
  const system = matchMedia("(prefers-color-scheme: dark)");
  const listeners = [];
  let chosen = "auto";

  const dark = () => (chosen === "auto" ? system.matches : chosen === "dark");

  function apply() {
    document.documentElement.style.colorScheme = chosen === "auto" ? "light dark" : chosen;
    const button = sdb.byId("theme");
    button.textContent = "Theme: " + chosen;
    for (const listener of listeners) listener(dark());
  }

  // Storage is refused in some browsers for files; the choice then lasts as long as the page.
  function remembered() {
    try {
      const name = localStorage.getItem("sdb-theme");
      return NAMES.includes(name) ? name : "auto";
    } catch {
      return "auto";
    }
  }

  function set(name) {
    chosen = name;
    try {
      localStorage.setItem("sdb-theme", name);
    } catch {
      // see remembered()
    }
    apply();
  }

  function start() {
    chosen = remembered();
    system.addEventListener("change", apply);
    sdb.byId("theme").addEventListener("click", () => set(NAMES[(NAMES.indexOf(chosen) + 1) % NAMES.length]));
    apply();
  }

  return { start, set, dark, onChange: (listener) => listeners.push(listener) };
})();
