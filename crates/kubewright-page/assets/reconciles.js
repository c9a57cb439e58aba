// Reconciles: a list with cause, calls, logs and outcome.

import { logLines, logsOfReconcile } from "./logs.js";
import { isCustom, model } from "./model.js";
import { NewestFirst } from "./newest.js";
import { age, clock, duration, el, exactly, fullName, fullNamed, kindBadge, matches, state } from "./view.js";
import { explain } from "./why.js";

const levels = { done: "good", requeue: "good", backoff: "waiting", interrupted: "waiting", unknown: "unknown" };
export const levelOf = (reconcile) => (reconcile.outcome ? (levels[reconcile.outcome] ?? "bad") : "running");

export function outcomeOf(reconcile) {
  const { outcome, after } = reconcile;
  if (!outcome) return "running";
  if (!after) return outcome;
  const later = after < 1 ? duration(after * 1000) : age(0, after * 1000);
  return levelOf(reconcile) === "bad" ? `${outcome}, retry ${later}` : `${outcome} ${later}`;
}

const verbs = {
  created: "created", modified: "changed", deleted: "deleted", deselected: "no longer selected",
  initial: "initial list", resync: "resync",
  requeued: "requeued", retried: "retry after an error", channel: "external event", asked: "requested",
};

/** The cause as text. */
export function causeText(cause, reconcile) {
  const verb = verbs[cause.why] ?? cause.why;
  if (!cause.kind) return verb;
  const own = cause.kind === reconcile.kind && cause.name === reconcile.name;
  const subject = own ? cause.kind : `${cause.kind} ${cause.name}`;
  const fields = cause.changed.join(", ") + (cause.more ? ` and ${cause.more} more` : "");
  return `${subject} ${verb}${fields ? `: ${fields}` : ""}`;
}

/** `status.conditions[Ready].reason` as `status.conditions[Ready]`. */
const itemOf = (field) => field.replace(/^(.*?\]).*$/, "$1");

/** The short form: the kind is a badge, "changed" is omitted, and fields of a list item are one. */
function causeLine(cause, reconcile) {
  const text = causeText(cause, reconcile);
  if (!cause.kind) return [el("span", { className: "full" }, text)];
  const items = { ...cause, changed: [...new Set(cause.changed.map(itemOf))] };
  const short = causeText(items, reconcile).slice(cause.kind.length).replace(/ changed: /, ": ").replace(/^: /, "");
  return [kindBadge(cause.kind, isCustom(cause)), el("span", { className: "full", title: text }, short.trim())];
}

const searchText = (reconcile) =>
  `${reconcile.controller} ${reconcile.kind} ${fullName(reconcile)} ${outcomeOf(reconcile)} ${reconcile.error ?? ""} ` +
  reconcile.causes.map((cause) => causeText(cause, reconcile)).join(" ");

/** A list of expandable reconciles. */
export class ReconcileList extends NewestFirst {
  fill = (item, reconcile, open) => fill(item, reconcile, open, this.actions);
  #open = new Set();

  /** `actions` has `onObject` and `onReconcile`, called with the ID of a link. */
  constructor(list, actions, options) {
    super(list, options);
    this.actions = actions;
    list.addEventListener("click", (event) => {
      const item = event.target.closest("li");
      if (event.target.closest(".line") && item?.dataset.id) this.toggle(item.dataset.id)?.scrollIntoView({ block: "nearest" });
    });
  }

  entries() {
    return model.reconcile.values();
  }

  compare(a, b) {
    return b.number - a.number;
  }

  /** Whether it is expanded, and its log lines, which can arrive later. */
  state(reconcile) {
    return this.#open.has(reconcile.id) ? 1 + logsOfReconcile(reconcile).length : 0;
  }

  toggle(id, open = !this.#open.has(id)) {
    if (open) this.#open.add(id);
    else this.#open.delete(id);
    this.show(this.wanted);
    return this.item(id);
  }
}

