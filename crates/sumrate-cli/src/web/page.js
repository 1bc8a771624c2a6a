// The status page: asks once a second, keeps five minutes, draws. Text goes in as text only.
"use strict";

const KEEP_S = 300;
const ASK_MS = 1000;
const COLOURS = 7;
const DASHES = ["", "8 4", "2 3", "10 3 2 3", "5 2", "1 5", "12 6"];
const SVG = "http://www.w3.org/2000/svg";

const byId = (id) => document.getElementById(id);
const past = new Map(); // "session path" -> { place, points: [{ at, sent, received, rtt }] }
let before = null;
let measure = "received"; // what is drawn
let chosen = false; // whether somebody has chosen it

/** The token of the printed URL; kept for reloads of this tab and taken out of the address. */
function token() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    window.history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("token") ?? "";
}

function element(name, text, classes) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (classes) made.className = classes;
  return made;
}

/** A row of cells; its role stays when a phone lays it out as no table. */
function tableRow(...cells) {
  const made = element("tr");
  made.setAttribute("role", "row");
  made.append(...cells);
  return made;
}

/** A cell. A phone has no room for heads of columns and shows the label beside each. */
function cell(label, text, classes) {
  const made = element("td", text, classes);
  made.setAttribute("role", "cell");
  made.dataset.label = label;
  return made;
}

