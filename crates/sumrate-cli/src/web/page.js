// The status page: asks once a second for the status and the history, and shows both.

import { byId, client, colour, counted, element, lasting, rate, say } from "./words.js";
import { MOST_CARDS, showCards } from "./cards.js";
import { drawHistory } from "./chart.js";
import { showInternals } from "./internals.js";

const ASK_MS = 1000;
const EVENTS = 8;
/** A sign for each level, so that it is not told by colour alone. */
const SIGNS = { good: "M7 12.5l3.5 3.5L17 8.5", degraded: "M12 6.5v7M12 17.3v.2", down: "M8 8l8 8M16 8l-8 8", idle: "M7.5 12h9" };

let last = null; // the newest report and history
let canChange = false;
let announced = "";

/** The token of the printed URL; kept for reloads of this tab and taken out of the address. */
function token() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    window.history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("token") ?? "";
}

const headers = () => ({ Authorization: `Bearer ${token()}` });

function trouble(words) {
  say(byId("trouble"), words);
  byId("trouble").hidden = !words;
  document.body.classList.toggle("stale", Boolean(words));
  if (words) document.title = "Sumrate"; // no rate of earlier
}

async function ask() {
  try {
    const settings = { headers: headers(), cache: "no-store" };
    const answers = await Promise.all([fetch("api/status", settings), fetch("api/history", settings)]);
    const bad = answers.find((answer) => !answer.ok);
    if (bad?.status === 401) {
      trouble("Open the whole address that sumrate printed, with its token.");
    } else if (bad) {
      trouble(`Sumrate answered with status ${bad.status}.`);
    } else {
      canChange = answers[0].headers.get("sumrate-controls") === "yes";
      const [report, past] = await Promise.all(answers.map((answer) => answer.json()));
      trouble("");
      show(report, past);
    }
  } catch {
    trouble("No answer: Sumrate has stopped, or cannot be reached.");
  }
}

/** Asks for a change of a path, like `sumrate path set`. Returns why it was refused, or "". */
async function change(path, set) {
  try {
    const answer = await fetch("api/path", {
      method: "POST",
      headers: { ...headers(), "Content-Type": "application/json" },
      body: JSON.stringify({ schema: "sumrate.control.v1", path, set }),
    });
    const refusal = answer.ok ? (await answer.json()).error : await answer.text();
    await ask();
    return refusal ?? "";
  } catch {
    return "No answer: Sumrate has stopped, or cannot be reached.";
  }
}

/** All paths of a report with the keys of their colours, and of the history. */
function links(report) {
  const of = (session, several) => session.paths.map((path) => ({
    path,
    key: `${report.role === "server" ? client(session) : ""} ${path.name}`,
    id: `${session.id} ${path.name}`,
    of: several ? client(session) : "",
  }));
  const several = report.role === "server";
  const idle = (report.idle_paths ?? []).map((path) => ({ path, key: ` ${path.name}`, id: ` ${path.name}`, of: "" }));
  // A session that a reload has replaced has the same paths: the newest counts.
  const sessions = several ? report.sessions : report.sessions.slice(0, 1);
  return [...sessions.flatMap((session) => of(session, several)), ...idle];
}

function show(report, past) {
  last = [report, past];
  const all = links(report);
  all.forEach(({ key }) => colour(key));
  showHeadline(report);
  byId("history").hidden = !past.paths.length;
  drawHistory(past, report.role === "server");
  showCards(all, canChange ? change : null);
  showNone(report, all);
  showEvents(past.events);
  showInternals(report, all);
}

function showHeadline(report) {
  const { headline, rates } = report;
  byId("hero").dataset.level = headline.level;
  byId("badge").firstElementChild.setAttribute("d", SIGNS[headline.level]);
  say(byId("sentence"), headline.sentence.charAt(0).toUpperCase() + headline.sentence.slice(1));
  for (const [name, mbps] of [["down", rates.down_mbps], ["up", rates.up_mbps]]) {
    const [number, unit] = rate(mbps);
    say(byId(name), number);
    say(byId(`${name}-unit`), unit);
  }
  byId("rates").hidden = false;
  // Read out when something else than a rate or a time changes.
  const next = /; (next attempt in .*|reconnecting now)$/;
  const gist = `${headline.level} ${headline.sentence.replace(next, "").replace(/[\d.]+ (\S?bit\/s|s|min|h)\b/g, "")}`;
  if (gist !== announced) {
    announced = gist;
    say(byId("live"), headline.sentence);
  }
  const busy = Math.max(rates.down_mbps, rates.up_mbps);
  document.title = busy >= 0.03 ? `${rate(busy).join(" ")} – Sumrate` : "Sumrate";
  const { socks, http } = report.proxies;
  const proxies = [["SOCKS5", socks], ["HTTP", http]].filter(([, address]) => address)
    .map(([name, address]) => `${name} proxy ${address}`);
  say(byId("process"), [report.role, ...proxies, `up for ${lasting(report.uptime_s)}`].join(" · "));
}

function showNone(report, all) {
  byId("none").hidden = all.length > 0 && all.length <= MOST_CARDS;
  const none = report.role === "server" ? "No client is connected." : "No link is known yet.";
  const more = `Not shown here: ${counted(all.length - MOST_CARDS, "link", "links")}; see the internals.`;
  say(byId("none"), all.length ? more : none);
}

function showEvents(events) {
  const newest = events.slice(-EVENTS).reverse();
  byId("quiet").hidden = newest.length > 0;
  byId("events").hidden = newest.length === 0;
  const rows = newest.map((event) => {
    const row = element("li");
    row.dataset.level = event.level;
    const time = element("time", `${lasting(event.ago_s)} ago`);
    const words = event.client && event.path ? `${event.client}: ${event.words}` : event.words;
    row.append(element("span", undefined, "dot"), element("span", words, "words"), time);
    return row;
  });
  byId("events").replaceChildren(...rows);
}

const redraw = () => {
  if (last) drawHistory(last[1], last[0].role === "server");
};
window.addEventListener("resize", redraw);
byId("numbers").addEventListener("toggle", redraw);
byId("internals").addEventListener("toggle", () => {
  if (last) showInternals(last[0], links(last[0]));
});
ask();
setInterval(() => { if (!document.hidden) ask(); }, ASK_MS);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) document.title = "Sumrate"; // nothing is asked meanwhile
  else ask();
});
