// SPDX-License-Identifier: MIT
// Figures over a forward tree: per function, and how much of the time a search matches.
sdb.flameStats = (tree) => {
  const { model, count, parent, func, self, total } = tree;
  const order = new Int32Array(count); // depth first
  const end = new Int32Array(count); // in `order`: one past the last node below
  const rank = new Int32Array(count);
  const functionSelf = new Float64Array(model.functions);
  const functionTotal = new Float64Array(model.functions);

  // One walk: ranks, and per function the time of its outermost frames only, so that recursion counts once.
  const open = new Int32Array(model.functions);
  const stack = [0];
  let at = 0;
  while (stack.length > 0) {
    const n = stack.pop();
    if (n < 0) {
      const left = ~n;
      end[left] = at;
      const f = func[left];
      if (f >= 0 && f < model.functions) open[f]--;
      continue;
    }
    rank[n] = at;
    order[at++] = n;
    const f = func[n];
    if (f >= 0 && f < model.functions) {
      functionSelf[f] += self[n];
      if (open[f]++ === 0) functionTotal[f] += total[n];
    }
    stack.push(~n);
    for (const child of tree.children(n)) stack.push(child);
  }

  // The functions with time in this tree, in no order.
  function functions() {
    const seen = [];
    for (let f = 0; f < model.functions; f++) if (functionTotal[f] > 0) seen.push(f);
    return seen;
  }

  // Time of the stacks with a matching frame, each counted once however many of its frames match; `within` is
  // a forward node, or a list of forward nodes with time of their own.
  function search(hits) {
    const matched = new Uint8Array(count);
    for (let n = 1; n < count; n++) {
      const f = func[n];
      matched[n] = matched[parent[n]] | (f < model.functions ? hits[f] : 0);
    }
    return (within) => {
      let ns = 0;
      if (typeof within === "number") {
        for (let i = rank[within]; i < end[within]; i++) if (matched[order[i]]) ns += self[order[i]];
      } else {
        for (const n of within) if (matched[n]) ns += self[n];
      }
      return ns;
    };
  }

  return { functions, search, selfOf: (f) => functionSelf[f] || 0, totalOf: (f) => functionTotal[f] || 0 };
};
