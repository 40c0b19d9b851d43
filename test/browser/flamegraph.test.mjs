// The flame graph shows the numbers of the columns it was made from, and does what its controls and keys say.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { byName, drawnPaths, launch, perFunction, perPath, source, spent, sum, withPage } from "./support.mjs";

const METRICS = ["wall", "cpu", "gvl_wait", "blocked", "gc"];
let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const view = (page) => page.evaluate(() => window.__sdb.view());
const functions = (page) => page.evaluate(() => window.__sdb.functions());
const fill = async (page, id, text) => {
  await page.fill(id, text);
  await page.press(id, "Enter");
};

describe("numbers", () => {
  for (const name of ["small", "rails"]) {
    for (const metric of METRICS) {
      test(`${name}: totals, functions and paths of ${metric} equal the input's`, () =>
        withPage(browser, name, async (page) => {
          await page.check(`input[name=metric][value=${metric}]`, { force: true });
          const cells = spent(source(name), metric);
          assert.equal((await view(page)).all, sum(cells));
          assert.deepEqual((await functions(page)).sort(byName), perFunction(cells));
          if (name === "small") assert.deepEqual(await drawnPaths(page), perPath(cells));
        }));
    }
  }

  test("bottom-up shows each function's self time first and its callers below", () =>
    withPage(browser, "small", async (page) => {
      await page.check("input[name=order][value=callers]", { force: true });
      const cells = spent(source("small"), "wall").map((cell) => ({ ...cell, path: [...cell.path].reverse() }));
      assert.deepEqual(await drawnPaths(page), perPath(cells));
    }));

  test("threads side by side split the same total", () =>
    withPage(browser, "small", async (page) => {
      await page.selectOption("#thread", "each");
      const cells = spent(source("small"), "wall").map((cell) => ({ ...cell, path: [["main", "thread 71"][cell.thread], ...cell.path] }));
      assert.deepEqual(await drawnPaths(page), perPath(cells));
      await page.check("input[name=order][value=callers]", { force: true });
      const reversed = cells.map((cell) => ({ ...cell, path: [cell.path[0], ...cell.path.slice(1).reverse()] }));
      assert.deepEqual(await drawnPaths(page), perPath(reversed));
    }));

  test("one thread alone shows only its time", () =>
    withPage(browser, "small", async (page) => {
      await page.selectOption("#thread", "1");
      assert.deepEqual(await drawnPaths(page), perPath(spent(source("small"), "wall").filter((cell) => cell.thread === 1)));
    }));

  test("hidden frames give their time to the caller, focus keeps stacks with a match", () =>
    withPage(browser, "small", async (page) => {
      const cells = spent(source("small"), "wall");
      await fill(page, "#hide", "^Array#each$");
      const without = cells.map((cell) => ({ ...cell, path: cell.path.filter((frame) => frame !== "Array#each") }));
      assert.deepEqual(await drawnPaths(page), perPath(without));
      await fill(page, "#focus", "sequel");
      const focused = without.filter((cell) => cell.path.includes("Sequel::Database#execute"));
      assert.deepEqual(await drawnPaths(page), perPath(focused));
      assert.deepEqual((await functions(page)).sort(byName), perFunction(focused));
    }));

  test("only my code leaves the frames of the app, with all of the time", () =>
    withPage(browser, "small", async (page) => {
      await page.check("#only-app");
      const mine = ["<main>", "Work#call", "Tree#walk"];
      const cells = spent(source("small"), "wall").map((cell) => ({ ...cell, path: cell.path.filter((frame) => mine.includes(frame)) }));
      const got = await functions(page);
      assert.deepEqual(got.sort(byName), perFunction(cells));
      assert.equal(got.reduce((all, f) => all + f.self, 0), sum(cells));
    }));
});

describe("search", () => {
  test("a stack with several matching frames counts once", () =>
    withPage(browser, "small", async (page) => {
      await fill(page, "#search", "walk|each|<main>");
      const all = spent(source("small"), "wall");
      assert.equal((await view(page)).matched, sum(all));
      await fill(page, "#search", "Tree#walk");
      const matched = sum(all.filter((cell) => cell.path.includes("Tree#walk")));
      assert.equal((await view(page)).matched, matched);
      assert.match(await page.textContent("#search-result"), /1 function$/);
      await page.check("input[name=order][value=callers]", { force: true });
      assert.equal((await view(page)).matched, matched, "bottom-up");
    }));

  test("matches paths too, and tells of a wrong pattern without losing the last one", () =>
    withPage(browser, "small", async (page) => {
      await fill(page, "#search", "json/common");
      const matched = sum(spent(source("small"), "wall").filter((cell) => cell.path.includes("JSON.generate")));
      assert.equal((await view(page)).matched, matched);
      await fill(page, "#search", "json(");
      assert.equal(await page.getAttribute("#search", "aria-invalid"), "true");
      assert.equal((await view(page)).matched, matched);
      await fill(page, "#search", "");
      assert.equal((await view(page)).matched, null);
      assert.equal(await page.getAttribute("#search", "aria-invalid"), null);
    }));

  test("filters the table", () =>
    withPage(browser, "small", async (page) => {
      await fill(page, "#search", "each|walk");
      await page.click("#tab-functions");
      assert.deepEqual((await page.locator("#functions-body th button").allTextContents()).sort(), ["Array#each", "Tree#walk"]);
    }));
});

