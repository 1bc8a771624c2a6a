// A card for each link: its state, its rates, its data, and what can be changed of it.

import { byId, bytes, colour, drawn, element, lasting, milliseconds, rate, say } from "./words.js";

/** Links that have a card. */
export const MOST_CARDS = 60;
const KINDS = [
  ["WiFi", /^(wl|wifi|wigig)/i, "M3 10a13 13 0 0 1 18 0M6.5 13.7a8 8 0 0 1 11 0M10 17.3a3 3 0 0 1 4 0M12 20h.01"],
  ["phone by USB", /^(usb|enx|rndis|phone)/i, "M8 3h8a1.5 1.5 0 0 1 1.5 1.5v15a1.5 1.5 0 0 1-1.5 1.5H8a1.5 1.5 0 0 1-1.5-1.5v-15A1.5 1.5 0 0 1 8 3zM11 18h2"],
  ["mobile network", /^(ww|lte|5g|4g|cell|umts)/i, "M4 20v-3M9 20v-7M14 20V9M19 20V4"],
  ["cable", /^(en|eth|lan|cable|dsl|fibre|fiber)/i, "M4 4h16v11h-5v4H9v-4H4zM8 4v5M12 4v5M16 4v5"],
  ["link", /./, "M3 12h18M7 8l-4 4 4 4M17 8l4 4-4 4"],
];

const cards = new Map(); // by session and path: they keep the focus and what is being typed

/** Shows a card for each link. `change` carries out changes; without it there are no controls. */
export function showCards(links, change) {
  const shown = links.slice(0, MOST_CARDS);
  const alive = new Set(shown.map(({ id }) => id));
  for (const [id, card] of cards) {
    if (!alive.has(id)) {
      card.root.remove();
      cards.delete(id);
    }
  }
  shown.forEach((link, index) => {
    if (!cards.has(link.id)) cards.set(link.id, makeCard(link, change));
    const { root, update } = cards.get(link.id);
    update(link);
    const place = byId("links");
    if (place.children[index] !== root) place.insertBefore(root, place.children[index] ?? null);
  });
}

function icon(name) {
  const [kind, , course] = KINDS.find(([, pattern]) => pattern.test(name));
  const made = drawn("svg", { viewBox: "0 0 24 24", width: 24, height: 24, role: "img", "aria-label": kind });
  made.append(drawn("title", {}, kind), drawn("path", { d: course }));
  return made;
}

function makeCard({ path, key, of }, change) {
  const root = element("article", undefined, "card");
  const chip = element("span", undefined, `chip fill-${colour(key)}`);
  chip.append(icon(path.name));
  const name = element("h3", path.name);
  if (of) name.append(element("span", of, "of"));
  const role = element("span", undefined, "role");
  const head = element("div", undefined, "head");
  head.append(chip, name, role);
  const state = element("p", undefined, "state");
  const words = element("span");
  state.append(element("span", undefined, "dot"), words);
  const error = element("p", undefined, "error");
  const figures = makeFigures();
  const quota = element("progress");
  quota.setAttribute("aria-label", `data used of the quota of ${path.name}`);
  const limits = element("p", undefined, "limits");
  root.append(head, state, error, figures.root, quota, limits);
  root.setAttribute("aria-label", of ? `${path.name} of ${of}` : path.name);
  const controls = change ? makeControls(path.name, change) : null;
  if (controls) root.append(controls.root);
  const update = (link) => {
    const { path: now } = link;
    root.dataset.level = now.state.level;
    say(words, now.state.words.charAt(0).toUpperCase() + now.state.words.slice(1));
    say(role, now.priority.replace(/(\d)/, " $1"));
    role.classList.toggle("backup", now.priority !== "primary");
    say(error, now.last_error ? `${now.last_error.reason}, ${lasting(now.last_error.ago_s)} ago` : "");
    error.hidden = !now.last_error;
    figures.update(now);
    updateQuota(quota, now.quota);
    say(limits, limitWords(now));
    limits.hidden = !limits.textContent;
    controls?.update(now);
  };
  return { root, update };
}

function makeFigures() {
  const root = element("dl", undefined, "figures");
  const value = (label) => {
    const cell = element("div");
    const [head, shown] = [element("dt", label), element("dd")];
    cell.append(head, shown);
    root.append(cell);
    return [head, shown];
  };
  const [[, down], [, up], [, rtt], [dataHead, data]] = ["Down", "Up", "Round trip", "This month"].map(value);
  const update = (path) => {
    for (const [shown, mbps] of [[down, path.down_mbps], [up, path.up_mbps]]) {
      const [number, unit] = rate(mbps);
      shown.replaceChildren(element("b", number), ` ${unit}`);
    }
    say(rtt, path.health === "active" ? milliseconds(path.rtt_ms) : "–");
    const used = path.quota;
    say(dataHead, used ? "This month" : "Since start");
    say(data, bytes(used ? used.used_bytes : path.carried_bytes));
  };
  return { root, update };
}

