// The stack chart of one request shows the runs it was made from, over time.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { launch, source, withPage } from "./support.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const view = (page) => page.evaluate(() => window.__sdb.view());
const press = async (page, ...keys) => {
  for (const key of keys) await page.keyboard.press(key);
};
const fill = async (page, id, text) => {
  await page.fill(id, text);
  await page.press(id, "Enter");
};

// Calls by the definition: a function at its place on the stack for as long as everything below it stays.
function callsOf(span) {
  const done = [];
  let open = [];
  let end = null;
  for (const run of span.runs) {
    const names = run.frames.map((frame) => frame.name);
    const from = run.at_ns - span.start_ns;
    let same = 0;
    while (from === end && same < names.length && same < open.length && open[same].name === names[same]) same++;
    open = open.slice(0, same);
    end = from + run.ns;
    for (const call of open) call.to = end;
    for (let i = same; i < names.length; i++) {
      open.push({ name: names[i], depth: i + 1, from, to: end });
      done.push(open[i]);
    }
  }
  return done;
}

const order = (calls) => calls.map((c) => ({ name: c.name, depth: c.depth, from: c.from, to: c.to })).sort((a, b) => a.from - b.from || a.depth - b.depth);

for (const name of ["span", "span_long"]) {
  test(`${name}: calls, states and length equal the document's`, () =>
    withPage(browser, name, async (page) => {
      const span = source(name);
      const got = await view(page);
      assert.equal(got.length, span.wall_ns);
      assert.equal(got.runs, span.runs.length);
      for (const state of ["running", "gvl_wait", "blocked", "gc"]) assert.equal(got.states[state], span[state + "_ns"], state);
      assert.equal(Object.values(got.states).reduce((a, b) => a + b), span.wall_ns);
      assert.deepEqual(order(await page.evaluate(() => window.__sdb.calls())), order(callsOf(span)));
    }));
}

test("boxes lie where their time is", () =>
  withPage(browser, "span", async (page) => {
    const span = source("span");
    const boxes = (await page.evaluate(() => window.__sdb.boxes())).filter((box) => box.id > 0);
    const width = (await page.evaluate(() => window.__sdb.boxes()))[0].w;
    const calls = await page.evaluate(() => window.__sdb.calls());
    assert.ok(boxes.length > 30);
    for (const box of boxes) {
      const call = calls[box.id - 1];
      assert.ok(Math.abs(box.x - (call.from / span.wall_ns) * width) < 0.5, box.name);
      assert.ok(Math.abs(box.w - ((call.to - call.from) / span.wall_ns) * width) < 0.5, box.name);
    }
  }));

test("only my code and hide leave frames out and join what they parted", () =>
  withPage(browser, "span", async (page) => {
    const span = source("span");
    const without = (drop) => ({ ...span, runs: span.runs.map((run) => ({ ...run, frames: run.frames.filter((frame) => !drop(frame)) })) });
    await fill(page, "#hide", "^Array#|gems/puma");
    const hidden = without((frame) => frame.name.startsWith("Array#") || frame.path.includes("gems/puma"));
    assert.deepEqual(order(await page.evaluate(() => window.__sdb.calls())), order(callsOf(hidden)));
    await fill(page, "#hide", "");
    await page.check("#only-app");
    const mine = without((frame) => !frame.path.startsWith("/srv/shop/"));
    assert.deepEqual(order(await page.evaluate(() => window.__sdb.calls())), order(callsOf(mine)));
  }));

test("search tells the share of time with a matching frame, once, in the window too", () =>
  withPage(browser, "span", async (page) => {
    const { runs } = source("span");
    const sum = (list) => list.reduce((ns, run) => ns + run.ns, 0);
    await fill(page, "#search", "order");
    assert.equal((await view(page)).matched, sum(runs.filter((run) => run.frames.some((f) => /order/i.test(f.name) || /order/i.test(f.path)))));
    await fill(page, "#search", "Statement#step");
    const steps = runs.filter((run) => run.frames.some((f) => f.name === "SQLite3::Statement#step"));
    assert.equal((await view(page)).matched, sum(steps));
    await page.focus("#graph");
    await press(page, "n", "Enter");
    assert.equal((await view(page)).matched, steps[0].ns);
    await page.click("#tab-runs");
    assert.equal(await page.locator("#runs-body tr").count(), 1);
  }));

