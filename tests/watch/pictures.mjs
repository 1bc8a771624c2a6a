// Takes pictures of the status page, light and dark.
//
// node pictures.mjs PLAYWRIGHT_CORE CHROMIUM URL FOLDER

import { createRequire } from "node:module";
import path from "node:path";

const [, , library, chromiumPath, url, folder] = process.argv;
const { chromium } = createRequire(import.meta.url)(library);

const browser = await chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox"] });
try {
  for (const [colorScheme, name] of [["light", "page"], ["dark", "page-dark"]]) {
    const page = await browser.newPage({ viewport: { width: 1000, height: 900 }, colorScheme });
    await page.goto(url);
    await page.waitForSelector(".card");
    await page.waitForTimeout(3000);
    await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true });
  }
} finally {
  await browser.close();
}