describe("zoom", () => {
  test("a click zooms, the breadcrumb leads back, the browser's Back too", () =>
    withPage(browser, "small", async (page) => {
      const paths = perPath(spent(source("small"), "wall"));
      const at = async (name) => {
        const box = (await page.evaluate(() => window.__sdb.boxes())).find((b) => b.name === name);
        const host = await page.locator("#graph").boundingBox();
        await page.mouse.click(host.x + box.x + box.w / 2, host.y + box.y + box.h / 2);
      };
      await at("Array#each");
      assert.equal((await view(page)).view, paths["<main>;Work#call;Array#each"]);
      await at("Tree#walk");
      assert.equal((await view(page)).zoomed, "Tree#walk");
      assert.deepEqual(await page.locator("#crumbs li").allTextContents(), ["all", "<main>", "Work#call", "Array#each", "Tree#walk"]);
      await page.click("#crumbs li:nth-child(3) button");
      assert.equal((await view(page)).view, paths["<main>;Work#call"]);
      await page.goBack();
      assert.equal((await view(page)).zoomed, "Tree#walk");
      await page.goBack();
      await page.goBack();
      assert.equal((await view(page)).zoomed, "all");
    }));

  test("survives a change of metric, and goes to the nearest caller that is left", () =>
    withPage(browser, "small", async (page) => {
      const path = await page.evaluate(() => window.__sdb.boxes().find((b) => b.name === "Kernel#sleep"));
      const host = await page.locator("#graph").boundingBox();
      await page.mouse.click(host.x + path.x + 5, host.y + path.y + 5);
      await page.check("input[name=metric][value=blocked]", { force: true });
      assert.equal((await view(page)).zoomed, "Kernel#sleep");
      await page.check("input[name=metric][value=cpu]", { force: true });
      assert.equal((await view(page)).zoomed, "Sequel::Database#execute");
    }));

  test("the pointer shows the figures", () =>
    withPage(browser, "small", async (page) => {
      const box = (await page.evaluate(() => window.__sdb.boxes())).find((b) => b.name === "JSON.generate");
      const host = await page.locator("#graph").boundingBox();
      await page.mouse.move(host.x + box.x + 4, host.y + box.y + 4);
      const tip = await page.innerText("#tip");
      assert.match(tip, /JSON\.generate/);
      assert.match(tip, /common\.rb:301/);
      assert.match(tip, /26 ms total · 13\.0 % of view · 13\.0 % of all/);
      await page.mouse.move(2, 2);
      assert.equal(await page.isVisible("#tip"), false);
    }));
});

