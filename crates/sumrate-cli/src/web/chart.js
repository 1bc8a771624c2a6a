// The last minutes: stacked areas whose top edge is the sum, down and up, and the round trips as lines.

import { byId, colour, drawn, element, lasting, milliseconds, place, rate, say } from "./words.js";

const SPAN_S = 300;
const LABEL_GAP = 15;
const LEAST_MBPS = 0.03;
const DASHES = ["", "7 3", "2 3", "10 3 2 3", "5 2", "1 4", "12 5"];

/** Draws the three charts, the busier direction first, and fills the table if it is open. */
export function drawHistory(past, isServer) {
  const minutes = Math.ceil(past.total.down_mbps.length * past.step_s / 60);
  const span = Math.min(SPAN_S, 60 * Math.max(1, minutes));
  say(byId("history-title"), span === 60 ? "Last minute" : `Last ${span / 60} minutes`);
  const lines = past.paths.map((path) => ({ ...path, key: `${path.client ?? ""} ${path.name}` }));
  lines.forEach((line) => colour(line.key));
  lines.sort((a, b) => place(a.key) - place(b.key));
  const down = { name: "Down", field: "down_mbps", unit: "Mbit/s", tall: !isServer, events: past.events };
  const up = { name: "Up", field: "up_mbps", unit: "Mbit/s", tall: isServer, events: isServer ? past.events : [] };
  const rtt = { name: "Round trip", field: "rtt_ms", unit: "ms", tall: false, events: [] };
  const panels = [...(isServer ? [up, down] : [down, up]), rtt];
  panels.forEach((settings, index) => {
    const panel = byId("panels").children[index] ?? makePanel();
    say(panel.querySelector("h3"), settings.name);
    say(panel.querySelector(".unit"), settings.unit);
    panel.classList.toggle("tall", settings.tall);
    // A direction in which nothing moved takes no room.
    const isStill = !settings.tall && settings.field !== "rtt_ms" && Math.max(0, ...past.total[settings.field]) < LEAST_MBPS;
    panel.querySelector("svg").toggleAttribute("hidden", isStill);
    panel.querySelector(".still").hidden = !isStill;
    panel.querySelector(".unit").hidden = isStill;
    if (!isStill) drawPanel(panel.querySelector("svg"), settings, lines, past.total, span);
  });
  if (byId("numbers").open) fillTable(lines, past.total);
}

function makePanel() {
  const panel = element("figure", undefined, "panel");
  const head = element("figcaption");
  const still = element("span", "nothing in this time", "still");
  head.append(element("h3"), element("span", undefined, "unit"), still);
  panel.append(head, drawn("svg", { role: "img" }));
  byId("panels").append(panel);
  return panel;
}

/** The next of 1, 2, 4, 5, 6, 8, 10, ... */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 0.1)));
  return [1, 2, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value * 0.999);
}

/** A list's newest samples over the span; null where there are none. */
function newest(samples, count) {
  const shown = samples.slice(-count);
  return [...Array(count - shown.length).fill(null), ...shown];
}

function drawPanel(svg, settings, lines, total, span) {
  const { width, height } = svg.getBoundingClientRect();
  const isNarrow = width < 480;
  const frame = { left: isNarrow ? 30 : 40, right: width - (isNarrow ? 74 : 128), top: 8, bottom: height - 20 };
  const count = Math.round(span);
  const isStacked = settings.field !== "rtt_ms";
  const samples = lines.map((line) => ({ line, values: newest(line[settings.field], count) }));
  const sums = isStacked ? newest(total[settings.field], count) : [];
  const highest = Math.max(...(isStacked ? sums : samples.flatMap(({ values }) => values)), isStacked ? 1 : 10);
  const most = roundUp(highest * 1.04);
  const x = (index) => frame.left + (frame.right - frame.left) * (index / Math.max(1, count - 1));
  const y = (value) => frame.bottom - (frame.bottom - frame.top) * (value / most);
  const parts = axes(frame, span, most, y, settings.tall);
  if (!isStacked) parts.push(...drawLines(samples, x, y));
  else parts.push(...drawStack(samples, sums, x, y));
  parts.push(...marks(settings.events, frame, span));
  parts.push(...labels(samples, isStacked ? sums : null, frame, y, isNarrow));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("aria-label", words(settings, samples, sums));
  svg.replaceChildren(...parts);
}

function axes(frame, span, most, y, isTall) {
  const parts = [];
  for (const share of isTall ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.5, 1]) {
    const at = y(most * share);
    parts.push(drawn("line", { class: share ? "grid" : "base", x1: frame.left, x2: frame.right, y1: at, y2: at }),
      drawn("text", { class: "tick", x: frame.left - 7, y: at + 4, "text-anchor": "end" }, +(most * share).toPrecision(3)));
  }
  const step = span <= 120 ? 30 : 60;
  for (let ago = 0; ago <= span; ago += step) {
    const at = frame.right - (frame.right - frame.left) * (ago / span);
    const label = step === 60 ? `−${ago / 60} min` : `−${ago} s`;
    parts.push(drawn("text", { class: "tick", x: at, y: frame.bottom + 15, "text-anchor": "middle" }, ago ? label : "now"));
  }
  return parts;
}

