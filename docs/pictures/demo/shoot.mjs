// Takes the pictures of a page: node shoot.mjs PAGE DIRECTORY.
import { chromium } from "playwright-core";

const [page, directory] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
for (const colorScheme of ["light", "dark"]) {
  const context = await browser.newContext({ colorScheme, viewport: { width: 1200, height: 850 } });
  const tab = await context.newPage();
  await tab.goto(`file://${page}`);
  await tab.locator("li a", { hasText: "fetch" }).focus();
  await tab.screenshot({ path: `${directory}/timeline-${colorScheme}.png` });
}
await browser.close();
