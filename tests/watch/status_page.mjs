// Opens the status page in a real Chromium, uses it by keyboard, and takes pictures of it.
//
// node status_page.mjs PLAYWRIGHT_CORE CHROMIUM URL FAR_URL OTHER_URL FOLDER
// URL is the client's page, FAR_URL the server's, OTHER_URL the address of a stranger's page.
// A line on standard output is a request to the test, which answers with a line of JSON; the last
// line is what was found. Pictures go into FOLDER.

import { createRequire } from "node:module";
import path from "node:path";
import readline from "node:readline";

const [, , library, chromiumPath, url, farUrl, otherUrl, folder] = process.argv;
const { chromium } = createRequire(import.meta.url)(library);
const PATIENCE = { timeout: 60000 };

const answers = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
/** Asks the test for something: `cut`, `mend`, or `paths` as `sumrate path list` reports them. */
async function request(what) {
  console.log(JSON.stringify({ request: what }));
  return JSON.parse((await answers.next()).value);
}

const browser = await chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox"] });
const found = { complaints: [], requests: [], pictures: [], contrasts: {} };

async function open(settings, address = url) {
  const context = await browser.newContext(settings);
  const page = await context.newPage();
  const html = { contentType: "text/html", body: "<title>stranger</title>" };
  await page.route((asked) => asked.href === otherUrl, (route) => route.fulfill(html));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) found.complaints.push(message.text());
  });
  page.on("pageerror", (error) => found.complaints.push(String(error)));
  page.on("request", (sent) => found.requests.push(sent.url()));
  await page.goto(address);
  return page;
}

async function picture(page, name) {
  const file = path.join(folder, `${name}.png`);
  await page.screenshot({ path: file, fullPage: true });
  found.pictures.push(file);
}

const card = (page, name) => page.locator(`article[aria-label="${name}"]`);

// Until a card says this of its path.
const says = (page, name, words) => page.waitForFunction(
  ([label, text]) => document.querySelector(`article[aria-label="${label}"] .state`)?.textContent.includes(text),
  [name, words], PATIENCE,
);

// Until an event says this.
const happened = (page, words) => page.waitForFunction(
  (text) => document.getElementById("events").textContent.includes(text), words, PATIENCE,
);

// Until the chart has samples of so many seconds.
const drawn = (page, seconds) => page.waitForFunction(
  (least) => (document.querySelector(".panel .sum")?.getAttribute("d").split("L").length ?? 0) >= least,
  seconds, PATIENCE,
);

// Presses Tab until this control has the focus.
async function tabTo(page, name) {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(() => document.activeElement?.getAttribute("aria-label")) === name) return;
  }
  throw new Error(`the keyboard does not reach ${name}`);
}

// The names of everything that the keyboard reaches, in order.
async function tabOrder(page) {
  const names = [];
  await page.evaluate(() => document.activeElement?.blur());
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    const name = await page.evaluate(() => {
      const focused = document.activeElement;
      if (!focused || focused === document.body) return null;
      return focused.getAttribute("aria-label") || focused.textContent.trim();
    });
    if (name === null || names.includes(name)) break;
    names.push(name);
  }
  return names;
}

// Controls without a name, and names that several buttons share.
const misnamed = (page) => page.evaluate(() => {
  const nameOf = (control) => (control.getAttribute("aria-label") || control.labels?.[0]?.textContent || control.textContent || "").trim();
  const controls = [...document.querySelectorAll("button, input, summary, [tabindex], svg[role=img]:not([hidden])")];
  const names = [...document.querySelectorAll("button")].map(nameOf);
  return [
    ...controls.filter((control) => !nameOf(control)).map((control) => control.outerHTML.slice(0, 80)),
    ...names.filter((name, index) => names.indexOf(name) !== index),
  ];
});

