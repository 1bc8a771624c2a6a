// What researchers look at: paths, classes, streams and windows. It is filled only while it is open.

import { byId, bytes, colour, counted, element } from "./words.js";

const STREAMS = 20;

/** Fills the tables, if they are shown. */
export function showInternals(report, links) {
  if (!byId("internals").open) return;
  byId("paths").replaceChildren(...links.map(pathRow));
  byId("classes").replaceChildren(...classes(report).map(classRow));
  const streams = report.sessions.flatMap((session) => session.streams);
  streams.sort((a, b) => b.written_bytes + b.received_bytes - a.written_bytes - a.received_bytes);
  byId("streams").replaceChildren(...streams.slice(0, STREAMS).map(streamRow));
  byId("windows").replaceChildren(...windows(report, links));
  const { udp } = report;
  byId("udp").textContent = udp
    ? `UDP: ${counted(udp.flows, "flow", "flows")} open, ${udp.opened} so far; ` +
      `sent ${bytes(udp.sent_bytes)}, received ${bytes(udp.received_bytes)}.`
    : "";
}

function tableRow(head, ...cells) {
  const row = element("tr");
  head.scope = "row";
  row.append(head, ...cells);
  return row;
}

const number = (text) => element("td", text, "number");

/** Which letter stands for a link in the windows. */
const letter = (place) => String.fromCharCode(65 + (place % 26));

function pathRow({ path, key, of }, place) {
  const head = element("th");
  head.append(element("span", letter(place), `letter fill-${colour(key)}`), of ? `${of} ${path.name}` : path.name);
  const held = element("td");
  const meter = element("meter", `${path.commit_bytes} of ${path.commit_limit_bytes} bytes`);
  meter.max = Math.max(1, path.commit_limit_bytes);
  meter.value = path.commit_bytes;
  meter.setAttribute("aria-label", `in flight on ${path.name}`);
  held.append(meter, ` ${bytes(path.commit_bytes)}`);
  const isUp = path.health === "active";
  // An estimate far above what is carried now is one of other times: the link can do that at least.
  const mbps = (value, load) => {
    if (!isUp || !value || load < 0.1) return number("–");
    return number(value <= 4 * load ? `${value.toFixed(0)} Mbit/s` : `at least ${load.toFixed(1)} Mbit/s`);
  };
  const far = path.far && path.far.why !== path.why ? `; the other end: ${path.far.why_idle}` : "";
  return tableRow(head, held, mbps(path.rate_mbps, path.up_mbps), mbps(path.far?.rate_mbps, path.down_mbps), number(bytes(path.redundant_bytes)),
    number(`${(100 * path.retransmitted_share).toFixed(2)} %`), element("td", path.why_idle + far, "words"));
}

/** The classes of all sessions together. */
function classes(report) {
  const sums = new Map();
  for (const of of report.sessions.flatMap((session) => session.classes)) {
    const sum = sums.get(of.class) ?? { class: of.class, streams: 0, received: 0, sent: 0, copies: 0 };
    sum.streams += of.streams;
    sum.received += of.received_bytes;
    sum.sent += of.sent_bytes;
    sum.copies += of.redundant_bytes;
    sums.set(of.class, sum);
  }
  return [...sums.values()];
}

function classRow(sum) {
  return tableRow(element("th", sum.class), number(sum.streams), number(bytes(sum.received)),
    number(bytes(sum.sent)), number(bytes(sum.copies)));
}

function streamRow(stream) {
  const delay = stream.in_order_delay_ms;
  const guessed = stream.class_guessed ? " (auto)" : "";
  return tableRow(element("th", stream.id, "number"), element("td", `${stream.class}${guessed}`),
    number(bytes(stream.received_bytes)), number(bytes(stream.written_bytes)),
    number(`${delay.p50.toFixed(1)} / ${delay.p99.toFixed(1)} ms`), number(`${stream.longest_stall_ms.toFixed(0)} ms`));
}

/** The windows of all sessions; a letter is that of the link in the table of paths. */
function windows(report, links) {
  const lines = [];
  for (const session of report.sessions) {
    const own = session.paths.map((path) => links.findIndex((link) => link.id === `${session.id} ${path.name}`));
    lines.push(...session.windows.map((window) => windowLine(window, own, links)));
  }
  return lines.length ? lines : [element("p", "Nothing is in flight.", "note")];
}

function windowLine(window, own, links) {
  const line = element("p", undefined, "window");
  const what = window.sending ? "sending" : "receiving";
  line.append(element("span", `stream ${window.stream}, ${what} ${bytes(window.to - window.from)}`), element("br"));
  for (const cell of window.cells) {
    const place = own[cell.charCodeAt(0) - 65] ?? -1;
    if (place < 0) line.append(element("span", cell.replace(".", "·"), "cell"));
    else line.append(element("span", letter(place), `cell letter fill-${colour(links[place].key)}`));
  }
  return line;
}
