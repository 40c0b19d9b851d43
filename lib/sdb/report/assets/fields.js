// SPDX-License-Identifier: MIT
// Text fields that hold regular expressions: taken a moment after typing, or at once with Enter; Enter and Escape
// lead to `home`. ids: { state key: element id }.
sdb.patternFields = (ids, home, change) => {
  const typed = new Set(); // fields whose text has not been taken yet
  const good = Object.fromEntries(Object.keys(ids).map((key) => [key, null]));
  for (const [key, id] of Object.entries(ids)) {
    const field = sdb.byId(id);
    const take = () => typed.delete(key) && change({ [key]: field.value });
    const later = sdb.debounce(150, take);
    field.addEventListener("input", () => (typed.add(key), later()));
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") take();
      if (event.key === "Escape" || event.key === "Enter") home.focus();
    });
  }

  return {
    // The patterns of a state. A wrong one marks its field and leaves the last good one in place.
    parse(state) {
      for (const [key, id] of Object.entries(ids)) {
        const field = sdb.byId(id);
        try {
          good[key] = sdb.pattern(state[key]);
          field.removeAttribute("aria-invalid");
          field.title = "";
        } catch (error) {
          field.setAttribute("aria-invalid", "true");
          field.title = error.message;
          sdb.announce("not a valid pattern");
        }
      }
      return { ...good };
    },
    // forced: also over what is being typed just now.
    show(state, forced) {
      for (const [key, id] of Object.entries(ids)) {
        const field = sdb.byId(id);
        if (field.value !== state[key] && (forced || !typed.has(key))) field.value = state[key];
      }
    },
  };
};
