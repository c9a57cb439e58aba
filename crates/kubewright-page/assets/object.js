// The object pane: overview, YAML with the last change, reconciles, events, admission reviews, logs and graph.

import { isManager, request } from "./connection.js";
import { EventList, eventsOf } from "./events.js";
import * as failures from "./failures.js";
import { drawGraph } from "./graph.js";
import { LogList, logsOf } from "./logs.js";
import { model } from "./model.js";
import { drawChange, drawCommands, drawConditions, drawWrites } from "./overview.js";
import { ReconcileList, reconcilesOf } from "./reconciles.js";
import { ReviewList, reviewsOf } from "./reviews.js";
import { $, age, ageOf, badge, el, say, setState } from "./view.js";

/** Lines rendered initially: CRDs have tens of thousands. */
const LINES = 2000;

const pane = $("object");
/** A manager shows no content of objects. */
const parts = ["overview", "yaml", "reconciles", "events", "reviews", "logs", "graph"].filter((name) => name !== "yaml" || !isManager);
/** Entries of each list in the overview. */
const NEWEST = 5;

let id = null;
let part = "overview";
let detail = null;
let allLines = false;
let asking = false;
let again = false;
let lists = {};
let onOpen;

const filters = { events: eventsOf, reconciles: reconcilesOf, reviews: reviewsOf, logs: logsOf };

export function setUp(open, close) {
  onOpen = open;
  if (isManager) for (const name of ["part-yaml", "overview-change-title", "overview-change"]) $(name).hidden = true;
  const list = (name) => $(name).querySelector("ul");
  const toReconcile = (reconcile) => {
    choose("reconciles");
    showReconcile(reconcile);
  };
  const actions = { onObject: open, onReconcile: toReconcile };
  const brief = { limit: NEWEST };
  lists = {
    events: [new EventList(list("object-events"), open), new EventList($("overview-events"), open, brief)],
    reconciles: [new ReconcileList(list("object-reconciles"), actions), new ReconcileList($("overview-reconciles"), actions, brief)],
    reviews: [new ReviewList(list("object-reviews")), new ReviewList($("overview-reviews"), brief)],
    logs: [new LogList(list("object-logs"), toReconcile)],
  };
  $("object-close").addEventListener("click", close);
  $("object-change").addEventListener("click", () => {
    nextChange(true);
  });
  const tabs = parts.map((name) => $(`part-${name}`));
  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => choose(parts[at]));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const to = (at + step + tabs.length) % tabs.length;
      choose(parts[to]);
      tabs[to].focus();
    });
  });
}

/** Shows an object, or none. */
export function show(next) {
  if (next !== id) {
    detail = null;
    allLines = false;
    $("object-yaml").replaceChildren();
    for (const name of ["change", "conditions", "writes"]) $(`overview-${name}`).replaceChildren();
    $("object-yaml").scrollTop = 0;
    $("object-overview").scrollTop = 0;
  }
  id = next;
  pane.hidden = id === null;
  if (id === null) return;
  update(true);
}

export const shown = () => id;

/** After a change of the model. */
export function update(itself) {
  if (id === null) return;
  const object = model.object.get(id);
  pane.classList.toggle("gone", !object);
  if (!object) {
    setState($("object-state"), "unknown", "Deleted");
    return;
  }
  const title = $("object-title");
  if (title.dataset.id !== id) {
    title.dataset.id = id;
    title.replaceChildren(badge(object.kind, object.custom), el("span", { className: "ellipsis", title: object.name }, object.name));
  }
  setState($("object-state"), object.readiness.level, object.readiness.word || "no status");
  drawPath(object);
  for (const [name, filter] of Object.entries(filters)) {
    const [full, brief] = lists[name];
    const number = full.show(filter(object));
    count(`part-${name}`, number);
    $(`object-${name}`).querySelector(".empty").hidden = number > 0;
    if (!brief) continue;
    brief.show(filter(object));
    $(`overview-${name}-title`).hidden = number === 0;
  }
  drawCommands(object);
  if (part === "graph") drawGraph(id, $("object-graph"), onOpen);
  showFailure(object);
  if (itself) ask();
}

/** A failed reconcile of the object, with the time of the next attempt. */
function showFailure(object) {
  const failure = failures.of(object);
  const note = $("object-failure");
  note.hidden = !failure;
  if (!failure) return;
  setState($("object-state"), "bad", `Failing, ${failures.retryText(failure)}`);
  say(note, failure.reconcile.error ?? failure.reconcile.outcome);
}

/** Expands a reconcile in the list. */
function showReconcile(reconcile) {
  const item = lists.reconciles[0].toggle(reconcile, true);
  item?.scrollIntoView({ block: "nearest" });
  item?.querySelector(".line").focus();
}

function count(tab, number) {
  say($(tab).querySelector("b"), number ? String(number) : "");
}

