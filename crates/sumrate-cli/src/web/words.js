// Numbers in words, and elements of the page. Text goes in as text only.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** An element with a text and classes. */
export function element(name, text, classes) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (classes) made.className = classes;
  return made;
}

/** An element of a drawing. */
export function drawn(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Sets a text only where it differs, so that nothing is read out or selected anew. */
export function say(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

/** Bytes with a decimal unit. */
export function bytes(count) {
  for (const [size, unit] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (count >= size) return `${(count / size).toFixed(1)} ${unit}`;
  }
  return `${count} B`;
}

/** A rate with two or three digits: its number and its unit. */
export function rate(mbps) {
  if (mbps >= 999.5) return [(mbps / 1e3).toFixed(2), "Gbit/s"];
  if (mbps >= 9.95) return [mbps.toFixed(0), "Mbit/s"];
  if (mbps >= 0.95) return [mbps.toFixed(1), "Mbit/s"];
  if (mbps >= 0.0295) return [(mbps * 1e3).toFixed(0), "kbit/s"];
  return ["0", "Mbit/s"];
}

/** A time in the unit that suits it. */
export function lasting(seconds) {
  if (seconds < 120) return `${seconds.toFixed(0)} s`;
  return seconds < 7200 ? `${(seconds / 60).toFixed(0)} min` : `${(seconds / 3600).toFixed(0)} h`;
}

/** A count with its noun. */
export const counted = (count, one, many) => `${count} ${count === 1 ? one : many}`;

/** A round trip in milliseconds. */
export function milliseconds(ms) {
  if (!(ms > 0)) return "–";
  if (ms < 0.1) return "<0.1 ms";
  return `${ms < 9.95 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
}

const colours = new Map();
/** Colours that people with any colour vision can tell apart. */
export const COLOURS = 7;

/** The colour of a path: it keeps it as long as the page is open. */
export function colour(key) {
  if (!colours.has(key)) colours.set(key, colours.size % COLOURS);
  return colours.get(key);
}

/** The place of a path among all that the page has shown. */
export const place = (key) => [...colours.keys()].indexOf(key);

/** The client of a session of a server, as in the history. */
export const client = ({ id, credential }) => credential ?? id.slice(0, 8);
