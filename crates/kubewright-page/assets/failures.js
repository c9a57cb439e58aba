// Objects whose last reconcile failed, with the time of the next attempt.

import { model } from "./model.js";
import { fullName } from "./view.js";

const failed = new Set(["error", "panic", "timeout", "terminal"]);

const keyOf = (thing) => `${thing.kind} ${thing.namespace}/${thing.name}`;

let failures = new Map();

/** The open connections of operators. */
const open = () => new Set([...model.operator.values()].filter((one) => one.connected).map((one) => one.connection));

/**
 * Recomputes the failures. Returns the keys of objects that started or stopped to fail.
 *
 * A failure of a closed connection counts only while its object exists: the next operator does not reconcile an object
 * that was deleted before it started.
 */
export function update() {
  const newest = new Map();
  for (const reconcile of model.reconcile.values()) {
    const key = `${reconcile.controller} ${keyOf(reconcile)}`;
    const other = newest.get(key);
    // A running reconcile is the retry; until it ends, the failure counts.
    if (reconcile.outcome && (!other || other.number < reconcile.number)) newest.set(key, reconcile);
  }
  const before = failures;
  failures = new Map();
  const connections = open();
  let existing = null;
  const exists = (key) => (existing ??= new Set([...model.object.values()].map(keyOf))).has(key);
  for (const reconcile of newest.values()) {
    if (!failed.has(reconcile.outcome)) continue;
    if (!connections.has(reconcile.connection) && !exists(keyOf(reconcile))) continue;
    const retry = reconcile.after ? reconcile.since + (reconcile.ms ?? 0) + reconcile.after * 1000 : null;
    failures.set(keyOf(reconcile), { reconcile, retry });
  }
  const changed = (a, b) => [...a].filter(([key, { reconcile }]) => b.get(key)?.reconcile !== reconcile).map(([key]) => key);
  return new Set([...changed(before, failures), ...changed(failures, before)]);
}

/** All failures, newest first. */
export const all = () => [...failures.values()].sort((a, b) => b.reconcile.number - a.reconcile.number);

/** The failure of an object, if its last reconcile failed. */
export const of = (object) => failures.get(keyOf(object));

/** "retry in 8s", "retrying" or "not retried". */
export function retryText({ retry }, now = Date.now()) {
  if (retry === null) return "not retried";
  const seconds = Math.ceil((retry - now) / 1000);
  return seconds > 0 ? `retry in ${seconds}s` : "retrying";
}

export const describe = (failure) =>
  `${failure.reconcile.kind} ${fullName(failure.reconcile)}: ${failure.reconcile.error ?? failure.reconcile.outcome}, ${retryText(failure)}`;
