// The client-side model: entries by topic and ID. Views subscribe and are called once per frame with the changes.
// A lost connection resumes at its position; the server sends a reset if that is not possible.

import { listen } from "./connection.js";

const topics = ["status", "operator", "object", "event", "reconcile", "queue", "review", "log", "build"];
const empty = () => Object.fromEntries(topics.map((topic) => [topic, new Map()]));
const nothing = () => Object.fromEntries(topics.map((topic) => [topic, new Set()]));

export const model = {
  ...empty(),
  /** Whether the stream is open. */
  connected: false,
  /** Whether the initial state is complete. */
  ready: false,
  get cluster() {
    return this.status.get("") ?? { discovered: false, listing: 0, forbidden: [], unreadable: {}, lost: null, rejected: [], kubectl: "kubectl" };
  },
};

const identify = {
  status: () => "",
  operator: (entry) => entry.name,
  object: (entry) => entry.id,
  event: (entry) => entry.id,
  reconcile: (entry) => entry.id,
  queue: (entry) => entry.controller,
  review: (entry) => entry.id,
  log: (entry) => entry.id,
  build: () => "",
};

/** Adds the time as a number, which is read often. */
const complete = {
  object: (entry) => { entry.since = Date.parse(entry.created) || entry.changed; },
  event: (entry) => { entry.since = Date.parse(entry.at) || 0; },
  reconcile: (entry) => { entry.since = Date.parse(entry.at) || 0; },
  review: (entry) => { entry.since = Date.parse(entry.at) || 0; },
};

const customKinds = new Map();

/** Whether a kind is custom. If the object is deleted, another object of its kind is used. */
export function isCustom({ kind }) {
  if (!customKinds.has(kind)) {
    for (const object of model.object.values()) {
      if (object.kind === kind) customKinds.set(kind, object.custom);
    }
  }
  return customKinds.get(kind) ?? true;
}

const subscribers = [];
let changed = nothing();
let everything = false;
let scheduled = false;

/** Calls `show(changed, everything)`: sets of IDs by topic, and whether everything changed. */
export function subscribe(show) {
  subscribers.push(show);
}

function schedule() {
  if (scheduled) return;
  scheduled = true;
  // A hidden tab has no animation frames, but its title and lists must stay current.
  if (document.hidden) setTimeout(flush, 250);
  else requestAnimationFrame(flush);
}

function flush() {
  scheduled = false;
  const [now, all] = [changed, everything];
  changed = nothing();
  everything = false;
  for (const show of subscribers) show(now, all);
}

let beginning = null;
let last = "";

function receive(id, batch) {
  last = id;
  if (batch.reset) beginning = empty();
  const target = beginning ?? model;
  for (const [topic, entry] of batch.put) {
    // A newer server may know more topics.
    if (!(topic in identify)) continue;
    const id = identify[topic](entry);
    complete[topic]?.(entry);
    target[topic].set(id, entry);
    changed[topic].add(id);
  }
  for (const [topic, id] of batch.gone) {
    target[topic]?.delete(id);
    changed[topic]?.add(id);
  }
  if (batch.more) return;
  if (beginning) {
    Object.assign(model, beginning);
    beginning = null;
    everything = true;
    model.ready = true;
  }
  schedule();
}

/** Receives changes from now on. */
export function connect() {
  const tell = (connected) => {
    if (model.connected === connected) return;
    model.connected = connected;
    changed.status.add("");
    schedule();
  };
  listen(() => last, receive, tell);
}
