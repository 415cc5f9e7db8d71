// Opens pages in headless Chromium, light and dark, wide and narrow: node look.mjs FEW.html MANY.html REPLAY.html PLAN.html STEPS.html.
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const [few, many, replay, plan, steps] = process.argv.slice(2);
const axe = readFileSync("node_modules/axe-core/axe.min.js", "utf8");
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
let failures = 0;

function expect(isTrue, what) {
  if (isTrue) return;
  failures += 1;
  console.error(`FAILED: ${what}`);
}

async function open(file, options, look) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on("console", (message) => expect(false, `${file}: the console says: ${message.text()}`));
  page.on("pageerror", (error) => expect(false, `${file}: ${error}`));
  page.on("request", (request) => expect(request.url().startsWith("file:"), `${file} asks for ${request.url()}`));
  await page.goto(`file://${process.cwd()}/${file}`, { waitUntil: "load" });
  await look(page, context);
  await context.close();
}

/** The policy of the page stops injected scripts, as it should; the debugger is not bound by it. */
async function barriers(context, page) {
  const session = await context.newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const run = "axe.run().then((found) => JSON.stringify(found.violations.map((one) => [one.id, one.nodes[0].html])))";
  const answer = await session.send("Runtime.evaluate", { expression: run, awaitPromise: true, returnByValue: true });
  return answer.result.value;
}

/** Returns how long a change of the filter takes until the next frame is drawn, in milliseconds. */
function filterTime(page, field, value) {
  return page.evaluate(async ([field, value]) => {
    const filter = document.getElementById("filter");
    const begin = performance.now();
    filter[field].value = value;
    filter.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
    return performance.now() - begin;
  }, [field, value]);
}

/** Expects that nothing from outside became an element or ran, that the page fits, and that axe-core finds no barrier. */
async function expectText(page, context, name) {
  expect((await page.evaluate(() => globalThis.broken)) === undefined, `${name}: nothing from outside runs`);
  expect((await page.locator("img").count()) === 0, `${name}: nothing from outside is an element`);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(overflow <= 0, `${name}: ${overflow} pixels too wide`);
  const crowded = await page.evaluate(() => [...document.querySelectorAll(".axis")].filter((axis) => {
    const boxes = [...axis.querySelectorAll("text")].map((text) => text.getBoundingClientRect());
    boxes.sort((one, other) => one.left - other.left);
    return boxes.some((box, index) => index > 0 && box.left < boxes[index - 1].right);
  }).length);
  expect(crowded === 0, `${name}: texts of an axis overlap`);
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  expect(height < 1500, `${name}: ${height} pixels high for a few calls`);
  const head = await page.evaluate(() => document.querySelector("li").getBoundingClientRect().top + scrollY);
  expect(head < 450, `${name}: ${head} pixels above the first call`);
  const found = await barriers(context, page);
  expect(found === "[]", `${name}: axe-core finds ${found}`);
}

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1400, 400]) {
    await open(few, { colorScheme, viewport: { width, height: 900 } }, async (page, context) => {
      const name = `${few}, ${colorScheme}, ${width} wide`;
      expect((await page.locator("li").count()) === 4, `${name}: four calls`);
      await page.keyboard.press("ArrowDown");
      const details = await page.locator("#details").innerText();
      expect(details.includes("</script><img"), `${name}: the hostile result is shown as text`);
      expect(details.includes("\\u202e"), `${name}: what can't be seen is written out`);
      await expectText(page, context, name);
    });
    await open(plan, { colorScheme, viewport: { width, height: 900 } }, async (page, context) => {
      const name = `${plan}, ${colorScheme}, ${width} wide`;
      expect((await page.locator("li").count()) === 4, `${name}: four calls`);
      await page.keyboard.press("ArrowDown");
      const details = await page.locator("#details").innerText();
      expect(details.includes("cat hostile.txt"), `${name}: what runs is shown`);
      await page.keyboard.press("End");
      const covered = await page.evaluate(() => {
        const row = document.activeElement.getBoundingClientRect();
        return row.bottom - document.getElementById("details").getBoundingClientRect().top;
      });
      expect(covered <= 0, `${name}: ${covered} pixels of the row with the focus are covered`);
      expect(details.includes("</script><img"), `${name}: the hostile input is shown as text`);
      await filterTime(page, "state", "rejected");
      expect((await page.locator("li:visible").count()) === 1, `${name}: the filter leaves the one that is rejected`);
      await filterTime(page, "state", "");
      await expectText(page, context, name);
    });
    await open(replay, { colorScheme, viewport: { width, height: 900 } }, async (page, context) => {
      const name = `${replay}, ${colorScheme}, ${width} wide`;
      expect((await page.locator("li").count()) === 3, `${name}: three calls`);
      expect((await page.locator("details[open]").count()) === 2, `${name}: two of them differ, and are open`);
      const now = await page.locator("td.after").first().innerText();
      expect(now.includes("</script><img"), `${name}: the hostile result is shown as text`);
      await filterTime(page, "state", "matches");
      expect((await page.locator("li:visible").count()) === 1, `${name}: the filter leaves the one that matches`);
      await filterTime(page, "state", "");
      await expectText(page, context, name);
    });
  }
}