describe("keyboard", () => {
  test("arrows walk, Enter zooms, Escape comes back, n finds", () =>
    withPage(browser, "small", async (page) => {
      const selected = async () => (await view(page)).selected.name;
      const press = async (...keys) => {
        for (const key of keys) await page.keyboard.press(key);
      };
      await page.focus("#graph");
      await press("ArrowDown", "ArrowDown");
      assert.equal(await selected(), "Work#call");
      await press("ArrowDown");
      const first = await selected();
      await press("ArrowRight");
      assert.notEqual(await selected(), first);
      await press("Home");
      assert.equal(await selected(), first);
      await press("End", "ArrowLeft", "ArrowLeft");
      assert.equal(await selected(), first);
      await press("ArrowUp");
      assert.equal(await selected(), "Work#call");
      await press("Enter");
      assert.equal((await view(page)).zoomed, "Work#call");
      await press("Escape");
      assert.equal((await view(page)).zoomed, "<main>");
      await press("Escape");
      assert.equal((await view(page)).zoomed, "all");

      await press("/");
      assert.equal(await page.evaluate(() => document.activeElement.id), "search");
      await page.keyboard.type("sleep");
      await press("Enter", "n");
      assert.equal(await selected(), "Kernel#sleep");
      await page.waitForFunction(() => /Kernel#sleep, C, total 74 ms/.test(document.getElementById("live").textContent));
      await press("Escape");
      assert.equal(await page.inputValue("#search"), "");
    }));

  test("in the flame the arrows follow the picture", () =>
    withPage(browser, "small", async (page) => {
      await page.focus("#graph");
      await page.keyboard.press("i");
      await page.keyboard.press("ArrowUp");
      assert.equal((await view(page)).selected.name, "<main>");
      const boxes = await page.evaluate(() => window.__sdb.boxes());
      const y = (name) => boxes.find((b) => b.name === name).y;
      assert.ok(y("<main>") < y("all"), "the root is at the bottom");
    }));

  test("letters switch metric, order, threads and filters, and only in the graph", () =>
    withPage(browser, "small", async (page) => {
      const state = () => page.evaluate(() => window.__sdb.state());
      await page.focus("#tab-graph");
      await page.keyboard.press("m");
      assert.equal((await state()).m, "wall");
      await page.focus("#graph");
      for (const key of ["m", "r", "t", "o"]) await page.keyboard.press(key);
      const { m, r, t, o } = await state();
      assert.deepEqual({ m, r, t, o }, { m: "cpu", r: true, t: "each", o: true });
      await page.keyboard.press("0");
      assert.equal((await state()).m, "wall");
      for (const key of ["ArrowDown", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
      const { name } = (await view(page)).selected;
      assert.ok((await functions(page)).some((f) => f.name === name));
      await page.keyboard.press("x");
      assert.ok(!(await functions(page)).some((f) => f.name === name));
      await page.keyboard.press("?");
      assert.equal(await page.isVisible("#help"), true);
      await page.keyboard.press("Escape");
      assert.equal(await page.isVisible("#help"), false);
    }));

  test("everything can be reached with Tab alone", () =>
    withPage(browser, "small", async (page) => {
      const seen = new Set();
      for (let i = 0; i < 40; i++) {
        await page.keyboard.press("Tab");
        seen.add(await page.evaluate(() => document.activeElement.id || document.activeElement.value || document.activeElement.tagName));
      }
      for (const id of ["losses-summary", "theme", "help-open", "wall", "icicle", "callees", "thread", "only-app", "search", "focus", "hide", "reset", "tab-graph", "graph"]) {
        assert.ok(seen.has(id), `${id} was not reached: ${[...seen].join(" ")}`);
      }
    }));
});

describe("table", () => {
  test("sorts by every column, both ways, and leads into the graph", () =>
    withPage(browser, "small", async (page) => {
      await page.click("#tab-functions");
      const names = () => page.locator("#functions-body th button").allTextContents();
      const expected = perFunction(spent(source("small"), "wall"));
      const bySelf = [...expected].sort((a, b) => b.self - a.self || b.total - a.total).map((f) => f.name);
      assert.deepEqual(await names(), bySelf);
      await page.click("#sort-total");
      assert.equal((await names())[0], "<main>");
      assert.equal(await page.locator("th[aria-sort]").getAttribute("aria-sort"), "descending");
      await page.click("#sort-name");
      assert.deepEqual(await names(), expected.map((f) => f.name).sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1)));
      await page.click("#sort-name");
      assert.equal(await page.locator("th[aria-sort]").getAttribute("aria-sort"), "descending");
      await page.click("text=JSON.generate");
      assert.equal(await page.isVisible("#graph"), true);
      assert.equal((await view(page)).matched, expected.find((f) => f.name === "JSON.generate").total);
    }));

  test("shows a part of a long list and more on demand", () =>
    withPage(browser, "large", async (page) => {
      await page.click("#tab-functions");
      assert.equal(await page.locator("#functions-body tr").count(), 200);
      await page.click("#functions-more");
      assert.equal(await page.locator("#functions-body tr").count(), 400);
    }));
});

test("the fragment keeps the view, and a page opened with it shows the same", () =>
  withPage(browser, "rails", async (page) => {
    await page.check("input[name=metric][value=cpu]", { force: true });
    await page.check("input[name=shape][value=flame]", { force: true });
    await fill(page, "#search", "Order");
    await fill(page, "#hide", "^Array#");
    await page.focus("#graph");
    for (const key of ["ArrowUp", "ArrowUp", "Enter"]) await page.keyboard.press(key);
    const before = [await page.evaluate(() => window.__sdb.state()), await view(page)];
    const hash = await page.evaluate(() => location.hash);
    await withPage(browser, "rails", async (again) => {
      assert.deepEqual([await again.evaluate(() => window.__sdb.state()), await view(again)], before);
    }, { hash });
  }));

test("a fragment that makes no sense is ignored", () =>
  withPage(browser, "small", async (page) => {
    assert.equal((await view(page)).zoomed, "all");
    assert.equal((await view(page)).metric, "wall");
  }, { hash: "#m=evil&v=x&z=zzzz.-1.!!&t=99&tab=none&by=__proto__&r=maybe" }));

test("the header tells what was recorded and what was lost", () =>
  withPage(browser, "rails", async (page) => {
    const facts = await page.innerText("#facts");
    for (const text of ["Ruby 3.3.8 +YJIT", "1 min 0 s recorded", "every 1 ms", "6 threads", "301,544 samples"]) assert.ok(facts.includes(text), text);
    assert.equal(await page.innerText("#losses-summary"), "Small losses");
    await page.click("#losses-summary");
    const losses = await page.innerText("#losses-list");
    for (const text of ["31 (0.03 %)", "12.4 ms", "212 of 59,874", "1.07 % of a core"]) assert.ok(losses.includes(text), text);
  }));