function updateQuota(progress, quota) {
  progress.hidden = !quota?.limit_bytes;
  if (progress.hidden) return;
  progress.max = quota.limit_bytes;
  progress.value = Math.min(quota.limit_bytes, quota.used_bytes);
  progress.classList.toggle("full", quota.used_bytes >= 0.9 * quota.limit_bytes);
}

/** How the path is to be used, where that is not as usual. */
function limitWords({ weight, rate_cap_mbps: cap, never, metered, quota }) {
  const words = [];
  if (cap) words.push(`at most ${cap} Mbit/s each way`);
  if (quota?.limit_bytes) words.push(`quota ${bytes(quota.limit_bytes)} a month`);
  if (weight) words.push(`weight ${weight}`);
  if (metered) words.push("metered");
  if (never?.length) words.push(`never ${never.join(", ")}`);
  const text = words.join(" · ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Buttons, and two fields that open below them. */
function makeControls(name, change) {
  const root = element("div", undefined, "controls");
  const buttons = element("div", undefined, "buttons");
  const refusal = element("p", undefined, "refusal");
  refusal.setAttribute("role", "alert");
  refusal.hidden = true;
  let now = null;
  const send = async (set) => {
    const why = await change(name, set);
    say(refusal, why);
    refusal.hidden = !why;
  };
  const button = (act) => {
    const made = element("button");
    made.type = "button";
    made.addEventListener("click", () => act());
    buttons.append(made);
    return made;
  };
  const pause = button(() => send({ paused: now.why !== "paused" }));
  const priority = button(() => send({ priority: now.priority === "primary" ? 1 : 0 }));
  const limit = makeField(name, "Limit", ["Mbit/s", 1e3, 4e6], "rate_cap_kbps", send);
  const quota = makeField(name, "Quota", ["GB a month", 1e9, 1e6], "quota_bytes", send);
  for (const field of [limit, quota]) buttons.append(field.button);
  root.append(buttons, limit.form, quota.form, refusal);
  const label = (made, text) => {
    say(made, text);
    made.setAttribute("aria-label", `${text}: ${name}`);
  };
  const update = (path) => {
    now = path;
    label(pause, path.why === "paused" ? "Resume" : "Pause");
    label(priority, path.priority === "primary" ? "Make backup" : "Make primary");
    limit.update(path.rate_cap_mbps);
    quota.update(path.quota?.limit_bytes ? path.quota.limit_bytes / 1e9 : null);
  };
  return { root, update };
}

/** A button that opens a form with a number in a unit of `scale`, at most `max`. 0 lifts the limit. */
function makeField(name, title, [unit, scale, max], setting, send) {
  const form = element("form", undefined, "field");
  form.id = `${title}-${name}`;
  form.hidden = true;
  const input = element("input");
  Object.assign(input, { type: "number", min: "0", max, step: "any", inputMode: "decimal", required: true });
  const label = element("label");
  label.append(element("span", `${title} of ${name} in ${unit}`, "unseen"), input);
  const set = element("button", "Set");
  const none = element("button", "No limit");
  none.type = "button";
  set.setAttribute("aria-label", `Set ${title.toLowerCase()}: ${name}`);
  none.setAttribute("aria-label", `No ${title.toLowerCase()}: ${name}`);
  form.append(label, element("span", unit, "unit"), set, none);
  const button = element("button", `${title}…`);
  button.type = "button";
  button.setAttribute("aria-label", `${title}: ${name}`);
  button.setAttribute("aria-controls", form.id);
  const open = (is) => {
    form.hidden = !is;
    button.setAttribute("aria-expanded", String(is));
  };
  open(false);
  button.addEventListener("click", () => {
    open(form.hidden);
    if (!form.hidden) input.focus();
  });
  const finish = (value) => {
    // Only 0 lifts the limit, not what rounds to it.
    send({ [setting]: value > 0 ? Math.max(1, Math.round(scale * value)) : 0 });
    open(false);
    button.focus();
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    finish(Number(input.value));
  });
  none.addEventListener("click", () => finish(0));
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    open(false);
    button.focus();
  });
  const update = (value) => {
    if (form.hidden) input.value = value ?? "";
    none.hidden = !value;
  };
  return { button, form, update };
}