/** The owner chain, then kind, API version and namespace. */
function drawPath(object) {
  const chain = [];
  for (let at = object; at && chain.length < 10; ) {
    const owner = at.owners.map((owner) => model.object.get(owner)).find(Boolean);
    if (!owner || chain.includes(owner)) break;
    chain.unshift(owner);
    at = owner;
  }
  const path = $("object-path");
  const key = [...chain.map((owner) => owner.id), id].join();
  if (path.dataset.key === key) return;
  path.dataset.key = key;
  const links = chain.flatMap((owner) => {
    const link = el("button", { className: "link", type: "button" }, `${owner.kind} ${owner.name}`);
    link.addEventListener("click", () => onOpen(owner.id));
    return [link, el("span", { className: "sep", "aria-hidden": "true" }, "›")];
  });
  const api = object.group ? `${object.group}/${object.version}` : object.version;
  path.replaceChildren(...links, el("span", {}, object.kind), el("span", { className: "sep" }, "·"), el("span", {}, api),
    el("span", { className: "sep" }, "·"), el("span", {}, object.namespace ? `namespace ${object.namespace}` : "no namespace"),
    el("span", { className: "sep" }, "·"), ageOf(object.since));
}

function choose(next) {
  part = next;
  for (const name of parts) {
    const is = name === part;
    $(`part-${name}`).setAttribute("aria-selected", String(is));
    $(`part-${name}`).tabIndex = is ? 0 : -1;
    $(`object-${name}`).classList.toggle("chosen", is);
  }
  if (part === "graph" && id !== null) drawGraph(id, $("object-graph"), onOpen);
}

/** Sends one request at a time, and another one if the object changed meanwhile. */
async function ask() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  const wanted = id;
  try {
    const answer = await request(`object?id=${encodeURIComponent(wanted)}`);
    if (answer.ok && wanted === id) {
      detail = await answer.json();
      draw();
    }
  } catch {
    // The stream reports the lost connection and delivers the next change.
  } finally {
    asking = false;
  }
  if (again || wanted !== id) {
    again = false;
    if (id !== null) ask();
  }
}

function draw() {
  const yaml = $("object-yaml");
  const scroll = yaml.scrollTop;
  const text = el("div", { className: "yaml" });
  let number = 0;
  const changes = { 1: 0, "-1": 0 };
  const lines = allLines ? detail.lines : detail.lines.slice(0, LINES);
  for (const [mark, line] of lines) {
    if (mark >= 0) number += 1;
    if (mark !== 0) changes[mark] += 1;
    text.append(lineOf(mark, line, mark >= 0 ? number : ""));
  }
  yaml.replaceChildren(text);
  if (detail.lines.length > lines.length) {
    const more = el("button", { className: "older", type: "button" }, `Show all ${detail.lines.length} lines`);
    more.addEventListener("click", () => {
      allLines = true;
      draw();
    });
    yaml.append(more);
  }
  if (detail.managers) {
    const code = el("div", { className: "yaml" });
    for (const line of detail.managed.trimEnd().split("\n")) code.append(lineOf(0, line, ""));
    const plural = detail.managers === 1 ? "manager" : "managers";
    yaml.append(el("details", {}, el("summary", {}, `managedFields of ${detail.managers} ${plural}`), code));
  }
  yaml.scrollTop = scroll;
  const change = $("object-change");
  change.hidden = changes[1] + changes[-1] === 0;
  change.dataset.changes = [changes[1] ? `+${changes[1]}` : "", changes[-1] ? `−${changes[-1]}` : ""].join(" ").trim();
  tick();
  drawChange(detail, lineOf);
  drawConditions(detail);
  drawWrites(detail);
}

/** Updates the age in the change button, and the time until the next attempt. */
export function tick() {
  const object = model.object.get(id);
  if (object) showFailure(object);
  if (!detail) return;
  const change = $("object-change");
  say(change, `Changed ${age(detail.changed)} ago: ${change.dataset.changes}`);
}

const signs = { 1: "+", "-1": "−", 0: "" };
const words = { 1: "added: ", "-1": "removed: " };

function lineOf(mark, line, number) {
  const element = el("div", { className: "code" },
    el("span", { className: "no", "aria-hidden": "true" }, String(number)),
    el("span", { className: "sign", "aria-hidden": "true" }, signs[mark]));
  if (mark !== 0) {
    element.dataset.mark = mark;
    element.append(el("span", { className: "sr" }, words[mark]));
  }
  const [, indent, rest] = /^(\s*)(.*)$/.exec(line);
  const split = /^((?:- )*)((?:"[^"]*"|[^\s"':#-][^:]*):)(\s.*|)$/.exec(rest);
  const content = el("span", { className: "content" }, el("span", { className: "indent" }, indent));
  if (split) content.append(split[1], el("span", { className: "k" }, split[2]), valueOf(split[3]));
  else content.append(rest);
  element.append(content);
  return element;
}

function valueOf(text) {
  const value = text.trim();
  if (/^(true|false|null|-?\d+(\.\d+)?)$/.test(value)) return el("span", { className: "n" }, text);
  return el("span", { className: "s" }, text);
}

/** Shows the graph of the object. */
export function showGraph() {
  if (id === null) return;
  choose("graph");
  $("part-graph").focus();
}

/** Scrolls to the next changed line. */
export function nextChange(first = false) {
  if (isManager) return;
  choose(part === "overview" && $("object-yaml").checkVisibility() ? part : "yaml");
  const yaml = $("object-yaml");
  const marked = [...yaml.querySelectorAll("[data-mark]")];
  if (!marked.length) return;
  const top = yaml.getBoundingClientRect().top + yaml.clientHeight / 2;
  const next = first ? marked[0] : (marked.find((line) => line.getBoundingClientRect().top > top + 14) ?? marked[0]);
  next.scrollIntoView({ block: "center" });
}
