// Reconciles: a timeline per controller with the depth of its queue, and a list with cause, calls and outcome.

import { model } from "./model.js";
import { NewestFirst } from "./newest.js";
import { $, age, badge, clock, duration, el, exactly, fullName, matches, named, say, state, svg } from "./view.js";

const LANE = 26;

const levels = { done: "good", requeue: "good", backoff: "waiting", interrupted: "waiting", unknown: "unknown" };
const levelOf = (reconcile) => (reconcile.outcome ? (levels[reconcile.outcome] ?? "bad") : "running");

function outcomeOf(reconcile) {
  const { outcome, after } = reconcile;
  if (!outcome) return "running";
  return after ? `${outcome} ${after < 1 ? duration(after * 1000) : age(0, after * 1000)}` : outcome;
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

/** The short form: the kind is a badge, and "changed" is omitted. */
function causeLine(cause, reconcile) {
  const text = causeText(cause, reconcile);
  if (!cause.kind) return [el("span", { className: "ellipsis" }, text)];
  const short = text.slice(cause.kind.length).replace(/ changed: /, ": ").replace(/^: /, "");
  return [badge(cause.kind, isCustom(cause)), el("span", { className: "sr" }, cause.kind), el("span", { className: "ellipsis", title: text }, short.trim())];
}

const searchText = (reconcile) =>
  `${reconcile.controller} ${reconcile.kind} ${fullName(reconcile)} ${outcomeOf(reconcile)} ${reconcile.error ?? ""} ` +
  reconcile.causes.map((cause) => causeText(cause, reconcile)).join(" ");

/** A list of expandable reconciles. */
export class ReconcileList extends NewestFirst {
  fill = fill;
  #open = new Set();

  constructor(list) {
    super(list);
    list.addEventListener("click", (event) => {
      const item = event.target.closest("li");
      if (event.target.closest(".line") && item?.dataset.id) this.toggle(item.dataset.id);
    });
  }

  entries() {
    return model.reconcile.values();
  }

  compare(a, b) {
    return b.number - a.number;
  }

  /** Whether it is expanded. */
  state(reconcile) {
    return this.#open.has(reconcile.id);
  }

  toggle(id, open = !this.#open.has(id)) {
    if (open) this.#open.add(id);
    else this.#open.delete(id);
    this.show(this.wanted);
    return this.item(id);
  }
}

/** Updates the line in place, which keeps the focus. */
function fill(item, reconcile, open) {
  let line = item.querySelector(".line");
  if (!line) {
    line = el("button", { className: "line reconcile-grid", type: "button", tabIndex: -1 });
    item.append(line);
  }
  item.dataset.level = levelOf(reconcile);
  line.setAttribute("aria-expanded", String(open));
  const [cause, ...others] = reconcile.causes;
  const extra = others.length + reconcile.more_causes;
  const calls = reconcile.calls.length + reconcile.more;
  const failed = reconcile.calls.some((call) => call.error || call.status >= 400);
  line.replaceChildren(
    el("span", { className: "clock" }, clock(reconcile.since)),
    el("span", { className: "what", title: `${reconcile.kind} ${fullName(reconcile)}` }, reconcile.kind ? badge(reconcile.kind, isCustom(reconcile)) : null, named(reconcile.name)),
    el("span", { className: "cause" }, ...(cause ? causeLine(cause, reconcile) : ["unknown cause"]), extra ? el("span", { className: "extra" }, `+${extra}`) : null),
    el("span", { className: "calls", title: failed ? "a call failed" : "" }, `${calls} ${calls === 1 ? "call" : "calls"}${failed ? " !" : ""}`),
    el("span", { className: "took" }, duration(reconcile.ms)),
    state(levelOf(reconcile), outcomeOf(reconcile)));
  item.querySelector(".error")?.remove();
  item.querySelector(".inside")?.remove();
  if (reconcile.error) item.append(el("p", { className: "error" }, reconcile.error));
  if (open) item.append(inside(reconcile));
}

const customKinds = new Map();

/** If the object is deleted, another object of its kind is used. */
function isCustom({ kind }) {
  if (!customKinds.has(kind)) {
    for (const object of model.object.values()) {
      if (object.kind === kind) customKinds.set(kind, object.custom);
    }
  }
  return customKinds.get(kind) ?? true;
}

function inside(reconcile) {
  const facts = [
    ["Controller", reconcile.controller],
    ["Object", `${reconcile.kind} ${fullName(reconcile)}`.trim()],
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
  return el("div", { className: "inside" }, list, callsOf(reconcile));
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

const lanes = new Map();

/** Draws the timelines, once per second. */
export function drawLanes(seconds, onPick) {
  const holder = $("lanes");
  const byController = new Map();
  for (const operator of model.operator.values()) for (const name of operator.controllers) byController.set(name, []);
  for (const name of model.queue.keys()) byController.set(name, []);
  for (const reconcile of model.reconcile.values()) {
    if (!byController.has(reconcile.controller)) byController.set(reconcile.controller, []);
    byController.get(reconcile.controller).push(reconcile);
  }
  for (const [name, lane] of lanes) {
    if (byController.has(name)) continue;
    lane.element.remove();
    lanes.delete(name);
  }
  const now = Date.now();
  for (const name of [...byController.keys()].sort()) {
    if (!lanes.has(name)) lanes.set(name, makeLane(name, holder, onPick));
    drawLane(lanes.get(name), byController.get(name), now, seconds);
  }
}

function makeLane(name, holder, onPick) {
  const chart = svg("svg", { class: "timeline", role: "img", height: LANE });
  const depth = el("b", {});
  const active = el("span", { className: "active" });
  const spark = svg("svg", { class: "spark", role: "img", width: 72, height: 20 });
  const element = el("div", { className: "lane" },
    el("span", { className: "controller ellipsis", title: name }, name),
    chart,
    el("span", { className: "queue" }, spark, el("span", { className: "numbers" }, depth, " queued", active)));
  chart.addEventListener("click", (event) => {
    const id = event.target.dataset?.id;
    if (id) onPick(id);
  });
  holder.append(element);
  const lane = { name, element, chart, depth, active, spark, bars: new Map(), width: 0 };
  new ResizeObserver(([entry]) => { lane.width = entry.contentRect.width; }).observe(chart);
  return lane;
}

function drawLane(lane, reconciles, now, seconds) {
  const width = lane.width || lane.chart.clientWidth;
  const from = now - seconds * 1000;
  const inSight = reconciles.filter((reconcile) => reconcile.since + (reconcile.ms ?? 0) >= from).slice(-400);
  const keep = new Set();
  for (const reconcile of inSight) {
    keep.add(reconcile.id);
    let bar = lane.bars.get(reconcile.id);
    if (!bar) {
      bar = svg("rect", { rx: 1.5 }, svg("title"));
      bar.dataset.id = reconcile.id;
      lane.bars.set(reconcile.id, bar);
      lane.chart.append(bar);
    }
    const level = levelOf(reconcile);
    const ends = reconcile.outcome ? reconcile.since + (reconcile.ms ?? 0) : now;
    const x = ((reconcile.since - from) / (seconds * 1000)) * width;
    const wide = Math.max(3, ((ends - reconcile.since) / (seconds * 1000)) * width);
    // Failures are taller, so that they are visible without color.
    const tall = level === "bad" ? LANE - 4 : level === "good" || level === "unknown" ? 12 : 16;
    bar.setAttribute("class", level);
    bar.setAttribute("x", Math.min(x, width - wide).toFixed(1));
    bar.setAttribute("width", wide.toFixed(1));
    bar.setAttribute("y", (LANE - tall) / 2);
    bar.setAttribute("height", tall);
    say(bar.firstChild, `${fullName(reconcile)}: ${outcomeOf(reconcile)} ${duration(reconcile.ms)}`);
  }
  for (const [id, bar] of lane.bars) {
    if (keep.has(id)) continue;
    bar.remove();
    lane.bars.delete(id);
  }
  const bad = inSight.filter((reconcile) => levelOf(reconcile) === "bad").length;
  lane.chart.setAttribute("aria-label", `${lane.name}: ${inSight.length} reconciles, ${bad} failed`);
  drawQueue(lane, model.queue.get(lane.name), now);
}

function drawQueue(lane, queue, now) {
  const depth = queue?.depth ?? 0;
  say(lane.depth, String(depth));
  say(lane.active, ` · ${queue?.active ?? 0} active`);
  const points = (queue?.history ?? []).map(([at, value]) => [Date.parse(at), value]);
  const from = now - 60_000;
  const top = Math.max(1, ...points.map(([, value]) => value));
  const y = (value) => (18 - (value / top) * 16).toFixed(1);
  const x = (at) => (Math.max(0, (at - from) / 60_000) * 72).toFixed(1);
  let before = 0;
  let path = "";
  for (const [at, value] of points) {
    path += path ? `H${x(at)}V${y(value)}` : `M0 ${y(before)}H${x(at)}V${y(value)}`;
    before = value;
  }
  // If the operator has stopped, its queue is empty.
  path += path ? `V${y(depth)}H72` : `M0 ${y(0)}H72`;
  if (!lane.spark.firstChild) lane.spark.append(svg("path", { class: "area" }), svg("path", { class: "edge" }));
  lane.spark.firstChild.setAttribute("d", `${path}V19H0Z`);
  lane.spark.lastChild.setAttribute("d", path);
  lane.spark.setAttribute("aria-label", `${lane.name}: ${depth} in the queue, at most ${top} in the last minute`);
}

/** The reconciles that match the filter. */
export const reconcileFilter = (words, namespace) => (reconcile) =>
  (!namespace || reconcile.namespace === namespace) && matches(words, () => searchText(reconcile));

/** Reconciles of an object or caused by it. */
export const reconcilesOf = (object) => (reconcile) =>
  [reconcile, ...reconcile.causes].some(
    (thing) => thing.kind === object.kind && thing.name === object.name && thing.namespace === object.namespace);
