// Watches a page that is written again while its log grows: node follow.mjs PAGE. Writes the file `seen` when the page shows that the
// first call has ended, and waits until the page shows the end of the session.
import { writeFileSync } from "node:fs";
import { chromium } from "playwright-core";

const [file] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const page = await browser.newPage();
const problems = [];
page.on("console", (message) => problems.push(message.text()));
page.on("pageerror", (error) => problems.push(String(error)));
await page.goto(`file://${process.cwd()}/${file}`);

/** Waits until the page, whichever time it is loaded, meets a condition. */
async function waitUntil(condition) {
  const isMet = () => page.evaluate(condition).catch(() => false);
  while (!(await isMet())) await new Promise((later) => setTimeout(later, 50));
}

await waitUntil(() => document.querySelector("li.ok")?.textContent.includes("first") === true);
await waitUntil(() => document.querySelector("li.running")?.textContent.includes("second") === true);
// The page may be on its way out while it is filled in.
const filter = page.locator("[name=text]");
do await filter.fill("second"); while (await filter.inputValue() !== "second");
writeFileSync("seen", "");
await waitUntil(() => document.querySelectorAll("li.ok").length === 2);
await waitUntil(() => document.querySelector("header").textContent.includes("exit 0"));
const kept = await filter.inputValue();
const shown = await page.locator("li:visible").count();
if (kept !== "second" || shown !== 1) problems.push(`the filter is lost when the page is loaded again: ${kept}, ${shown} calls`);
if (await page.locator("meta[http-equiv=refresh]").count()) problems.push("the page is loaded again after the end");
for (const problem of problems) console.error(`FAILED: ${file}: ${problem}`);
if (!problems.length) console.log(`${file}: follows its log`);
await browser.close();
process.exit(problems.length ? 1 : 0);
