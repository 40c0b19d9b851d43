// SPDX-License-Identifier: MIT
// The tree upside down: the functions that spent the time themselves, and below each who called it.
//
// Built on demand: a node holds the nodes of the forward tree whose stacks it stands for ("cursors", one for
// each stack, walking up as the reversed tree goes down); its children appear when somebody asks. The whole
// of it can be thousands of times larger than what fits on a screen.
sdb.reversedTree = (forward) => {
  const parent = [-1];
  const func = [-1];
  const total = [forward.totalOf(0)];
  const self = [0];
  const leaves = [null]; // forward nodes with time of their own
  const cursors = [null]; // where each of them has got to
  const known = [null]; // children, once asked for
  const isTop = new Uint8Array(forward.count); // where walking up stops
  const group = new Int32Array(forward.count);
  for (const root of forward.groupRoots) isTop[root] = 1;

  function add(up, f) {
    parent.push(up);
    func.push(f);
    total.push(0);
    self.push(0);
    leaves.push([]);
    cursors.push([]);
    known.push(null);
    return parent.length - 1;
  }

  function put(node, leaf, cursor) {
    leaves[node].push(leaf);
    cursors[node].push(cursor);
    total[node] += forward.self[leaf];
  }

  // First level: by thread where the forward tree has threads, else the leaves themselves.
  leaves[0] = [];
  cursors[0] = [];
  const perThread = forward.groupRoots.length !== 1 || forward.groupRoots[0] !== 0;
  if (perThread) {
    known[0] = forward.groupRoots.map((root) => add(0, forward.func[root]));
    forward.groupRoots.forEach((root, i) => (group[root] = known[0][i]));
  }
  for (let n = 0; n < forward.count; n++) {
    if (n > 0 && perThread && !isTop[n]) group[n] = group[forward.parent[n]];
    if (forward.self[n] > 0) {
      if (perThread) put(group[n], n, n);
      leaves[0].push(n);
      if (!perThread) cursors[0].push(n);
    }
  }

  const childOf = new Map();
  function children(node) {
    if (known[node]) return known[node];
    const found = [];
    childOf.clear();
    const from = leaves[node];
    for (let i = 0; i < from.length; i++) {
      const cursor = cursors[node][i];
      if (isTop[cursor]) {
        self[node] += forward.self[from[i]];
        continue;
      }
      const f = forward.func[cursor];
      let child = childOf.get(f);
      if (child === undefined) {
        child = add(node, f);
        childOf.set(f, child);
        found.push(child);
      }
      put(child, from[i], forward.parent[cursor]);
    }
    found.sort((a, b) => total[b] - total[a] || func[a] - func[b]);
    known[node] = found;
    return found;
  }

  return {
    model: forward.model,
    reversed: true,
    children,
    parentOf: (n) => parent[n],
    funcOf: (n) => func[n],
    totalOf: (n) => total[n],
    selfOf: (n) => (children(n), self[n]), // the part whose stacks begin here
    leavesOf: (n) => leaves[n],
  };
};