const point = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;

/** Each path on top of those before it, and the sum as a line on top of all. */
function drawStack(samples, sums, x, y) {
  const floor = sums.map(() => 0);
  const parts = samples.map(({ line, values }) => {
    const lower = floor.map((value, index) => point(x(index), y(value)));
    values.forEach((value, index) => { floor[index] += value ?? 0; });
    const upper = floor.map((value, index) => point(x(index), y(value)));
    const area = `M${upper.join("L")}L${lower.reverse().join("L")}Z`;
    return drawn("path", { class: `area fill-${colour(line.key)}`, d: area });
  });
  const first = sums.findIndex((value) => value !== null);
  const edge = sums.map((value, index) => point(x(index), y(value ?? 0))).slice(Math.max(0, first));
  parts.push(drawn("path", { class: "sum", d: `M${edge.join("L")}` }));
  return parts;
}

/** A line for each path, with gaps while it has no connection. */
function drawLines(samples, x, y) {
  return samples.map(({ line, values }) => {
    let pen = "M";
    let course = "";
    values.forEach((value, index) => {
      if (value !== null) course += `${pen}${point(x(index), y(value))}`;
      pen = value === null ? "M" : "L";
    });
    const index = colour(line.key);
    return drawn("path", { class: `line line-${index}`, d: course || "M0 0", "stroke-dasharray": DASHES[index] });
  });
}

/** Where paths or the server were lost or came back. */
function marks(events, frame, span) {
  const shown = events.filter(({ ago_s: ago, event }) => ago < span && /lost|back|left|used-up/.test(event));
  return shown.flatMap((event) => {
    const at = frame.right - (frame.right - frame.left) * (event.ago_s / span);
    const group = drawn("g", { class: `mark ${event.level}` });
    group.append(drawn("title", {}, event.words),
      drawn("line", { x1: at, x2: at, y1: frame.top, y2: frame.bottom }),
      drawn("circle", { cx: at, cy: frame.top, r: 4 }));
    return [group];
  });
}

/** Names and present values beside the right edge, moved apart where they would overlap. */
function labels(samples, sums, frame, y, isNarrow) {
  const wanted = [];
  let floor = 0;
  const sum = sums ? sums[sums.length - 1] ?? 0 : 0;
  for (const { line, values } of samples) {
    const value = values[values.length - 1] ?? 0;
    const at = sums ? floor + value / 2 : value;
    floor += value;
    if (value <= 0 || (sums && value < 0.03 * sum)) continue;
    const number = sums ? rate(value)[0] : milliseconds(value).replace(" ms", "");
    wanted.push({ at: y(at), text: `${shortened(line.name, isNarrow ? 7 : 12)} ${number}`, classes: `label text-${colour(line.key)}` });
  }
  if (sums && wanted.length > 1) {
    wanted.push({ at: y(sum), text: `${isNarrow ? "sum" : "total"} ${rate(sum)[0]}`, classes: "label total" });
  }
  wanted.sort((a, b) => b.at - a.at);
  wanted.forEach((label, index) => {
    label.at = Math.min(label.at + 4, (index ? wanted[index - 1].at : frame.bottom + LABEL_GAP) - LABEL_GAP);
  });
  return wanted.map(({ at, text, classes }) => drawn("text", { class: classes, x: frame.right + 8, y: Math.max(at, 11) }, text));
}

const shortened = (name, most) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

/** What a chart shows, for those who do not see it. */
function words({ name, field, unit }, samples, sums) {
  const number = (value) => (field === "rtt_ms" ? milliseconds(value) : `${rate(value).join(" ")}`);
  const of = (values) => {
    const known = values.filter((value) => value !== null && (field !== "rtt_ms" || value > 0));
    if (!known.length) return "no samples";
    return `${number(known[known.length - 1])} now, at most ${number(Math.max(...known))}`;
  };
  const all = sums.length ? [`total ${of(sums)}`] : [];
  const each = samples.map(({ line, values }) => `${line.name} ${of(values)}`);
  return `${name}, ${unit}: ${[...all, ...each].join("; ")}.`;
}

/** Means of half minutes, newest first. */
function fillTable(lines, total) {
  const columns = [["total", total], ...lines.map((line) => [line.name, line])];
  const heads = ["time", ...columns.flatMap(([name]) => [`${name} down`, `${name} up`])];
  byId("numbers-head").replaceChildren(...heads.map((head, index) => {
    const made = element("th", head, index ? "number" : "");
    made.scope = "col";
    return made;
  }));
  const rows = [];
  for (let ago = 0; ago < total.down_mbps.length; ago += 30) {
    const row = element("tr");
    const head = element("th", ago ? `${lasting(ago)} ago` : "now");
    head.scope = "row";
    row.append(head);
    for (const [, series] of columns) {
      for (const field of ["down_mbps", "up_mbps"]) {
        const end = series[field].length - ago;
        const values = series[field].slice(Math.max(0, end - 30), end);
        const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
        row.append(element("td", mean.toFixed(1), "number"));
      }
    }
    rows.push(row);
  }
  byId("numbers-rows").replaceChildren(...rows);
}
