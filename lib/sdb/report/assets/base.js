// SPDX-License-Identifier: MIT
// What every view shares: reading the embedded data, making elements, writing numbers.
const sdb = {};

// Names come from the profiled program. Control characters and marks that reorder or hide text would let a
// name pass for another one, so they are shown as what they are: \u202e.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
sdb.visible = (text) =>
  String(text).replace(UNSEEN, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

sdb.shorten = (text, most) =>
  text.length <= most ? text : text.slice(0, most) + "… (" + sdb.count(text.length) + " characters)";

sdb.byId = (id) => document.getElementById(id);

// The only way in which text reaches the page: as text.
sdb.el = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  for (const child of children) element.append(child);
  return element;
};

sdb.count = (n) => n.toLocaleString("en");

// Three significant digits, in the unit a person would take.
sdb.time = (ns) => {
  const digits = (n) => (n >= 99.95 ? n.toFixed(0) : n >= 9.995 ? n.toFixed(1) : n.toFixed(2)).replace(/\.0+$/, "");
  if (ns <= 0) return "0";
  if (ns < 999.5) return ns.toFixed(0) + " ns";
  if (ns < 999.5e3) return digits(ns / 1e3) + " µs";
  if (ns < 999.5e6) return digits(ns / 1e6) + " ms";
  if (ns < 59.95e9) return digits(ns / 1e9) + " s";
  const seconds = Math.round(ns / 1e9);
  if (seconds < 3600) return Math.floor(seconds / 60) + " min " + (seconds % 60) + " s";
  return Math.floor(seconds / 3600) + " h " + Math.floor((seconds % 3600) / 60) + " min";
};

sdb.percent = (part, whole) => {
  if (!(whole > 0) || !(part > 0)) return "0 %";
  const percent = (100 * part) / whole;
  if (percent < 0.01) return "< 0.01 %";
  return (percent >= 99.95 ? percent.toFixed(0) : percent >= 9.995 ? percent.toFixed(1) : percent.toFixed(2)) + " %";
};

sdb.bytes = (n) =>
  n < 1024 ? n + " B" : n < 1 << 20 ? (n / 1024).toFixed(0) + " KiB" : (n / (1 << 20)).toFixed(1) + " MiB";

sdb.plural = (n, word) => sdb.count(n) + " " + word + (n === 1 ? "" : "s");

// One polite live region; repeated text is announced again because the region is emptied between.
let announcement = 0;
sdb.announce = (text) => {
  clearTimeout(announcement);
  announcement = setTimeout(() => (sdb.byId("live").textContent = text), 60);
};

sdb.debounce = (ms, work) => {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...args), ms);
  };
};

// A regular expression; case counts only when the pattern has a capital letter. Null for an empty pattern;
// throws a SyntaxError for a wrong one.
sdb.pattern = (text) => (text === "" ? null : new RegExp(text, /[A-Z]/.test(text.replace(/\\./g, "")) ? "u" : "iu"));

sdb.literal = (text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

// The inverse of Sdb::Report::Payload: the JSON document, its columns replaced by Float64Arrays by name.
sdb.unpack = async (text) => {
  const packed = atob(text.trim());
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const raw = new Uint8Array(await new Response(stream).arrayBuffer());
  const jsonBytes = new DataView(raw.buffer).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + jsonBytes)));
  let at = 4 + jsonBytes;
  const columns = {};
  for (const [name, count] of data.columns) {
    const values = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      let value = 0;
      let byte;
      do {
        byte = raw[at++];
        value = value * 128 + (byte & 127);
      } while (byte & 128);
      values[i] = value;
    }
    columns[name] = values;
  }
  if (at > raw.length) throw new Error("the embedded data is cut short");
  data.columns = columns;
  return data;
};

// Shows one message in place of the views.
sdb.message = (title, ...paragraphs) => {
  const main = sdb.byId("main");
  sdb.byId("help-open").hidden = true; // there is nothing to steer
  main.replaceChildren(
    sdb.el("div", { class: "message", id: "message" }, sdb.el("h2", {}, title), ...paragraphs.map((p) => sdb.el("p", {}, p))),
  );
};

// Runs a page: `start` gets the decoded data. Whatever goes wrong is said on the page, never only in the console.
sdb.run = (start) => {
  const hook = (window.__sdb = {});
  const began = performance.now();
  const work = async () => {
    sdb.theme.start();
    if (typeof DecompressionStream === "undefined") {
      sdb.message(
        "This browser cannot unpack the recording",
        "It lacks DecompressionStream. Chrome and Edge have it since version 80, Safari since 16.4, Firefox since 113.",
      );
      return;
    }
    const element = sdb.byId("data");
    try {
      const data = await sdb.unpack(element.textContent);
      element.remove(); // megabytes that nobody reads again
      await start(data, hook);
    } catch (error) {
      console.error(error);
      sdb.message("This report could not be opened", "The file is damaged or incomplete: " + error.message);
    }
    hook.openedAfterMs = performance.now();
    hook.startMs = hook.openedAfterMs - began;
  };
  hook.ready = work();
};
