// DOM helpers: elements, times, names. Text is never parsed as HTML.

/** Creates an element with properties, attributes (with a dash, and `role`) and children. */
export function el(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const $ = (id) => document.getElementById(id);

/** Sets a text only if it differs, which keeps selections and avoids layout. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Age in kubectl's format. */
export function age(since, now = Date.now()) {
  const seconds = Math.max(0, Math.floor((now - since) / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h` : `${Math.floor(hours / 24)}d`;
}

/** An age that updates itself, with the exact time as title. */
export function ageOf(since) {
  const time = el("time", { className: "age", title: new Date(since).toLocaleString() }, age(since));
  time.dataset.since = since;
  return time;
}

export function tick() {
  const now = Date.now();
  for (const time of document.querySelectorAll("[data-since]")) say(time, age(Number(time.dataset.since), now));
}

const two = (number) => String(number).padStart(2, "0");

/** The time of day. */
export function clock(since) {
  const at = new Date(since);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export const exactly = (since) => `${clock(since)}.${String(new Date(since).getMilliseconds()).padStart(3, "0")}`;

export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.round(ms / 60_000)} min`;
}

const short = {
  Deployment: "De", Pod: "Po", Service: "Sv", Secret: "Se", Namespace: "Ns", Node: "No", Job: "Jo", Ingress: "In",
  Role: "Ro", Lease: "Le", Endpoints: "Ep", CustomResourceDefinition: "CRD",
};
const tones = {
  workload: ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController"],
  pod: ["Pod"],
  network: ["Service", "Ingress", "EndpointSlice", "Endpoints", "NetworkPolicy"],
  config: ["ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim"],
};

function tone(kind, custom) {
  if (custom) return "custom";
  return Object.keys(tones).find((name) => tones[name].includes(kind)) ?? "other";
}

/** A badge with the whole kind, for lists. */
export function kindBadge(kind, custom) {
  const element = el("span", { className: "badge wide", title: kind }, kind);
  element.dataset.tone = tone(kind, custom);
  return element;
}

/** A badge with the kind's abbreviation. */
export function badge(kind, custom) {
  const capitals = kind.replace(/[^A-Z]/g, "");
  const letters = short[kind] ?? (capitals.length > 1 ? capitals.slice(0, 3) : kind.slice(0, 2));
  const element = el("span", { className: "badge", "aria-hidden": "true", title: kind }, letters);
  element.dataset.tone = tone(kind, custom);
  return element;
}

/** A dot and a word: the level is never shown by color alone. The tooltip has the word, which may be cut, and details. */
export function state(level, word, details) {
  const element = el("span", { className: "state" }, el("i", { className: "dot" }), el("span", { className: "say" }));
  setState(element, level, word, details);
  return element;
}

export function setState(element, level, word, details = "") {
  if (element.dataset.level !== level) element.dataset.level = level;
  say(element.querySelector(".say"), word);
  const title = [word, details].filter(Boolean).join("\n");
  if (element.title !== title) element.title = title;
}

/** A name that wraps in narrow columns. */
export const fullNamed = (thing) => el("span", { className: "full named", title: `${thing.kind} ${fullName(thing)}`.trim() }, thing.name);

/** A button that copies a text. */
export function copyButton(text, label) {
  const button = el("button", { className: "copy", type: "button", title: text, "aria-label": `Copy ${text}` }, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Without permission, the text can be selected in the overview.
      button.textContent = "Not allowed";
    }
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}

export const fullName = (thing) => (thing.namespace ? `${thing.namespace}/${thing.name}` : thing.name);

const marks = { True: "✓", False: "–" };

export const conditionMark = (status) => marks[status] ?? "?";

/** Whether the text contains every word of the filter. The text is computed only if there is a word. */
export function matches(words, text) {
  if (!words.length) return true;
  const lower = text().toLowerCase();
  return words.every((word) => lower.includes(word));
}

/** Roving tabindex: one tab stop per list, arrow keys inside it. */
export function roving(list, selector) {
  const stops = () => [...list.querySelectorAll(selector)];
  list.addEventListener("focusin", (event) => {
    const stop = event.target.closest(selector);
    if (!stop) return;
    for (const other of list.querySelectorAll(`${selector}[tabindex="0"]`)) other.tabIndex = -1;
    stop.tabIndex = 0;
  });
  list.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
    const stop = event.target.closest(selector);
    if (!stop || !(event.key in steps)) return;
    event.preventDefault();
    const all = stops();
    const to = Math.min(all.length - 1, Math.max(0, all.indexOf(stop) + steps[event.key]));
    all[to]?.focus();
  });
}

/** Keeps one element of the list focusable. */
export function keepStop(list, selector) {
  if (!list.querySelector(`${selector}[tabindex="0"]`)) {
    const first = list.querySelector(selector);
    if (first) first.tabIndex = 0;
  }
}