/** Fills a page with a bare list of 10,000 rows, and returns how long they take to come back, as `filterTime` does. */
async function floorTime() {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  await page.setContent(`<ol>${'<li><a href="#"><span>rain</span> <span>toolu_9999</span></a></li>'.repeat(10_000)}</ol>`);
  const time = await page.evaluate(async () => {
    const rows = Array.from(document.querySelectorAll("li"));
    const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    for (const row of rows) row.hidden = true;
    await drawn();
    const begin = performance.now();
    for (const row of rows) row.hidden = false;
    await drawn();
    return performance.now() - begin;
  });
  await page.close();
  return time;
}

// A busy machine is slow at times, so a page gets several rounds to be as fast as it should, and the best of each counts. A machine
// that is always slow shows a bare list slowly, too. Where that takes 500 ms, a filter takes 45 to 70 ms and may take a fifth, and
// a page opens in 500 ms and may take four times as long.
const best = (times) => Math.round(Math.min(...times));
const [MIN_ROUNDS, MAX_ROUNDS] = [3, 12];
for (const file of [many, steps]) {
  const opened = [];
  const floor = [];
  const filtered = { "text=rain": [], "text=toolu_9999": [], "text=": [], "tool=fail": [], "tool=": [] };
  const filterBar = () => Math.min(300, Math.max(100, Math.round(best(floor) / 5)));
  const openBar = () => Math.min(6000, Math.max(2000, best(floor) * 4));
  const isFast = () => best(opened) < openBar() && Object.values(filtered).every((times) => best(times) < filterBar());
  for (let round = 0; round < MAX_ROUNDS && !(round >= MIN_ROUNDS && isFast()); round += 1) {
    floor.push(await floorTime());
    await open(file, { viewport: { width: 1400, height: 900 } }, async (page) => {
      opened.push(await page.evaluate(() => performance.getEntriesByType("navigation")[0].loadEventEnd));
      for (const change of Object.keys(filtered)) {
        filtered[change].push(await filterTime(page, ...change.split("=")));
      }
      // The last call is found by its id, has the focus by keyboard, and is linked to.
      await page.locator("[name=text]").fill("toolu_9999");
      expect((await page.locator("li:visible").count()) === 1, `${file}: the last call is found by its id`);
      const height = await page.evaluate(() => document.documentElement.scrollHeight);
      expect(height < 1500, `${file}: ${height} pixels high for one call`);
      await page.locator("li:visible a").press("End");
      expect((await page.locator("#details").innerText()).includes("toolu_9999"), `${file}: the last call is reached by keyboard`);
      const link = await page.locator("li:visible a").getAttribute("href");
      await page.goto(`file://${process.cwd()}/${file}${link}`);
      await page.reload();
      await page.waitForFunction(() => document.activeElement.closest("li"));
      expect((await page.locator("#details").innerText()).includes("toolu_9999"), `${file}: a link leads to the last call`);
    });
  }
  console.log(`${file}: 10,000 calls open in ${best(opened)} ms (rounds: ${opened.length}; a filter may take ${filterBar()} ms)`);
  expect(best(opened) < openBar(), `${file}: 10,000 calls open in under ${openBar()} ms`);
  for (const [change, times] of Object.entries(filtered)) {
    console.log(`filter ${change}: ${best(times)} ms`);
    expect(best(times) < filterBar(), `${file}: the filter ${change} takes under ${filterBar()} ms`);
  }
}

await browser.close();
process.exit(failures ? 1 : 0);
