// The tree of objects by owner. Only visible rows are rendered, so that it scales to thousands of objects.

import * as failures from "./failures.js";
import { model } from "./model.js";
import { shorten, widthOf } from "./names.js";
import { $, ageOf, badge, conditionMark, el, fullName, matches, setState, state } from "./view.js";

/** Row height, as in page.css. */
const ROW = 28;
/** Width of indentation per level, and of toggle and badge. */
const INDENT = 18;
const CHROME = 14 + 26 + 3 * 7;
/** Rows rendered beyond the visible area. */
const SPARE = 12;

const tree = $("tree");
const rowsElement = $("rows");

const ranks = [
  (object) => object.custom,
  (object) => object.group === "apps" || object.group === "batch",
  (object) => object.kind === "Pod",
  (object) => object.kind === "Service" || object.group === "networking.k8s.io",
  (object) => object.kind === "ConfigMap" || object.kind === "Secret",
  (object) => object.group !== "rbac.authorization.k8s.io" && object.kind !== "CustomResourceDefinition" && object.namespace,
  (object) => object.kind === "Namespace" || object.kind === "Node",
  (object) => object.kind !== "CustomResourceDefinition" && object.group !== "rbac.authorization.k8s.io",
  (object) => object.kind === "CustomResourceDefinition",
];

function rank(object) {
  const found = ranks.findIndex((is) => is(object));
  return found < 0 ? ranks.length : found;
}

/** Conditions of built-in kinds to hide while they have their normal value. */
const quiet = {
  True: ["PodReadyToStartContainers", "Initialized", "ContainersReady", "PodScheduled", "NamesAccepted"],
  False: ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"],
};
const isNotable = (object) => ([type, status]) => object.custom || !quiet[status]?.includes(type);

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const byPlace = (a, b) =>
  a.rank - b.rank || compare(a.kind, b.kind) || compare(a.namespace, b.namespace) || compare(a.name, b.name) || compare(a.id, b.id);

const collapsed = new Set();
const shownRows = new Map();
let rows = [];
let index = new Map();
/** The objects in the tree by ID, and those of each owner in their order; the roots have the owner "". */
let known = new Map();
let children = new Map();
/** Owners that are not in the tree. */
let absent = new Set();
let active = null;
let opened = null;
let look = { words: [], namespace: "", system: false };
let onOpen = () => {};
let nameWidth = 300;

/** The focused object. */
export const activeObject = () => active;

export function setUp(open) {
  onOpen = open;
  tree.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(() => {
    // Names are cut to the width of the column.
    nameWidth = $("objects").querySelector(".columns > span").clientWidth - CHROME;
    clear();
    draw();
  }).observe(tree);
  tree.addEventListener("keydown", key);
  tree.addEventListener("focus", () => {
    if (!active && rows.length) move(0);
    else draw();
  });
  rowsElement.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (!row) return;
    const id = row.dataset.id;
    active = id;
    if (event.target.closest(".twist")) toggle(id);
    else onOpen(id);
    draw();
  });
}

/** The object with this ID, unless it is hidden. */
function visible(id) {
  const object = model.object.get(id);
  return object && (look.system || !object.system) ? object : undefined;
}

/** The ID of the owner in the tree; empty for a root. */
const parentOf = (object) => object.owners.find((owner) => known.has(owner) && owner !== object.id) ?? "";

/** Arranges all objects. */
function arrange() {
  known = new Map();
  children = new Map();
  absent = new Set();
  for (const object of model.object.values()) {
    if (visible(object.id)) known.set(object.id, object);
  }
  for (const object of known.values()) {
    const siblings = siblingsIn(parentOf(object));
    notice(object);
    siblings.push(object);
  }
  for (const siblings of children.values()) siblings.sort(byPlace);
}

function siblingsIn(parent) {
  if (!children.has(parent)) children.set(parent, []);
  return children.get(parent);
}

function notice(object) {
  object.rank ??= rank(object);
  for (const owner of object.owners) if (!known.has(owner)) absent.add(owner);
}

