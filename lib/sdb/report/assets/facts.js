// SPDX-License-Identifier: MIT
// What is known about the recording, and what is missing from it: every report says how far it can be trusted.
sdb.facts = (facts) => {
  const list = [];
  const add = (text) => text && list.push(sdb.visible(text));
  add(facts.process);
  add(facts.ruby && "Ruby " + facts.ruby);
  if (facts.duration_ns > 0) add(sdb.time(facts.duration_ns) + " recorded");
  if (facts.interval_ns > 0) add("every " + sdb.time(facts.interval_ns));
  if (facts.threads > 0) add(sdb.plural(facts.threads, "thread"));
  if (facts.samples > 0) add(sdb.plural(facts.samples, "sample"));
  if (facts.start) add(String(facts.start).replace("T", " ").replace(/(\.\d+)?Z$/, " UTC"));
  for (const words of facts.filters || []) add("only " + words);
  sdb.byId("facts").replaceChildren(...list.map((text) => sdb.el("li", {}, text)));

  const lost = facts.lost || {};
  const cost = facts.cost || {};
  const rows = [];
  let worst = 0;
  // level 0: nothing to say, 1: of interest, 2: doubt the figures
  const row = (name, value, level, meaning) => {
    worst = Math.max(worst, level);
    rows.push(
      sdb.el("div", { class: "loss level" + level }, sdb.el("dt", {}, name), sdb.el("dd", {}, sdb.el("b", {}, value), " ", meaning)),
    );
  };
  // n of `whole` with the share from which on figures are to be doubted
  const share = (n, whole, doubt) => (n === 0 ? 0 : n / Math.max(whole || 0, 1) > doubt ? 2 : 1);
  const scans = (name, n, meaning, doubt = 0.005) => {
    if (n === undefined) return;
    const of = facts.scans || facts.samples;
    const value = sdb.count(n) + (n > 0 && of > 0 ? " (" + sdb.percent(n, of) + ")" : "");
    row(name, value, share(n, of, doubt), meaning);
  };
  scans("Torn stacks", lost.torn, "moved while they were read and were given up; their time goes to the previous stack.");
  scans("Torn tops", lost.torn_top, "lost their newest frames; their time goes to the caller.");
  scans("Not read in GC", lost.gc, "stacks, because a garbage collection was running; the time goes to the previous stack.", 1);
  scans("Truncated", lost.truncated, "stacks deeper than the limit; their newest frames are missing.");
  if (lost.unresolved !== undefined) {
    row("Unresolved", sdb.count(lost.unresolved), lost.unresolved > 0 ? 1 : 0, "methods that could not be named.");
  }
  if (facts.unnamed_ns !== undefined) {
    row("Not yet named", sdb.percent(facts.unnamed_ns, facts.total_ns), share(facts.unnamed_ns, facts.total_ns, 0.005), "of the time is in code whose name had not been looked up when the recording ended.");
  }
  if (lost.gap_ns !== undefined) {
    row("Gaps", sdb.time(lost.gap_ns), share(lost.gap_ns, facts.duration_ns, 0.01), "in which the profiler itself did not run and saw nothing.");
  }
  if (facts.late_ticks !== undefined) {
    row("Late ticks", sdb.count(facts.late_ticks), share(facts.late_ticks, facts.ticks, 0.2), "of " + sdb.count(facts.ticks || 0) + " started more than half an interval late; time is weighted by what really passed.");
  }
  if (lost.queue_full !== undefined) row("Events dropped", sdb.count(lost.queue_full), share(lost.queue_full, 0, 0), "spans, tags or marks that came faster than they were written.");
  if (lost.ring !== undefined) row("Blocks not written", sdb.count(lost.ring), share(lost.ring, 0, 0), "because writing the file failed.");
  if (lost.threads !== undefined) row("Threads not seen", sdb.count(lost.threads), share(lost.threads, 0, 0), "because the table was full or they could not be read safely.");
  if (facts.states === "inferred") {
    row("Thread states", "inferred", 1, "from the CPU clock: this Ruby does not report who waits for the GVL. Waiting shows as blocked or running.");
  }
  if (cost.cpu_ns !== undefined) {
    row("Own cost", sdb.percent(cost.cpu_ns, facts.duration_ns) + " of a core", 0, "(" + sdb.time(cost.cpu_ns) + " of CPU, " + sdb.time(cost.gvl_ns || 0) + " of the GVL" + (cost.rss_bytes ? ", " + sdb.bytes(cost.rss_bytes) + " of memory" : "") + ").");
  }
  for (const warning of facts.warnings || []) row("Warning", sdb.visible(warning), 1, "");

  const box = sdb.byId("losses");
  box.hidden = rows.length === 0;
  box.classList.toggle("doubt", worst === 2);
  sdb.byId("losses-summary").textContent = ["Nothing lost", "Small losses", "⚠ Losses"][worst];
  sdb.byId("losses-list").replaceChildren(...rows);
};
