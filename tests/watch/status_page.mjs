// Opens the status page in a real Chromium, uses it by keyboard, and takes pictures of it.
//
// node status_page.mjs PLAYWRIGHT_CORE CHROMIUM URL FAR_URL FOLDER
// URL is the client's page, FAR_URL the server's.
// Prints what it found as JSON; pictures go into FOLDER.

import { createRequire } from "node:module";
import path from "node:path";

const [, , library, chromiumPath, url, farUrl, folder] = process.argv;
const { chromium } = createRequire(import.meta.url)(library);

const browser = await chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox"] });
const found = { complaints: [], requests: [], pictures: [], phones: [] };

async function open(settings, address = url) {
  const context = await browser.newContext(settings);
  const page = await context.newPage();
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) found.complaints.push(message.text());
  });
  page.on("pageerror", (error) => found.complaints.push(String(error)));
  page.on("request", (request) => found.requests.push(request.url()));
  await page.goto(address);
  return page;
}

async function picture(page, name) {
  const file = path.join(folder, `${name}.png`);
  await page.screenshot({ path: file, fullPage: true });
  found.pictures.push(file);
}

// Until both paths have a line of several points.
const drawn = (page) => page.waitForFunction(() => {
  const lines = [...document.querySelectorAll("#chart polyline")];
  return lines.length === 2 && lines.every((line) => line.points.numberOfItems > 12);
}, null, { timeout: 60000 });

// What is chosen to be drawn.
const choice = (page) => page.locator("#measures input:checked").inputValue();

// The words that are shown beside the values of the first path.
const labels = (page) => page.evaluate(() => [...document.querySelectorAll("#paths tr:first-child td")]
  .filter((cell) => getComputedStyle(cell, "::before").content !== "none")
  .map((cell) => cell.dataset.label));

// How a page lies on a narrow screen.
const layout = (page) => page.evaluate(() => ({
  inner: window.innerWidth,
  page: document.documentElement.scrollWidth,
  beside: [...document.querySelectorAll("main *")]
    .filter((part) => part.closest("thead, svg") === null)
    .filter((part) => part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0
      || part.getBoundingClientRect().right > window.innerWidth)
    .map((part) => `${part.localName} ${part.className} ${part.textContent.slice(0, 40)}`),
  broken: [...document.querySelectorAll("td:not(.words)")]
    .filter((cell) => cell.clientHeight > 40)
    .map((cell) => `${cell.dataset.label} ${cell.textContent}`),
}));

try {
  const wide = await open({ viewport: { width: 1200, height: 900 }, colorScheme: "light" });
  await drawn(wide);
  found.address = wide.url();
  found.paths = await wide.locator("#paths th").allInnerTexts();
  found.first = await choice(wide);
  found.wide_labels = await labels(wide);
  found.words = await wide.locator("#chart-words").innerText();
  found.cells = await wide.locator(".window .cell").count();
  found.streams = await wide.locator("#streams tr").allInnerTexts();
  await wide.waitForFunction(
    (words) => document.getElementById("paths").textContent.includes(words),
    "the other end: has sent as fast as its rate cap allows",
    { timeout: 60000 },
  );
  found.now = await wide.locator('#paths td[data-label="now"]').allInnerTexts();
  await picture(wide, "light");
  // By keyboard alone: to the choice of what is drawn, and to the RTT.
  for (let presses = 0; presses < 10; presses += 1) {
    await wide.keyboard.press("Tab");
    if (await wide.evaluate(() => document.activeElement?.name === "measure")) break;
  }
  await wide.keyboard.press("ArrowLeft");
  found.rtt_words = await wide.locator("#chart-words").innerText();
  await wide.reload();
  await drawn(wide);
  found.trouble_after_reload = await wide.locator("#trouble").isVisible();
  const dark = await open({ viewport: { width: 1200, height: 900 }, colorScheme: "dark" });
  await drawn(dark);
  await picture(dark, "dark");
  const phone = await open({ viewport: { width: 360, height: 780 }, deviceScaleFactor: 2 });
  for (const width of [360, 390]) {
    await phone.setViewportSize({ width, height: 780 });
    await drawn(phone);
    const cells = await phone.locator("#paths tr").first().locator("[role=cell], [role=rowheader]").count();
    found.phones.push({ ...await layout(phone), labels: await labels(phone), cells });
    if (width === 360) await picture(phone, "phone");
  }
  const far = await open({}, farUrl);
  await drawn(far);
  found.far_first = await choice(far);
  found.complaints_with_token = found.complaints.splice(0);
  const stranger = await open({}, `${new URL(url).origin}/#token=wrong`);
  await stranger.waitForSelector("#trouble:not([hidden])");
  found.stranger = await stranger.locator("#trouble").innerText();
  found.stranger_paths = await stranger.locator("#paths tr").count();
} finally {
  await browser.close();
}
console.log(JSON.stringify(found));
