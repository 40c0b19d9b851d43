// SPDX-License-Identifier: MIT
// One span over time: runs (a stretch in one state on one stack) and the calls they are made of.
//
// A call is a function for as long as it stays at its place on the stack while everything below it stays too.
// What happens between two samples is not known, so a call left and entered again in between counts as one.
sdb.stackModel = (data) => {
  const c = data.columns;
  const strings = data.strings.map(sdb.visible);
  const runs = c.run_at.length;
  const stackUp = c.stack_up;
  const nameOf = (f) => (f < 0 ? sdb.visible(data.span.name || "span") : strings[c.func_name[f]]);
  const pathOf = (f) => (f < 0 || c.func_path[f] === 0 ? "" : strings[c.func_path[f] - 1]);
  // as people read it
  const placeOf = (f) => (f < 0 || c.func_place[f] === 0 ? "" : strings[c.func_place[f] - 1]);
  const categoryOf = (f) => (f < 0 ? "internal" : data.categories[c.func_category[f]]);

  // Functions of a stack, root first.
  const framesOf = (stack) => {
    const frames = [];
    for (let s = stack; s >= 0; s = stackUp[s] === 0 ? -1 : s - stackUp[s]) frames.push(c.stack_func[s]);
    return frames.reverse();
  };
  const frames = new Map();
  const framesAt = (run) => {
    const stack = c.run_stack[run] - 1;
    if (!frames.has(stack)) frames.set(stack, framesOf(stack));
    return frames.get(stack);
  };

  function matching(pattern) {
    const hits = new Uint8Array(c.func_name.length);
    for (let f = 0; pattern && f < hits.length; f++) hits[f] = pattern.test(nameOf(f)) || pattern.test(pathOf(f)) ? 1 : 0;
    return hits;
  }

  const holders = data.holders.map((holder) => ({
    name: sdb.visible(holder.span_name || "no request"),
    thread: sdb.visible(holder.thread || "unknown thread"),
    frames: holder.frames.map((f) => strings[f]),
  }));

  return {
    runs, nameOf, pathOf, placeOf, categoryOf, matching, framesAt, holders,
    span: data.span,
    functions: c.func_name.length,
    length: Math.max(data.span.wall_ns || 0, runs > 0 ? c.run_at[runs - 1] + c.run_ns[runs - 1] : 0),
    at: c.run_at,
    ns: c.run_ns,
    state: c.run_state,
    stateOf: (run) => data.states[c.run_state[run]],
    states: data.states,
    holderOf: (run) => (c.run_holder[run] > 0 ? holders[c.run_holder[run] - 1] : null),
    lineAt: (run) => (c.run_stack[run] > 0 ? c.stack_line[c.run_stack[run] - 1] : 0),
    lineOf: (f) => (f < 0 ? 0 : c.func_line[f]),
    // The run at a time, -1 for none.
    runAt(ns) {
      let low = 0;
      let high = runs - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (c.run_at[middle] <= ns) low = middle;
        else high = middle - 1;
      }
      return runs > 0 && ns >= c.run_at[low] && ns < c.run_at[low] + c.run_ns[low] ? low : -1;
    },
  };
};

// The calls, for a choice of frames to leave out: per depth in order of time. Call 0 is the span itself.
sdb.stackCalls = (model, { onlyApp, hide }) => {
  const hidden = model.matching(hide);
  if (onlyApp) for (let f = 0; f < hidden.length; f++) if (!sdb.ownCode(model.categoryOf(f))) hidden[f] = 1;
  const calls = [{ func: -1, depth: 0, parent: -1, from: 0, to: model.length, first: 0, last: model.runs - 1 }];
  const rows = [[0]];
  const open = [0];
  let end = -1;
  for (let run = 0; run < model.runs; run++) {
    const at = model.at[run];
    const frames = model.framesAt(run).filter((f) => hidden[f] === 0);
    let same = 0;
    if (at === end) while (same < frames.length && same + 1 < open.length && calls[open[same + 1]].func === frames[same]) same++;
    open.length = same + 1;
    end = at + model.ns[run];
    for (let depth = 1; depth <= same; depth++) {
      calls[open[depth]].to = end;
      calls[open[depth]].last = run;
    }
    for (let depth = same + 1; depth <= frames.length; depth++) {
      open.push(calls.length);
      (rows[depth] ||= []).push(calls.length);
      calls.push({ func: frames[depth - 1], depth, parent: open[depth - 1], from: at, to: end, first: run, last: run });
    }
  }
  return { calls, rows };
};
