// Nothing recorded, hostile names, old browsers, a damaged file, and a very large recording.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { launch, pages, source, spent, sum, withPage } from "./support.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("an empty recording says so, and says what to do", () =>
  withPage(browser, "empty", async (page) => {
    assert.match(await page.innerText("#message"), /No samples in this selection[\s\S]*sdb doctor/);
    assert.match(await page.innerText("#facts"), /Ruby 3\.3\.8/);
  }));

test("hostile names stay text, and show what they hide", () =>
  withPage(browser, "hostile", async (page) => {
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.title(), "</title><script>window.pwned = 1</script>");
    assert.equal(await page.locator("img, b.x, iframe").count(), 0);
    assert.equal(await page.locator("script").count(), 1, "the data element is gone, no script came in");
    const names = (await page.evaluate(() => window.__sdb.functions())).map((f) => f.name);
    assert.ok(names.includes("</script><script>window.pwned = 1</script>"));
    assert.ok(names.includes("safe\\u202edne#llac"));
    assert.ok(names.includes("zero\\u200bwidth\\u0000null\\u001b[31m"));
    assert.ok(names.includes("bad\ufffdbytes"));
    assert.ok(names.includes("__proto__") && names.includes("constructor"));
    assert.ok(names.some((name) => name.length === 10240));
    await page.focus("#graph");
    for (let i = 0; i < 12; i++) await page.keyboard.press("ArrowDown");
    for (const key of ["Enter", "s", "x", "f", "0", "r", "t"]) await page.keyboard.press(key);
    const boxes = await page.evaluate(() => window.__sdb.boxes());
    const host = await page.locator("#graph").boundingBox();
    for (const box of boxes.filter((b) => b.id >= 0)) await page.mouse.move(host.x + box.x + 2, host.y + Math.min(box.y + 4, host.height - 4));
    await page.click("#tab-functions");
    const long = await page.locator("#functions-body button", { hasText: "NNN" }).innerText();
    assert.match(long, /… \(10,240 characters\)$/);
    const [scrolled, wide] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(scrolled <= wide, "nothing pushes the page wider than the window");
    assert.equal(await page.innerText("#losses-summary"), "⚠ Losses");
    assert.equal(await page.evaluate(() => window.pwned), undefined);
  }));

test("the policy in the page refuses a script, a style, an image, a request and HTML from text", () =>
  withPage(browser, "small", async (page) => {
    const refused = await page.evaluate(async () => {
      const seen = [];
      document.addEventListener("securitypolicyviolation", (event) => seen.push(event.effectiveDirective));
      for (const [tag, attributes] of [["script", {}], ["style", {}], ["img", { src: "data:image/gif;base64,R0lGODlhAQABAAAAACw=" }]]) {
        const element = Object.assign(document.createElement(tag), attributes);
        try {
          element.textContent = "window.pwned = 1";
        } catch {
          seen.push("trusted-types text");
        }
        document.body.append(element);
      }
      try {
        document.body.insertAdjacentHTML("beforeend", "<b>x</b>");
      } catch {
        seen.push("trusted-types html");
      }
      await fetch("data:,x").catch(() => seen.push("fetch"));
      await new Promise((done) => setTimeout(done, 100));
      return seen;
    });
    for (const what of ["style-src-elem", "img-src", "connect-src", "trusted-types html"]) assert.ok(refused.includes(what), `${what} in ${refused}`);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
  }).catch((error) => assert.match(error.message, /^the page complained: .*(Content Security Policy|TrustedHTML|Trusted)/)));

test("the file holds no address and its text cannot end its own elements", () => {
  for (const name of ["small", "hostile", "rails", "span", "span_hostile"]) {
    const html = readFileSync(join(pages(), name + ".html"), "utf8");
    assert.doesNotMatch(html, /https?:\/\//);
    assert.doesNotMatch(html, /\b(?:src|href)=/);
    assert.equal(html.match(/<script/g).length, 2);
    assert.match(html, /<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-/);
  }
});

test("without DecompressionStream the page says which browsers have it", async () => {
  const context = await browser.newContext({ offline: true });
  await context.addInitScript(() => delete window.DecompressionStream);
  const page = await context.newPage();
  await page.goto(pathToFileURL(join(pages(), "small.html")).href);
  await page.waitForSelector("#message");
  assert.match(await page.innerText("#message"), /DecompressionStream[\s\S]*Firefox since 113/);
  await context.close();
});

test("a file cut short or damaged says so", async () => {
  const html = readFileSync(join(pages(), "small.html"), "utf8");
  const [, data] = html.match(/id="data">([^<]+)</);
  for (const damage of [data.slice(0, data.length / 2 & ~3), "!!!!", "", data.slice(0, 60) + "AAAA" + data.slice(64)]) {
    const file = join(pages(), "damaged.html");
    writeFileSync(file, html.replace(data, damage));
    const context = await browser.newContext({ offline: true });
    const page = await context.newPage();
    await page.goto(pathToFileURL(file).href);
    await page.waitForSelector("#message");
    assert.match(await page.innerText("#message"), /could not be opened/);
    await context.close();
  }
});

test("200 000 stacks open, filter and turn over; the times are printed", (t) =>
  withPage(browser, "large", async (page) => {
    const total = sum(spent(source("large"), "wall"));
    const read = () => page.evaluate(() => ({ opened: window.__sdb.openedAfterMs, start: window.__sdb.startMs, rebuild: window.__sdb.rebuildMs, ...window.__sdb.view() }));
    const first = await read();
    assert.equal(first.all, total);
    t.diagnostic(`opened after ${first.opened.toFixed(0)} ms (own work ${first.start.toFixed(0)} ms), budget 2000 ms; ${first.nodes} nodes`);
    const timed = async (what, work) => {
      const began = Date.now();
      await work();
      await page.evaluate(() => new Promise(requestAnimationFrame));
      t.diagnostic(`${what}: ${Date.now() - began} ms`);
    };
    await timed("metric", () => page.check("input[name=metric][value=cpu]", { force: true }));
    await timed("search", async () => (await page.fill("#search", "Handler#method_1"), page.press("#search", "Enter")));
    await timed("bottom-up", () => page.check("input[name=order][value=callers]", { force: true }));
    await timed("threads side by side", () => page.selectOption("#thread", "each"));
    await timed("functions", () => page.click("#tab-functions"));
    const cpu = sum(spent(source("large"), "cpu"));
    assert.equal((await read()).all, cpu);
  }));