describe("window", () => {
  test("click, keys, drag, Escape and Back change it", () =>
    withPage(browser, "span", async (page) => {
      const { wall_ns: whole } = source("span");
      const box = (await page.evaluate(() => window.__sdb.boxes())).find((b) => b.name === "LineItem#price_with_tax" && b.w > 200);
      const host = await page.locator("#graph").boundingBox();
      await page.mouse.click(host.x + box.x + 20, host.y + box.y + 5);
      const call = (await page.evaluate(() => window.__sdb.calls()))[box.id - 1];
      let now = await view(page);
      assert.deepEqual([now.from, now.to, now.selected.name], [call.from, call.to, "LineItem#price_with_tax"]);
      await page.goBack();
      now = await view(page);
      assert.deepEqual([now.from, now.to], [0, whole]);

      await page.mouse.move(host.x + 300, host.y + 120);
      await page.mouse.down();
      await page.mouse.move(host.x + 500, host.y + 130, { steps: 4 });
      await page.mouse.up();
      now = await view(page);
      const width = (await page.evaluate(() => window.__sdb.boxes()))[0].w;
      assert.ok(Math.abs(now.from - (300 / width) * whole) < whole / 200 && Math.abs(now.to - (500 / width) * whole) < whole / 200);

      await page.focus("#graph");
      await press(page, "]");
      const moved = await view(page);
      assert.ok(moved.from > now.from && Math.abs(moved.to - moved.from - (now.to - now.from)) <= 1);
      await press(page, "-");
      assert.ok((await view(page)).to - (await view(page)).from > moved.to - moved.from);
      await press(page, "+", "0");
      assert.equal((await view(page)).to, whole);
      await press(page, ...Array(9).fill("ArrowUp"), ...Array(5).fill("ArrowDown"));
      assert.equal((await view(page)).selected.name, "OrdersController#index");
      await press(page, "ArrowDown");
      assert.equal((await view(page)).selected.name, "Array#each", "down goes to the longest");
      await press(page, "ArrowLeft");
      assert.equal((await view(page)).selected.name, "Order.recent");
      await press(page, "ArrowRight", "Enter");
      assert.ok((await view(page)).from > 0);
      await press(page, "Escape");
      assert.deepEqual([(await view(page)).from, (await view(page)).to], [0, whole]);
    }));

  test("is in the fragment; one that makes no sense is ignored", async () => {
    const hash = "#a=40000000&b=80000000&q=total&tab=runs";
    await withPage(browser, "span", async (page) => {
      const now = await view(page);
      assert.deepEqual([now.from, now.to], [40_000_000, 80_000_000]);
      assert.equal(await page.isVisible("#runs-body"), true);
    }, { hash });
    await withPage(browser, "span", async (page) => {
      const now = await view(page);
      assert.deepEqual([now.from, now.to], [0, now.length]);
    }, { hash: "#a=-5&b=NaN&tab=x&o=7" });
  });
});

test("who held the GVL is told in the tab, longest first, and by the lane", () =>
  withPage(browser, "span", async (page) => {
    const { runs, gvl_wait_ns: waited } = source("span");
    const expected = {};
    for (const run of runs.filter((r) => r.state === "gvl_wait")) {
      const name = run.holder.span_name || "no request";
      expected[name] = (expected[name] || 0) + run.ns;
    }
    await page.click("#tab-holders");
    const got = await page.evaluate(() => window.__sdb.holders());
    assert.deepEqual(got, Object.entries(expected).map(([name, ns]) => ({ name, ns })).sort((a, b) => b.ns - a.ns));
    assert.equal(got.reduce((ns, h) => ns + h.ns, 0), waited);
    assert.match(await page.innerText("#holders-body tr:first-child"), /120 ms[\s\S]*ReportsController#yearly[\s\S]*puma srv tp 003[\s\S]*Report#pivot › Array#sort_by/);
    await page.click("#tab-graph");
    const host = await page.locator("#graph").boundingBox();
    await page.mouse.move(host.x + host.width / 2, host.y + 50);
    assert.match(await page.innerText("#tip"), /ReportsController#yearly/);
    await page.mouse.move(host.x + host.width / 2, host.y + 30);
    assert.match(await page.innerText("#tip"), /Waiting for the GVL/);
  }));

test("the table of runs has every run and leads into the chart", () =>
  withPage(browser, "span_long", async (page) => {
    const { runs, start_ns: start } = source("span_long");
    await page.click("#tab-runs");
    assert.equal(await page.locator("#runs-body tr").count(), 200);
    await page.click("#runs-more");
    assert.equal(await page.locator("#runs-body tr").count(), 400);
    await page.click("#runs-body tr:nth-child(3) button");
    const now = await view(page);
    assert.deepEqual([now.from, now.to], [runs[2].at_ns - start, runs[2].at_ns - start + runs[2].ns]);
    assert.equal(await page.isVisible("#graph"), true);
  }));

test("a request nothing was seen of says so", () =>
  withPage(browser, "span_empty", async (page) => {
    assert.match(await page.innerText("#message"), /Nothing was seen of this request/);
  }));

test("hostile names in a request stay text", () =>
  withPage(browser, "span_hostile", async (page) => {
    const evil = "</script><script>window.pwned = 1</script>";
    assert.equal(await page.title(), evil);
    assert.equal(await page.locator("script").count(), 1);
    await page.focus("#graph");
    await press(page, "ArrowDown", "ArrowDown", "ArrowDown", "Enter", "s", "x", "0");
    for (const tab of ["runs", "holders", "graph"]) await page.click("#tab-" + tab);
    assert.ok((await page.innerText("#facts")).includes(evil));
    assert.ok((await page.evaluate(() => window.__sdb.calls())).some((call) => call.name === "\\u202eevil"));
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    const [scrolled, wide] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(scrolled <= wide);
  }));
