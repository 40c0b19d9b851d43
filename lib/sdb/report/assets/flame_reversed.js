// SPDX-License-Identifier: MIT
// The tree upside down: the functions that spent the time themselves, and below each who called it.
//
// Built on demand: a node holds the nodes of the forward tree whose stacks it stands for ("leaves"), and for
// each where it has got to on the way up to the root ("cursors"); its children appear when somebody asks. The
// whole of it can be thousands of times larger than what fits on a screen.
sdb.reversedTree = (forward) => {
  const functions = forward.model.functions + forward.model.threads;
  const parent = [-1];
  const func = [-1];
  const total = [forward.totalOf(0)];
  const self = [0];
  const leaves = [null];
  const cursors = [null];
  const known = [null]; // children, once asked for
  const isTop = new Uint8Array(forward.count); // where walking up stops
  for (const root of forward.groupRoots) isTop[root] = 1;

  const childOf = new Int32Array(functions).fill(-1); // of the node whose children are being made
  const room = []; // per child of that node: how many leaves

  // Makes the children of `node`: one per function in keyOf(i), with the leaves for which it is that; -1 is none.
  function split(node, keyOf, cursorOf) {
    const from = leaves[node];
    const found = [];
    const first = parent.length;
    for (let i = 0; i < from.length; i++) {
      const f = keyOf(i);
      if (f < 0) {
        self[node] += forward.self[from[i]];
        continue;
      }
      let child = childOf[f];
      if (child < 0) {
        child = childOf[f] = parent.length;
        parent.push(node);
        func.push(f);
        total.push(0);
        self.push(0);
        known.push(null);
        found.push(child);
        room[child - first] = 0;
      }
      total[child] += forward.self[from[i]];
      room[child - first]++;
    }
    for (const child of found) {
      leaves[child] = new Int32Array(room[child - first]);
      cursors[child] = new Int32Array(room[child - first]);
      room[child - first] = 0;
    }
    for (let i = 0; i < from.length; i++) {
      const f = keyOf(i);
      if (f < 0) continue;
      const child = childOf[f];
      const at = room[child - first]++;
      leaves[child][at] = from[i];
      cursors[child][at] = cursorOf(i);
    }
    for (const child of found) childOf[func[child]] = -1;
    found.sort((a, b) => total[b] - total[a] || func[a] - func[b]);
    known[node] = found;
    return found;
  }

  function children(node) {
    if (known[node]) return known[node];
    const at = cursors[node];
    return split(
      node,
      (i) => (isTop[at[i]] ? -1 : forward.func[at[i]]),
      (i) => forward.parent[at[i]],
    );
  }

  // The root: every node with time of its own. Where the forward tree has threads, so has the first level here.
  const own = [];
  for (let n = 0; n < forward.count; n++) if (forward.self[n] > 0) own.push(n);
  leaves[0] = cursors[0] = Int32Array.from(own);
  if (forward.perThread) {
    const thread = new Int32Array(forward.count);
    for (let n = 1; n < forward.count; n++) thread[n] = isTop[n] ? forward.func[n] : thread[forward.parent[n]];
    split(0, (i) => thread[own[i]], (i) => own[i]);
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