// Texts whose contrast with what lies behind them is less than WCAG AA asks for.
const lowContrast = (page) => page.evaluate(() => {
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).map((value) => {
      const share = value / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const isClear = (colour) => channels(colour)[3] === 0;
  const behind = (part) => {
    for (let at = part; at; at = at.parentElement) {
      const { backgroundColor } = getComputedStyle(at);
      if (!(at instanceof SVGElement) && !isClear(backgroundColor)) return backgroundColor;
    }
    return "rgb(255, 255, 255)";
  };
  const low = [];
  for (const part of document.querySelectorAll("body *")) {
    const own = [...part.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !part.getClientRects().length || part.closest(".unseen, title")) continue;
    const style = getComputedStyle(part);
    const front = part instanceof SVGElement ? style.fill : style.color;
    const [one, two] = [luminance(front), luminance(behind(part))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) low.push(`${part.textContent.slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return low;
});

// What lies beside a narrow screen.
const beside = (page) => page.evaluate(() => [...document.querySelectorAll("body, body *")]
  .filter((part) => !part.closest(".scroll, .unseen, defs, title") || part.matches(".scroll"))
  .filter((part) => part.getBoundingClientRect().right > window.innerWidth + 0.5
    || (!(part instanceof SVGElement) && !part.matches(".scroll") && part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0 && getComputedStyle(part).display !== "inline"))
  .map((part) => `${part.localName} ${part.className.baseVal ?? part.className} ${part.textContent.slice(0, 30)}`));

// All that is folded, so that it is checked too.
const unfold = (page) => page.evaluate(() => document.querySelectorAll("details").forEach((part) => { part.open = true; }));

async function useByKeyboard(page) {
  await tabTo(page, "Pause: usb0");
  await page.keyboard.press("Enter");
  await says(page, "usb0", "Paused");
  found.paused = await request("paths");
  found.focus_after = await page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
  await page.keyboard.press("Enter");
  await says(page, "usb0", "Receiving");
  await tabTo(page, "Make backup: usb0");
  await page.keyboard.press("Space");
  await page.waitForFunction(() => document.querySelector('article[aria-label="usb0"] .role').textContent === "backup", null, PATIENCE);
  found.backup = await request("paths");
  await page.keyboard.press("Space");
  await page.waitForFunction(() => document.querySelector('article[aria-label="usb0"] .role').textContent === "primary", null, PATIENCE);
  await tabTo(page, "Limit: usb0");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("12.5");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector('article[aria-label="usb0"] .limits').textContent.includes("12.5 Mbit/s"), null, PATIENCE);
  found.limited = await request("paths");
  // The last path in use is refused, in words.
  await tabTo(page, "Pause: usb0");
  await page.keyboard.press("Enter");
  await says(page, "usb0", "Paused");
  await card(page, "wlan0").getByRole("button", { name: "Pause: wlan0" }).click();
  found.refusal = await card(page, "wlan0").getByRole("alert").innerText();
  await card(page, "usb0").getByRole("button", { name: "Resume: usb0" }).click();
  await says(page, "usb0", "Receiving");
}

async function loseAndMend(page) {
  await request("cut");
  await happened(page, "usb0 is lost");
  await says(page, "usb0", "ot connected");
  found.lost = {
    level: await card(page, "usb0").getAttribute("data-level"),
    hero: await page.locator("#hero").getAttribute("data-level"),
    sentence: await page.locator("#sentence").innerText(),
    live: await page.locator("#live").textContent(),
    colour: await card(page, "usb0").locator(".state").evaluate((part) => getComputedStyle(part).color),
    event: await page.locator('#events li[data-level="bad"]').first().innerText(),
  };
  await picture(page, "lost");
  await request("mend");
  await happened(page, "usb0 is back");
  found.mended = await page.locator(".mark").count();
}

// What a page of a stranger in the same browser can do, were it to know the token.
async function strange(token) {
  const stranger = await open({}, otherUrl);
  const target = `${new URL(url).origin}/api/path`;
  found.strange = await stranger.evaluate(async ([address, secret]) => {
    const body = JSON.stringify({ schema: "sumrate.control.v1", path: "usb0", set: { paused: true } });
    const tried = [];
    for (const settings of [
      { headers: { Authorization: `Bearer ${secret}`, "Content-Type": "application/json" } },
      { mode: "no-cors", headers: { "Content-Type": "text/plain" } },
    ]) {
      try {
        tried.push((await fetch(address, { method: "POST", body, ...settings })).type);
      } catch {
        tried.push("refused");
      }
    }
    return tried;
  }, [target, token]);
  found.after_strange = await request("paths");
}

try {
  const token = new URLSearchParams(new URL(url).hash.slice(1)).get("token");
  const wide = await open({ viewport: { width: 1100, height: 900 }, colorScheme: "light" });
  await drawn(wide, 12);
  found.address = wide.url();
  found.sentence = await wide.locator("#sentence").innerText();
  found.live = await wide.locator("#live").textContent();
  found.rates = await wide.locator("#rates").innerText();
  found.cards = await wide.locator(".card").evaluateAll((all) => all.map((one) => one.innerText));
  found.kinds = await wide.locator(".chip svg").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
  found.charts = await wide.locator(".panel svg:not([hidden])").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
  found.order = await tabOrder(wide);
  await useByKeyboard(wide);
  const seconds = await wide.evaluate(() => document.querySelector(".panel .sum").getAttribute("d").split("L").length);
  await wide.reload();
  await wide.waitForSelector(".card");
  found.after_reload = {
    seconds: await wide.evaluate(() => document.querySelector(".panel .sum").getAttribute("d").split("L").length) - seconds,
    events: await wide.locator("#events").innerText(),
    trouble: await wide.locator("#trouble").isVisible(),
  };
  await loseAndMend(wide);
  await unfold(wide);
  await wide.waitForSelector("#paths tr");
  found.table = await wide.locator("#numbers-rows tr").count();
  found.internals = await wide.locator("#internals").innerText();
  found.misnamed = await misnamed(wide);
  found.contrasts.light = await lowContrast(wide);
  await wide.reload();
  await drawn(wide, 12);
  await picture(wide, "light");
  const dark = await open({ viewport: { width: 1100, height: 900 }, colorScheme: "dark" });
  await drawn(dark, 12);
  await picture(dark, "dark");
  await unfold(dark);
  await dark.waitForSelector("#paths tr");
  found.ground = await dark.evaluate(() => getComputedStyle(document.body).backgroundColor);
  found.contrasts.dark = await lowContrast(dark);
  const narrow = await open({ viewport: { width: 400, height: 800 }, deviceScaleFactor: 2 });
  await drawn(narrow, 12);
  await picture(narrow, "narrow");
  await unfold(narrow);
  await narrow.waitForSelector("#paths tr");
  found.beside = await beside(narrow);
  found.width = await narrow.evaluate(() => document.documentElement.scrollWidth);
  const far = await open({}, farUrl);
  await drawn(far, 12);
  found.far_panels = await far.locator(".panel h3").allInnerTexts();
  found.far_cards = await far.locator(".card").evaluateAll((all) => all.map((one) => one.innerText));
  found.far_buttons = await far.locator("button").count();
  found.complaints_with_token = found.complaints.splice(0);
  await strange(token);
  const stranger = await open({}, `${new URL(url).origin}/#token=wrong`);
  await stranger.waitForSelector("#trouble:not([hidden])");
  found.stranger = await stranger.locator("#trouble").innerText();
  found.stranger_cards = await stranger.locator(".card").count();
} finally {
  await browser.close();
}
console.log(JSON.stringify(found));
process.exit(0);
