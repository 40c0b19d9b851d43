// axe-core finds nothing to complain about: every view, light and dark, wide and narrow.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { launch, withPage } from "./support.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const VIEWS = {
  graph: ["rails", "", async () => {}],
  "search and zoom": ["rails", "#q=Order&m=cpu&z=0.1.2", async () => {}],
  "bottom-up, side by side": ["small", "#r=1&t=each&v=flame", async (page) => page.focus("#graph")],
  functions: ["rails", "#tab=functions&q=call", async () => {}],
  losses: ["hostile", "", async (page) => page.click("#losses-summary")],
  help: ["small", "", async (page) => page.click("#help-open")],
  "a wrong pattern": ["small", "#q=(", async () => {}],
  empty: ["empty", "", async () => {}],
  "stack chart": ["span", "", async () => {}],
  "stack chart, zoomed": ["span", "#a=40000000&b=90000000&q=total", async (page) => page.focus("#graph")],
  runs: ["span", "#tab=runs", async () => {}],
  holders: ["span", "#tab=holders", async () => {}],
  "stack chart, hostile": ["span_hostile", "", async () => {}],
};

// Narrow pages differ in layout, not in colours: once is enough.
const SIZES = { light: [{ width: 1400, height: 900 }, { width: 800, height: 600 }], dark: [{ width: 1400, height: 900 }] };

for (const colorScheme of ["light", "dark"]) {
  for (const [name, [fixture, hash, prepare]] of Object.entries(VIEWS)) {
    for (const viewport of SIZES[colorScheme]) {
      test(`${name}, ${colorScheme}, ${viewport.width} wide`, () =>
        withPage(browser, fixture, async (page) => {
          await prepare(page);
          await page.evaluate(axe);
          const { violations } = await page.evaluate(() => window.axe.run());
          assert.deepEqual(violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html.slice(0, 160)).join(" | ")}`), []);
          const [scrolled, wide] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
          assert.ok(scrolled <= wide, "the page scrolls sideways");
        }, { hash, colorScheme, viewport, bypassCSP: true }));
    }
  }
}

test("labels on every colour have a contrast of at least 4.5, in light and dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    await withPage(browser, "rails", async (page) => {
      const contrasts = await page.evaluate(() => window.__sdb.contrasts());
      assert.ok(contrasts.length > 20);
      for (const { name, ratio } of contrasts) assert.ok(ratio >= 4.5, `${name} in ${colorScheme}: ${ratio.toFixed(2)}`);
    }, { colorScheme });
  }
});

test("the theme button goes through auto, light and dark, and the canvas follows", () =>
  withPage(browser, "rails", async (page) => {
    const scheme = () => page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
    const picture = async () => (await page.locator("#graph").screenshot()).toString("base64");
    const light = await picture();
    await page.click("#theme");
    assert.equal(await scheme(), "light");
    await page.click("#theme");
    assert.equal(await scheme(), "dark");
    assert.notEqual(await picture(), light);
    await page.click("#theme");
    assert.equal(await scheme(), "light dark");
  }));
