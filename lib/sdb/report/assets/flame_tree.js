// SPDX-License-Identifier: MIT
// The tree of callers and what they call, for one choice of metric, threads and filters.
//
// choice: { metric, thread (-1 all), perThread, onlyApp, focus, hide } with RegExp or null for the last two.
// A hidden frame's time goes to its caller; focus keeps the stacks that pass through a match. Nodes are numbered
// so that a parent comes before its children: totals are one pass from the end. Node 0 is the root.
sdb.flameTree = (model, choice) => {
  const weights = model.times[choice.metric];
  const hidden = model.matching(choice.hide);
  if (choice.onlyApp) {
    for (let f = 0; f < model.functions; f++) if (!sdb.ownCode(model.categoryOf(f))) hidden[f] = 1;
  }
  const focused = choice.focus && model.matching(choice.focus);

  // Whether a stack passes through the focus, itself or a caller.
  const kept = focused && new Uint8Array(model.parent.length);
  if (kept) {
    for (let s = 0; s < kept.length; s++) {
      const up = model.parent[s];
      kept[s] = focused[model.func[s]] | (up < 0 ? 0 : kept[up]);
    }
  }

  let size = 1024;
  let count = 1;
  let parent = new Int32Array(size).fill(-1);
  let func = new Int32Array(size).fill(-1);
  let self = new Float64Array(size);
  let table = new Int32Array(size * 4).fill(-1); // open addressing: (parent, func) -> node

  const slot = (p, f) => ((Math.imul(p, 0x9e3779b1) ^ Math.imul(f + 7, 0x85ebca6b)) >>> 0) & (table.length - 1);
  function grow() {
    size *= 2;
    const wider = (old, fill) => {
      const array = new old.constructor(size).fill(fill);
      array.set(old);
      return array;
    };
    parent = wider(parent, -1);
    func = wider(func, -1);
    self = wider(self, 0);
    table = new Int32Array(size * 4).fill(-1);
    for (let node = 1; node < count; node++) {
      let at = slot(parent[node], func[node]);
      while (table[at] >= 0) at = (at + 1) & (table.length - 1);
      table[at] = node;
    }
  }
  function child(p, f) {
    let at = slot(p, f);
    for (let node = table[at]; node >= 0; node = table[at]) {
      if (parent[node] === p && func[node] === f) return node;
      at = (at + 1) & (table.length - 1);
    }
    if (count === size) {
      grow();
      return child(p, f);
    }
    parent[count] = p;
    func[count] = f;
    table[at] = count;
    return count++;
  }

  // The node of a stack under the root of its group. Only stacks with time on them get nodes.
  const nodeOf = new Int32Array(model.parent.length);
  const stamp = new Int32Array(model.parent.length).fill(-1);
  const pending = [];
  function node(stack, group, root) {
    let s = stack;
    while (s >= 0 && stamp[s] !== group) {
      pending.push(s);
      s = model.parent[s];
    }
    let at = s < 0 ? root : nodeOf[s];
    while (pending.length > 0) {
      s = pending.pop();
      const f = model.func[s];
      if (!hidden[f]) at = child(at, f);
      stamp[s] = group;
      nodeOf[s] = at;
    }
    return at;
  }

  // Cells sorted by group, so that each group walks with its own stamps.
  const groups = choice.perThread ? model.threads : 1;
  const cellsOf = Array.from({ length: groups }, () => []);
  for (let i = 0; i < model.cellStack.length; i++) {
    const thread = model.cellThread[i];
    if (weights[i] > 0 && (choice.thread < 0 || choice.thread === thread) && (!kept || kept[model.cellStack[i]])) {
      cellsOf[choice.perThread ? thread : 0].push(i);
    }
  }
  cellsOf.forEach((cells, group) => {
    if (cells.length === 0) return;
    const root = choice.perThread ? child(0, model.functions + group) : 0;
    for (const i of cells) {
      const at = node(model.cellStack[i], group, root); // may replace `self` by a larger array
      self[at] += weights[i];
    }
  });

  const total = self.slice(0, count);
  for (let n = count - 1; n > 0; n--) total[parent[n]] += total[n];

  // Children of each node, the one with most time first: offsets into one list.
  const start = new Int32Array(count + 1);
  for (let n = 1; n < count; n++) start[parent[n] + 1]++;
  for (let n = 0; n < count; n++) start[n + 1] += start[n];
  const list = new Int32Array(Math.max(count - 1, 0));
  const fill = start.slice(0, count);
  for (let n = 1; n < count; n++) list[fill[parent[n]]++] = n;
  for (let n = 0; n < count; n++) {
    if (start[n + 1] - start[n] > 1) list.subarray(start[n], start[n + 1]).sort((a, b) => total[b] - total[a] || func[a] - func[b]);
  }

  return {
    model, count, parent, func, self, total, perThread: choice.perThread,
    groupRoots: choice.perThread ? [...list.subarray(start[0], start[1])] : [0],
    children: (n) => list.subarray(start[n], start[n + 1]),
    parentOf: (n) => parent[n],
    funcOf: (n) => func[n],
    selfOf: (n) => self[n],
    totalOf: (n) => total[n],
  };
};

// A node as the functions on the way to it from the root, and back: what survives a rebuilt tree.
sdb.pathTo = (tree, node) => {
  const path = [];
  for (let n = node; n > 0; n = tree.parentOf(n)) path.push(tree.funcOf(n));
  return path.reverse();
};

// The deepest node that still exists on that path.
sdb.findPath = (tree, path) => {
  let at = 0;
  for (const func of path) {
    const next = tree.children(at).find((n) => tree.funcOf(n) === func);
    if (next === undefined) break;
    at = next;
  }
  return at;
};