/** Updates the line in place, which keeps the focus. */
function fill(item, reconcile, open, actions) {
  let line = item.querySelector(".line");
  if (!line) {
    line = el("button", { className: "line reconcile-grid", type: "button", tabIndex: -1 });
    item.append(line);
  }
  item.dataset.level = levelOf(reconcile);
  line.setAttribute("aria-expanded", String(Boolean(open)));
  const [cause, ...others] = reconcile.causes;
  const extra = others.length + reconcile.more_causes;
  const calls = reconcile.calls.length + reconcile.more;
  const failed = reconcile.calls.some((call) => call.error || call.status >= 400);
  line.replaceChildren(
    el("span", { className: "clock" }, clock(reconcile.since)),
    el("span", { className: "what" }, reconcile.kind ? kindBadge(reconcile.kind, isCustom(reconcile)) : null, fullNamed(reconcile)),
    el("span", { className: "cause" }, ...(cause ? causeLine(cause, reconcile) : ["unknown cause"]), extra ? el("span", { className: "extra" }, `+${extra}`) : null),
    el("span", { className: "calls", title: failed ? "a call failed" : "" }, `${calls} ${calls === 1 ? "call" : "calls"}${failed ? " !" : ""}`),
    el("span", { className: "took" }, duration(reconcile.ms)),
    state(levelOf(reconcile), outcomeOf(reconcile)));
  item.querySelector(".error")?.remove();
  item.querySelector(".inside")?.remove();
  if (reconcile.error) item.append(el("p", { className: "error" }, reconcile.error));
  if (open) item.append(inside(reconcile, actions));
}

function inside(reconcile, actions) {
  const facts = [
    ["Controller", reconcile.controller],
    ["Object", `${reconcile.kind} ${fullName(reconcile)}`.trim()],
    ["Reconcile ID", reconcile.id.slice(reconcile.id.indexOf(":") + 1)],
    ["Started", exactly(reconcile.since)],
    ["Waited", duration(reconcile.waited)],
    reconcile.attempt ? ["Attempt", String(reconcile.attempt + 1)] : null,
  ].filter(Boolean);
  const list = el("dl", { className: "facts" });
  for (const [name, value] of facts) list.append(el("dt", {}, name), el("dd", {}, value));
  list.append(el("dt", {}, reconcile.causes.length > 1 ? "Causes" : "Cause"));
  const causes = el("dd", {});
  for (const cause of reconcile.causes) causes.append(el("div", {}, causeText(cause, reconcile)));
  if (reconcile.more_causes) causes.append(el("div", {}, `and ${reconcile.more_causes} more`));
  list.append(causes);
  const why = el("div", { className: "why-chain" });
  explain(reconcile, why, actions);
  const lines = logsOfReconcile(reconcile);
  return el("div", { className: "inside" },
    el("h3", {}, "Why it ran"), why,
    el("h3", {}, "Details"), list,
    el("h3", {}, "API calls"), callsOf(reconcile),
    ...(lines.length ? [el("h3", {}, "Log"), logLines(lines)] : []));
}

function callsOf(reconcile) {
  if (!reconcile.calls.length) return el("p", { className: "none" }, "No API calls; all reads came from the cache.");
  const total = Math.max(reconcile.ms ?? 0, ...reconcile.calls.map((call) => Date.parse(call.at) - reconcile.since), 1);
  const table = el("table", { className: "requests" },
    el("caption", { className: "sr" }, "API calls"),
    el("thead", {}, el("tr", {}, ...["Method", "Path", "Status", "Took", "When"].map((name) => el("th", { scope: "col" }, name)))));
  const body = el("tbody", {});
  for (const call of reconcile.calls) {
    const failed = Boolean(call.error) || call.status >= 400;
    const bar = el("i", { className: "bar" });
    // The record's time is that of the response.
    const ends = Date.parse(call.at) - reconcile.since;
    bar.style.left = `${Math.min(98, Math.max(0, ((ends - call.ms) / total) * 100))}%`;
    bar.style.width = `${Math.max(2, Math.min(100, (call.ms / total) * 100))}%`;
    const row = el("tr", {},
      el("td", { className: "method" }, call.method),
      el("td", { className: "url" }, pathOf(call.path)),
      el("td", { className: "status" }, String(call.status ?? "no response")),
      el("td", { className: "took" }, duration(call.ms)),
      el("td", { className: "when" }, el("span", { className: "track", "aria-hidden": "true" }, bar)));
    row.classList.toggle("failed", failed);
    body.append(row);
    if (call.error) body.append(el("tr", { className: "failed" }, el("td", { colSpan: 5, className: "why" }, call.error)));
  }
  table.append(body);
  return el("div", {}, table, reconcile.more ? el("p", { className: "none" }, `and ${reconcile.more} more`) : null);
}

/** A path with line break opportunities. */
function pathOf(path) {
  const parts = path.split(/(?<=[/?&])/);
  return el("code", {}, ...parts.flatMap((part) => [part, document.createElement("wbr")]));
}

/** The reconciles that match the filter. */
export const reconcileFilter = (words, namespace) => (reconcile) =>
  (!namespace || reconcile.namespace === namespace) && matches(words, () => searchText(reconcile));

/** Reconciles of an object or caused by it. */
export const reconcilesOf = (object) => (reconcile) =>
  [reconcile, ...reconcile.causes].some(
    (thing) => thing.kind === object.kind && thing.name === object.name && thing.namespace === object.namespace);