/** The index of an object in its sorted siblings, or where it belongs. */
function placeIn(siblings, object) {
  let [low, high] = [0, siblings.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (byPlace(siblings[middle], object) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Moves created, changed and deleted objects to their places. Returns false if other objects move with them. */
function rearrange(ids) {
  for (const id of ids) {
    const [old, now] = [known.get(id), visible(id)];
    if (old ? !now && children.has(id) : now && absent.has(id)) return false;
    if (old) {
      const parent = parentOf(old);
      const siblings = children.get(parent);
      siblings.splice(placeIn(siblings, old), 1);
      if (!siblings.length) children.delete(parent);
      known.delete(id);
    }
    if (now) {
      known.set(id, now);
      notice(now);
      const siblings = siblingsIn(parentOf(now));
      siblings.splice(placeIn(siblings, now), 0, now);
    }
  }
  return true;
}

/** The text that the filter searches. */
const textOf = (object) => (object.text ??= `${object.kind} ${object.namespace}/${object.name} ${object.readiness.word}`.toLowerCase());

const wanted = (object) =>
  (!look.namespace || object.namespace === look.namespace) &&
  (!look.words.length || matches(look.words, () => textOf(object)));

/** Rebuilds the tree after a change of the filter, or of these objects. */
export function rebuild(next = look, changed = null) {
  look = next;
  if (!changed || !rearrange(changed)) arrange();
  return layOut();
}

function layOut() {
  const filtering = look.words.length > 0 || look.namespace !== "";
  rows = [];
  let found = 0;
  const walked = new Set();
  // Returns the rows of a branch; empty if nothing matches.
  const walk = (siblings, level) => {
    const kept = [];
    for (const object of siblings) {
      if (walked.has(object.id)) continue;
      walked.add(object.id);
      const owned = children.get(object.id);
      const below = owned ? walk(owned, level + 1) : [];
      const is = !filtering || wanted(object);
      if (!is && below.length === 0) continue;
      if (is) found += 1;
      kept.push({ object, level, below, dim: !is });
    }
    return kept;
  };
  const place = (kept) => {
    kept.forEach(({ object, level, below, dim }, at) => {
      const parent = below.length > 0;
      const open = parent && (look.words.length > 0 || !collapsed.has(object.id));
      rows.push({ object, level, dim, parent, open, at: at + 1, of: kept.length });
      if (open) place(below);
    });
  };
  place(walk(children.get("") ?? [], 1));
  if (walked.size < known.size) {
    // Cyclic owner references have no root.
    const lost = [...known.values()].filter((object) => !walked.has(object.id));
    place(walk(lost.sort(byPlace), 1));
  }
  index = new Map();
  const namespaces = new Set();
  rows.forEach(({ object }, at) => {
    index.set(object.id, at);
    if (object.namespace) namespaces.add(object.namespace);
  });
  if (active && !index.has(active)) active = null;
  $("objects").classList.toggle("one-namespace", namespaces.size < 2);
  rowsElement.style.height = `${rows.length * ROW}px`;
  draw();
  const emptyNote = $("objects-empty");
  emptyNote.hidden = rows.length > 0;
  emptyNote.textContent = !model.ready
    ? "Reading the cluster…"
    : filtering
      ? "Nothing matches the filter."
      : "No objects yet. Objects appear as they are created.";
  return { found, of: known.size };
}

/**
 * Replaces changed objects in place if the rows stay the same. Returns false if the tree must be rebuilt.
 */
export function patch(ids) {
  const changed = [];
  for (const id of ids) {
    const [old, now] = [known.get(id), visible(id)];
    if (!old && !now) continue;
    const same = old && now && old.owners.join() === now.owners.join() && old.name === now.name && wanted(old) === wanted(now);
    if (!same) return false;
    changed.push([old, now]);
  }
  for (const [old, now] of changed) {
    now.rank = old.rank;
    const siblings = children.get(parentOf(now));
    siblings[placeIn(siblings, now)] = now;
    known.set(now.id, now);
    const row = rows[index.get(now.id)];
    if (row) row.object = now;
  }
  draw();
  return true;
}

/** Removes all rows, so that they are rendered again. */
function clear() {
  for (const { element } of shownRows.values()) element.remove();
  shownRows.clear();
}

/** Renders again the rows of objects whose reconciles started or stopped to fail. */
export function showFailures(keys) {
  for (const [id, { element, object }] of shownRows) {
    if (!keys.has(`${object.kind} ${object.namespace}/${object.name}`)) continue;
    element.remove();
    shownRows.delete(id);
  }
  draw();
}

/** Updates the time until the next attempt. */
export function tick() {
  for (const { element, object } of shownRows.values()) {
    const failure = failures.of(object);
    if (failure) setState(element.querySelector(".state"), ...failing(failure, object));
  }
}

const failing = (failure, { readiness }) =>
  ["bad", `Failing, ${failures.retryText(failure)}`, `${failure.reconcile.error ?? failure.reconcile.outcome}\n${readiness.word}`];

/** Highlights visible objects that just changed. */
export function flash(ids) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const id of ids) {
    shownRows.get(id)?.element.animate([{ backgroundColor: "var(--flash)" }, {}], { duration: 1200, easing: "ease-out" });
  }
}

/** Marks the object in the pane. */
export function setOpened(id) {
  opened = id;
  if (id && index.has(id)) active = id;
  draw();
}

function draw() {
  const first = Math.max(0, Math.floor(tree.scrollTop / ROW) - SPARE);
  const last = Math.min(rows.length, Math.ceil((tree.scrollTop + tree.clientHeight) / ROW) + SPARE);
  const keep = new Set();
  for (let at = first; at < last; at += 1) {
    const row = rows[at];
    const id = row.object.id;
    keep.add(id);
    let shown = shownRows.get(id);
    const signature = [row.level, row.parent, row.open, row.dim];
    if (!shown || shown.object !== row.object || signature.some((part, i) => part !== shown.signature[i])) {
      const element = rowElement(row);
      if (shown) shown.element.replaceWith(element);
      else rowsElement.append(element);
      shown = { element, object: row.object, signature };
      shownRows.set(id, shown);
    }
    const { element } = shown;
    element.style.transform = `translateY(${at * ROW}px)`;
    element.setAttribute("aria-setsize", row.of);
    element.setAttribute("aria-posinset", row.at);
    element.setAttribute("aria-selected", String(id === opened));
    element.classList.toggle("active", id === active);
  }
  for (const [id, { element }] of shownRows) {
    if (keep.has(id)) continue;
    element.remove();
    shownRows.delete(id);
  }
  if (active && shownRows.has(active)) tree.setAttribute("aria-activedescendant", `o-${active}`);
  else tree.removeAttribute("aria-activedescendant");
}

function rowElement({ object, level, parent, open, dim }) {
  const { readiness } = object;
  const conditions = el("span", { className: "c-conditions" });
  for (const [type, status, reason] of object.conditions.filter(isNotable(object))) {
    const condition = el("span", { className: "condition", title: `${type}: ${status}${reason ? ` (${reason})` : ""}` }, `${conditionMark(status)} ${type}`);
    condition.dataset.status = status;
    conditions.append(condition);
  }
  const failure = failures.of(object);
  const status = failure ? state(...failing(failure, object)) : state(readiness.level, readiness.word);
  if (!failure && !readiness.word) status.append(el("span", { className: "sr" }, "no status"));
  const name = el("span", { className: "name" },
    el("span", { className: "twist", "aria-hidden": "true" }, parent ? "›" : ""),
    badge(object.kind, object.custom), named(object, level));
  name.title = `${object.kind} ${fullName(object)}`;
  name.style.setProperty("--level", level);
  const row = el("div", { id: `o-${object.id}`, className: "row tree-grid", role: "treeitem", "aria-level": level },
    name, conditions, status,
    el("span", { className: "c-namespace", title: object.namespace }, object.namespace || "–"),
    el("span", { className: "c-age" }, ageOf(object.since)));
  row.dataset.id = object.id;
  row.classList.toggle("dim", dim);
  if (parent) row.setAttribute("aria-expanded", String(open));
  return row;
}

/** The name, cut between words if it must be, and the kind if all of it fits. */
function named(object, level) {
  const width = nameWidth - (level - 1) * INDENT;
  const name = shorten(object.name, width);
  const kind = widthOf(name) + widthOf(object.kind, 400) + 10 <= width ? el("span", { className: "kind" }, object.kind) : null;
  return el("span", { className: "what" }, el("span", { className: "named" }, name), kind);
}

function toggle(id, open = collapsed.has(id)) {
  if (open) collapsed.delete(id);
  else collapsed.add(id);
  layOut();
}

function move(to) {
  if (!rows.length) return;
  const at = Math.min(rows.length - 1, Math.max(0, to));
  active = rows[at].object.id;
  const top = at * ROW;
  if (top < tree.scrollTop) tree.scrollTop = top;
  else if (top + ROW > tree.scrollTop + tree.clientHeight) tree.scrollTop = top + ROW - tree.clientHeight;
  draw();
  if (opened) onOpen(active, { follow: true });
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const at = active ? (index.get(active) ?? 0) : -1;
  const row = rows[at];
  const page = Math.max(1, Math.floor(tree.clientHeight / ROW) - 1);
  const actions = {
    ArrowDown: () => move(at + 1),
    ArrowUp: () => move(at - 1),
    Home: () => move(0),
    End: () => move(rows.length - 1),
    PageDown: () => move(at + page),
    PageUp: () => move(at - page),
    ArrowRight: () => {
      if (row?.parent && !row.open) toggle(active, true);
      else if (row?.parent) move(at + 1);
    },
    ArrowLeft: () => {
      if (row?.open && !look.words.length) toggle(active, false);
      else if (row) for (let up = at - 1; up >= 0; up -= 1) if (rows[up].level < row.level) return move(up);
      return undefined;
    },
    Enter: () => row && onOpen(active),
    " ": () => row && onOpen(active),
  };
  if (!(event.key in actions)) return;
  event.preventDefault();
  actions[event.key]();
}
