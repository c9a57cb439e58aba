// The graph of an object: its owners, what they own, and references between them.

import { model } from "./model.js";
import { badge, el, svg } from "./view.js";
import { widthOf } from "./names.js";

/** Objects in a graph. */
const NODES = 200;
const ROW = 44;
const HEIGHT = 34;
/** Indentation of owned objects, and space for references at the right. */
const INDENT = 56;
const BEND = 90;

const keyOf = (kind, namespace, name) => `${kind} ${namespace}/${name}`;

/** The objects to show with their column, and the edges between them. */
export function graphOf(id) {
  const objects = model.object;
  const byKey = new Map();
  const children = new Map();
  for (const object of objects.values()) {
    byKey.set(keyOf(object.kind, object.namespace, object.name), object);
    for (const owner of object.owners) {
      if (children.has(owner)) children.get(owner).push(object);
      else children.set(owner, [object]);
    }
  }
  const nodes = new Map();
  let left = 0;
  const place = (object, column) => {
    if (nodes.has(object.id)) return;
    if (nodes.size >= NODES) {
      left += 1;
      return;
    }
    nodes.set(object.id, { object, column, row: nodes.size });
    const below = (children.get(object.id) ?? []).sort((a, b) => (a.kind + a.name < b.kind + b.name ? -1 : 1));
    for (const child of below) place(child, column + 1);
  };
  let root = objects.get(id);
  for (const seen = new Set(); root && !seen.has(root.id); ) {
    seen.add(root.id);
    root = root.owners.map((owner) => objects.get(owner)).find(Boolean) ?? root;
  }
  if (!root) return { nodes, edges: [], left };
  place(root, 0);
  // Referenced objects, and objects that refer to this one.
  const find = ([kind, namespace, name]) => byKey.get(keyOf(kind, namespace, name)) ?? byKey.get(keyOf(kind, "", name));
  for (const { object, column } of [...nodes.values()]) {
    for (const reference of object.references) {
      const to = find(reference);
      // Every Pod refers to its node and account.
      if (to && !nodes.has(to.id) && !to.system && nodes.size < NODES) nodes.set(to.id, { object: to, column: column + 1, row: nodes.size });
    }
  }
  for (const object of objects.values()) {
    if (!nodes.has(object.id) && !object.system && nodes.size < NODES && object.references.some((reference) => find(reference)?.id === id)) {
      nodes.set(object.id, { object, column: 0, row: nodes.size });
    }
  }
  const edges = [];
  for (const { object } of nodes.values()) {
    for (const owner of object.owners) if (nodes.has(owner)) edges.push({ from: owner, to: object.id, owner: true });
    for (const reference of object.references) {
      const to = find(reference);
      if (to && nodes.has(to.id) && to.id !== object.id) edges.push({ from: object.id, to: to.id, owner: false });
    }
  }
  return { nodes, edges, left };
}

/** Draws the graph of an object into an element. */
export function drawGraph(id, holder, onOpen) {
  const { nodes, edges, left } = graphOf(id);
  const key = JSON.stringify([id, [...nodes.values()].map(({ object, column }) => [object.id, column, object.readiness]), edges]);
  if (holder.dataset.key === key) return;
  holder.dataset.key = key;
  const widthOfNode = ({ object }) => Math.ceil(Math.max(widthOf(object.name), widthOf(object.kind, 400)) + 68);
  let edge = 0;
  for (const node of nodes.values()) {
    node.x = 12 + node.column * INDENT;
    node.y = node.row * ROW + 8 + HEIGHT / 2;
    node.right = node.x + widthOfNode(node);
    edge = Math.max(edge, node.right);
  }
  const canvas = el("div", { className: "graph", role: "group", "aria-label": "Owners and references" });
  const [width, height] = [edge + BEND + 12, nodes.size * ROW + 16];
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const lines = svg("svg", { width, height, "aria-hidden": "true" });
  canvas.append(lines);
  for (const { from, to, owner } of edges) {
    const [a, b] = [nodes.get(from), nodes.get(to)];
    const bend = Math.max(a.right, b.right) + BEND;
    const path = owner
      ? `M${a.x + 18} ${a.y + HEIGHT / 2}V${b.y}H${b.x}`
      : `M${a.right} ${a.y}C${bend} ${a.y} ${bend} ${b.y} ${b.right + 6} ${b.y}`;
    lines.append(svg("path", { d: path, class: owner ? "owner" : "reference" }));
    if (!owner) lines.append(svg("path", { d: `M${b.right + 7} ${b.y - 4}L${b.right + 1} ${b.y}L${b.right + 7} ${b.y + 4}`, class: "head" }));
  }
  for (const node of nodes.values()) {
    const { object } = node;
    const owners = object.owners.map((owner) => nodes.get(owner)?.object).filter(Boolean);
    const owned = owners.length ? `, owned by ${owners.map((owner) => `${owner.kind} ${owner.name}`).join(", ")}` : "";
    const button = el("button", {
      className: "node", type: "button", title: `${object.kind} ${object.name}`,
      "aria-label": `${object.kind} ${object.name}, ${object.readiness.word || "no status"}${owned}`,
    }, badge(object.kind, object.custom), el("span", { className: "both" }, el("span", { className: "named" }, object.name), el("span", { className: "kind" }, object.kind)), el("i", { className: "dot" }));
    button.dataset.level = object.readiness.level;
    if (object.id === id) button.setAttribute("aria-current", "true");
    button.style.left = `${node.x}px`;
    button.style.top = `${node.y - HEIGHT / 2}px`;
    button.style.width = `${node.right - node.x}px`;
    button.addEventListener("click", () => onOpen(object.id));
    canvas.append(button);
  }
  const legend = el("p", { className: "legend" },
    el("span", { className: "owner-sign" }), " owns ", el("span", { className: "reference-sign" }), " refers to",
    left ? ` · ${left} more objects are not shown` : "");
  holder.replaceChildren(legend, canvas);
}
