// Loads pages in one Chromium, one request a line on a Unix socket, one answer a line.
//
// node load.js SOCKET SETTINGS
//   SETTINGS  JSON: {"executable": "/usr/bin/chromium", "arguments": [...], "proxy": "socks5://..."}
// Requests:
//   {"afresh": true}: from now on nothing is cached and no connection is open
//   {"url": ..., "objects": ..., "timeout_ms": ...}
//     objects: how many the page has, the document too
// Answers:
//   {"afresh": true}, or
//   {"onload_ms", "fcp_ms", "lcp_ms", "names", "failed", "bytes",
//    "body_bytes", "protocols"} or {"error"}

import net from "node:net";
import readline from "node:readline";
import { chromium } from "playwright-core";

const PATIENCE_MS = 3000; // what has not come by then after the load event does not come

// In the page: when it was there, and what it drew in.
async function timings({ objects, patienceMs }) {
  const painted = () => performance.getEntriesByName("first-contentful-paint")[0];
  // The icon is the browser's own wish, not of the page.
  const resources = () =>
    performance.getEntriesByType("resource").filter((e) => !e.name.endsWith("/favicon.ico"));
  const missing = () => resources().length + 1 < objects;
  const until = performance.now() + patienceMs;
  while ((!painted() || missing()) && performance.now() < until) {
    await new Promise((done) => setTimeout(done, 20));
  }
  // Candidates come with frames: the last one after which none came for a while.
  const largest = await new Promise((done) => {
    let latest = null;
    let quiet = setTimeout(() => done(null), Math.max(200, until - performance.now()));
    new PerformanceObserver((list) => {
      latest = list.getEntries().at(-1)?.startTime ?? latest;
      clearTimeout(quiet);
      quiet = setTimeout(() => done(latest), 200);
    }).observe({ type: "largest-contentful-paint", buffered: true });
  });
  const [page] = performance.getEntriesByType("navigation");
  const drawn = resources();
  const every = [page, ...drawn];
  return {
    onload_ms: page.loadEventStart,
    fcp_ms: painted()?.startTime ?? null,
    lcp_ms: largest,
    names: every.map((entry) => entry.name),
    // Of other origins' objects the status is hidden (0); a failed one has no body, which counts.
    failed: every.filter((entry) => entry.responseStatus >= 400).map((entry) => entry.name),
    bytes: every.reduce((sum, entry) => sum + entry.transferSize, 0),
    body_bytes: every.reduce((sum, entry) => sum + entry.encodedBodySize, 0),
    protocols: [...new Set(every.map((entry) => entry.nextHopProtocol).filter(Boolean))],
  };
}

async function main(path, settings) {
  const browser = await chromium.launch({
    executablePath: settings.executable,
    args: settings.arguments,
    proxy: settings.proxy ? { server: settings.proxy } : undefined,
    headless: true,
  });
  let context = null;
  let page = null;

  async function begin() {
    await context?.close();
    context = page = null;
    context = await browser.newContext();
    await context.addInitScript(() => performance.setResourceTimingBufferSize(10000));
    page = await context.newPage();
    return { afresh: true };
  }

  async function load({ url, afresh, objects, timeout_ms: timeout }) {
    if (afresh) return begin();
    if (!context) await begin();
    await page.goto(url, { waitUntil: "load", timeout });
    return page.evaluate(timings, { objects, patienceMs: PATIENCE_MS });
  }

  const server = net.createServer(async (connection) => {
    for await (const line of readline.createInterface({ input: connection })) {
      let answer;
      try {
        answer = await load(JSON.parse(line));
      } catch (error) {
        // What follows the first line is a log with colours.
        answer = { error: String(error.message ?? error).split("\n")[0] };
      }
      connection.write(`${JSON.stringify(answer)}\n`);
    }
  });
  const stop = async () => {
    await browser.close();
    process.exit(0);
  };
  process.on("SIGTERM", stop);
  server.listen(path, () => console.log(`${browser.version()} listens`));
}

main(process.argv[2], JSON.parse(process.argv[3])).catch((error) => {
  console.error(error);
  process.exit(1);
});