function drawn(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function bytes(count) {
  for (const [size, unit] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (count >= size) return `${(count / size).toFixed(1)} ${unit}`;
  }
  return `${count} B`;
}

function lasting(seconds) {
  if (seconds < 120) return `${seconds.toFixed(0)} s`;
  return seconds < 7200 ? `${(seconds / 60).toFixed(0)} min` : `${(seconds / 3600).toFixed(0)} h`;
}

const letter = (place) => String.fromCharCode(65 + (place % 26));

function trouble(words) {
  byId("trouble").textContent = words;
  byId("trouble").hidden = !words;
}

async function ask() {
  try {
    const headers = { Authorization: `Bearer ${token()}` };
    const answer = await fetch("api/status", { headers, cache: "no-store" });
    if (answer.status === 401) {
      trouble("This page needs the whole URL that sumrate printed, with its token.");
    } else if (answer.ok) {
      const report = await answer.json();
      trouble(notice(report));
      show(report);
    } else {
      trouble(`sumrate answered with status ${answer.status}.`);
    }
  } catch {
    trouble("No answer: sumrate has stopped, or cannot be reached.");
  }
}

/** What matters more than every number. */
function notice({ stopping, outage }) {
  const words = [];
  if (stopping) {
    words.push(`Stopping: ${stopping.streams} stream${stopping.streams === 1 ? "" : "s"} left, at most ${stopping.most_s.toFixed(0)} s.`);
  }
  if (outage?.quotas_spent) words.push(outage.last_error);
  else if (outage) words.push(`The server is not reached for ${outage.since_s.toFixed(0)} s: ${outage.last_error}`);
  return words.join(" ");
}

/** What tells a session from the others of a server. */
const label = ({ id, credential }) => [id.slice(0, 8), credential].filter(Boolean).join(" ");

/** Rates since the report before, in Mbit/s. */
function rates(session, path, elapsed) {
  const earlier = before?.sessions.find((known) => known.id === session.id)
    ?.paths.find((known) => known.name === path.name);
  if (!earlier || elapsed <= 0) return { sent: null, received: null };
  const mbps = (now, then) => Math.max(0, now - then) * 8e-6 / elapsed;
  const sent = (of) => of.sent_bytes + of.redundant_bytes;
  return {
    sent: mbps(sent(path), sent(earlier)),
    received: mbps(path.received_bytes, earlier.received_bytes),
  };
}

/** Draws this, and shows that it is chosen, whatever a browser remembers of the page. */
function choose(value) {
  measure = value;
  for (const choice of byId("measures").elements) choice.checked = choice.value === value;
}

function show(report) {
  // Downloads come first: they arrive at the client, and leave the server.
  if (!before && !chosen) choose(report.role === "server" ? "sent" : "received");
  const elapsed = before ? report.uptime_s - before.uptime_s : 0;
  byId("process").textContent =
    `${report.role} ${report.version}, up for ${Math.round(report.uptime_s)} s, ` +
    `${report.sessions.length} session${report.sessions.length === 1 ? "" : "s"}`;
  const rows = [];
  const streams = [];
  const windows = [];
  const alive = new Set();
  const several = report.sessions.length > 1;
  let first = 0; // letters and colours go on from session to session
  for (const session of report.sessions) {
    const of = several ? label(session) : "";
    const offset = first;
    session.paths.forEach((path, index) => {
      const key = `${session.id} ${path.name}`;
      const place = offset + index;
      alive.add(key);
      const rate = rates(session, path, elapsed);
      remember(key, place, of, path, rate, report.uptime_s);
      rows.push(pathRow(path, place, of, rate));
    });
    windows.push(...session.windows.map((window) => windowLine(window, offset)));
    streams.push(...session.streams);
    first += session.paths.length;
  }
  (report.idle_paths ?? []).forEach((path, place) => {
    rows.push(pathRow(path, place, "", { sent: null, received: null }));
  });
  for (const key of past.keys()) if (!alive.has(key)) past.delete(key);
  byId("paths").replaceChildren(...rows);
  byId("windows").replaceChildren(...(windows.length ? windows : [element("p", "no window waits for anything at this end", "note")]));
  streams.sort((a, b) => b.written_bytes + b.received_bytes - a.written_bytes - a.received_bytes);
  byId("streams").replaceChildren(...streams.slice(0, 20).map(streamRow));
  const { udp } = report;
  byId("udp").textContent = udp
    ? `UDP: ${udp.flows} flow${udp.flows === 1 ? "" : "s"} open, ${udp.opened} so far; ` +
      `sent ${udp.sent_datagrams} datagrams (${bytes(udp.sent_bytes)}), ` +
      `received ${udp.received_datagrams} (${bytes(udp.received_bytes)})`
    : "";
  before = report;
  drawChart(report.uptime_s);
}

function remember(key, place, of, path, rate, at) {
  const line = past.get(key) ?? { points: [] };
  past.set(key, Object.assign(line, { name: path.name, full: of ? `${path.name} (${of})` : path.name, place }));
  const { points } = line;
  if (points.length && at < points[points.length - 1].at) points.length = 0; // it was restarted
  points.push({ at, sent: rate.sent, received: rate.received, rtt: path.rtt_ms || null });
  while (points[0].at < at - KEEP_S) points.shift();
}

/** How the path is to be used, where that is not as usual. */
function uses({ weight, rate_cap_mbps: cap, never, metered }) {
  const words = [];
  if (cap) words.push(`at most ${cap} Mbit/s each way`);
  if (weight) words.push(`weight ${weight}`);
  if (never?.length) words.push(`never ${never.join(", ")}`);
  if (metered) words.push("metered");
  return words.map((word) => `; ${word}`).join("");
}

/** Why the other end sends on it what it sends. */
function fromAfar({ why, far }) {
  return far && far.why !== why ? `; the other end: ${far.why_idle}` : "";
}

function pathRow(path, place, of, rate) {
  const name = element("th");
  name.scope = "row";
  name.setAttribute("role", "rowheader");
  name.append(element("span", letter(place), `mark path-${place % COLOURS}`), path.name);
  if (of) name.append(element("span", of, "of"));
  const number = (label, value) => cell(label, value === null ? "-" : value.toFixed(1), "number");
  const commit = cell("commit");
  const meter = element("meter", `${path.commit_bytes} of ${path.commit_limit_bytes} bytes`);
  meter.max = Math.max(1, path.commit_limit_bytes);
  meter.value = path.commit_bytes;
  meter.title = meter.textContent;
  commit.append(meter);
  const quota = path.quota && path.why !== "quota"
    ? `; ${bytes(path.quota.used_bytes)}${path.quota.limit_bytes ? ` of ${bytes(path.quota.limit_bytes)}` : ""} used in ${path.quota.month}`
    : "";
  const wrong = path.last_error
    ? `; last error, ${lasting(path.last_error.ago_s)} ago: ${path.last_error.reason}`
    : "";
  return tableRow(name, cell("health", path.health, path.health === "active" ? "" : "bad"),
    cell("priority", path.priority), number("out", rate.sent), number("in", rate.received),
    number("link out", path.rate_mbps || null), number("link in", path.far?.rate_mbps || null),
    cell("RTT", path.rtt_ms > 0 ? `${path.rtt_ms.toFixed(1)} ms` : "-", "number"),
    commit, cell("now", path.why_idle + fromAfar(path) + wrong + uses(path) + quota, "words"));
}

function windowLine(window, offset) {
  const what = window.sending ? "sending" : "receiving";
  const line = element("p", undefined, "window");
  line.append(element("span", `stream ${window.stream}, ${what} ${bytes(window.to - window.from)} `),
    element("br"));
  for (const cell of window.cells) {
    const place = cell.charCodeAt(0) - 65;
    const carried = place >= 0 && place < 26;
    const shown = carried ? letter(offset + place) : cell.replace(".", "·");
    const classes = carried ? `cell carried path-${(offset + place) % COLOURS}` : "cell";
    line.append(element("span", shown, classes));
  }
  return line;
}

function streamRow(stream) {
  const delay = stream.in_order_delay_ms;
  const guessed = stream.class_guessed ? " (guessed)" : "";
  return tableRow(cell("stream", stream.id, "number"), cell("class", `${stream.class}${guessed}`, "whole"),
    cell("written", bytes(stream.written_bytes), "number"),
    cell("received", bytes(stream.received_bytes), "number"),
    cell("in-order delay p50 / p99", `${delay.p50.toFixed(1)} / ${delay.p99.toFixed(1)} ms`, "number whole"),
    cell("longest stall", `${stream.longest_stall_ms.toFixed(0)} ms`, "number whole"));
}

/** The next of 1, 2, 5, 10, ... */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-3)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function drawChart(now) {
  const chart = byId("chart");
  const { width, height } = chart.getBoundingClientRect();
  const [left, right, top, bottom] = [52, 74, 12, 24];
  const lines = [...past.values()];
  const values = lines.flatMap((line) => line.points.map((point) => point[measure]))
    .filter((value) => value !== null);
  const most = roundUp(Math.max(...values, 1));
  const first = Math.min(now, ...lines.flatMap((line) => line.points.slice(0, 1).map((p) => p.at)));
  const span = Math.min(KEEP_S, Math.max(30, now - first));
  const x = (at) => left + (width - left - right) * (1 - (now - at) / span);
  const y = (value) => top + (height - top - bottom) * (1 - value / most);
  const parts = [];
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const at = y(most * share);
    parts.push(drawn("line", { class: "axis", x1: left, x2: width - right, y1: at, y2: at }),
      drawn("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, +(most * share).toPrecision(3)));
  }
  for (const share of [0, 0.5, 1]) {
    const anchor = ["start", "middle", "end"][share * 2];
    const words = share === 1 ? "now" : `-${Math.round(span * (1 - share))} s`;
    parts.push(drawn("text", { x: x(now - span * (1 - share)), y: height - 6, "text-anchor": anchor }, words));
  }
  const labels = [];
  for (const line of lines) {
    const shown = line.points.filter((point) => point[measure] !== null && point.at >= now - span);
    if (!shown.length) continue;
    const points = shown.map((p) => `${x(p.at).toFixed(1)},${y(p[measure]).toFixed(1)}`).join(" ");
    const colour = line.place % COLOURS;
    parts.push(drawn("polyline", { class: `line-${colour}`, points, "stroke-dasharray": DASHES[colour] }));
    labels.push({ colour, name: `${letter(line.place)} ${line.name}`, y: y(shown[shown.length - 1][measure]) });
  }
  // Labels that would lie on each other are moved apart.
  labels.sort((a, b) => a.y - b.y);
  labels.forEach((label, index) => {
    if (index) label.y = Math.max(label.y, labels[index - 1].y + 14);
  });
  const over = labels.length ? Math.max(0, labels[labels.length - 1].y - (height - bottom)) : 0;
  for (const label of labels) {
    parts.push(drawn("text", { class: `name text-${label.colour}`, x: width - right + 6, y: label.y - over + 4 },
      label.name.length > 11 ? `${label.name.slice(0, 10)}…` : label.name));
  }
  chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
  chart.replaceChildren(...parts);
  byId("chart-words").textContent = lines.map((line) => words(line)).join(" ");
}

/** What a line shows, for those who do not see it. */
function words(line) {
  const values = line.points.map((point) => point[measure]).filter((value) => value !== null);
  if (!values.length) return `${line.full}: nothing yet.`;
  const unit = measure === "rtt" ? "ms" : "Mbit/s";
  const [last, least, most] = [values[values.length - 1], Math.min(...values), Math.max(...values)];
  return `${line.full}: ${last.toFixed(1)} ${unit} now, ${least.toFixed(1)} to ${most.toFixed(1)}.`;
}

byId("measures").addEventListener("change", (event) => {
  chosen = true;
  measure = event.target.value;
  if (before) drawChart(before.uptime_s);
});
window.addEventListener("resize", () => { if (before) drawChart(before.uptime_s); });
ask();
setInterval(() => { if (!document.hidden) ask(); }, ASK_MS);
