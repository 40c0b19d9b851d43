// Opens the fixture pages in Chromium, from disk, with the network off, and works out what they must say.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
export const CHROMIUM = process.env.SDB_CHROMIUM || ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

// rake test:browser makes the pages once for all test files; a file run alone makes its own.
let made;
export function pages() {
  made ||= process.env.SDB_BROWSER_PAGES;
  if (!made) {
    made = mkdtempSync(join(tmpdir(), "sdb-browser-"));
    execFileSync("ruby", [join(here, "fixture.rb"), made]);
  }
  return made;
}

export const source = (name) => JSON.parse(readFileSync(join(pages(), name + ".json"), "utf8"));

export async function launch() {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

// Runs `work` with an opened page and fails on anything the page asked the network for or complained about.
export async function withPage(browser, name, work, { hash = "", ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, offline: true, ...options });
  const page = await context.newPage();
  const url = pathToFileURL(join(pages(), name + ".html")).href;
  const requests = [];
  const complaints = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  await page.goto(url + hash);
  await page.evaluate(() => window.__sdb.ready);
  try {
    await work(page);
    const foreign = requests.filter((request) => request.split("#")[0] !== url);
    if (foreign.length > 0) throw new Error("the page made requests: " + foreign.join(", "));
    if (complaints.length > 0) throw new Error("the page complained: " + complaints.join("\n"));
  } finally {
    await context.close();
  }
}

// The cells with their stacks written out: [{ path: [function name, ..] root first, thread, ns }].
export function spent(data, metric) {
  const name = (func) => data.strings[data.funcs.name[func]];
  return data.cells[metric]
    .map((ns, i) => {
      const path = [];
      for (let s = data.cells.stack[i]; s >= 0; s = data.stacks.parent[s]) path.unshift(name(data.stacks.func[s]));
      return { path, thread: data.cells.thread[i], ns };
    })
    .filter((cell) => cell.ns > 0);
}

export const sum = (cells) => cells.reduce((total, cell) => total + cell.ns, 0);

// Self and total per function, recursion counted once.
export function perFunction(cells) {
  const found = new Map();
  const of = (name) => found.get(name) || found.set(name, { name, self: 0, total: 0 }).get(name);
  for (const { path, ns } of cells) {
    for (const name of new Set(path)) of(name).total += ns;
    if (path.length > 0) of(path[path.length - 1]).self += ns;
  }
  return [...found.values()].sort(byName);
}

// Time per way from the root: { "a;b": ns }.
export function perPath(cells) {
  const found = {};
  for (const { path, ns } of cells) {
    for (let depth = 1; depth <= path.length; depth++) {
      const key = path.slice(0, depth).join(";");
      found[key] = (found[key] || 0) + ns;
    }
  }
  return found;
}

export const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

// The drawn boxes as time per way from the root. Every box of the small fixtures is wide enough to be drawn.
export async function drawnPaths(page) {
  const boxes = await page.evaluate(() => window.__sdb.boxes());
  const found = {};
  for (const box of boxes.filter((b) => b.depth > 0 && b.id >= 0)) {
    const path = [];
    for (let depth = 1; depth <= box.depth; depth++) {
      const above = boxes.find((b) => b.depth === depth && b.id >= 0 && b.x <= box.x + 0.01 && b.x + b.w >= box.x + box.w - 0.01);
      path.push(above.name);
    }
    found[path.join(";")] = box.total;
  }
  return found;
}
