// SPDX-License-Identifier: MIT
// The recording as the page keeps it: functions, stacks (a caller comes before what it calls), and cells: the
// time a thread spent on a stack itself. Trees are built from it for each choice of the user.
sdb.flameModel = (data) => {
  const c = data.columns;
  const ints = (values) => Int32Array.from(values);
  const strings = data.strings.map(sdb.visible);
  const functions = c.func_name.length;
  const stackUp = c.stack_up;
  const parent = new Int32Array(stackUp.length);
  for (let i = 0; i < parent.length; i++) parent[i] = stackUp[i] === 0 ? -1 : i - stackUp[i];

  const name = ints(c.func_name);
  const path = ints(c.func_path);
  const place = ints(c.func_place);
  const category = ints(c.func_category);
  const threadLabels = data.threads.map((thread) => {
    const label = thread.name ? sdb.visible(thread.name) : "thread " + thread.tid;
    return data.threads.some((other) => other.pid !== thread.pid) ? label + " · pid " + thread.pid : label;
  });
  const internal = data.categories.indexOf("internal");

  // Functions above `functions` stand for threads, so that a thread can be a frame of the tree.
  return {
    functions,
    threads: data.threads.length,
    threadLabels,
    facts: data.facts || {},
    metrics: data.metrics,
    parent,
    func: ints(c.stack_func),
    cellStack: ints(c.cell_stack),
    cellThread: ints(c.cell_thread),
    times: Object.fromEntries(data.metrics.map((metric) => [metric, c[metric]])),
    nameOf: (f) => (f < 0 ? "all" : f < functions ? strings[name[f]] : threadLabels[f - functions]),
    pathOf: (f) => (f < 0 || f >= functions || path[f] === 0 ? "" : strings[path[f] - 1]),
    // as people read it
    placeOf: (f) => (f < 0 || f >= functions || place[f] === 0 ? "" : strings[place[f] - 1]),
    lineOf: (f) => (f < 0 || f >= functions ? 0 : c.func_line[f]),
    categoryOf: (f) => data.categories[f < 0 || f >= functions ? internal : category[f]],
    // 1 for each function whose name or path matches; all 0 for no pattern.
    matching(pattern) {
      const hits = new Uint8Array(functions);
      if (!pattern) return hits;
      const tested = new Map(); // many functions share a path
      const test = (text) => {
        if (!tested.has(text)) tested.set(text, pattern.test(text));
        return tested.get(text);
      };
      for (let f = 0; f < functions; f++) {
        hits[f] = test(strings[name[f]]) || (path[f] > 0 && test(strings[path[f] - 1])) ? 1 : 0;
      }
      return hits;
    },
  };
};
