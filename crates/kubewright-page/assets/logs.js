// Lines of the operator's log, newest first, each with the reconcile and the object that it belongs to.

import { isCustom, model } from "./model.js";
import { NewestFirst } from "./newest.js";
import { clock, el, exactly, fullName, kindBadge, matches } from "./view.js";

const searchText = (line) => `${line.level} ${line.text} ${line.controller} ${line.kind} ${fullName(line)} ${line.reconcile}`;

export const logFilter = (words, namespace) => (line) =>
  (!namespace || !line.name || line.namespace === namespace) && matches(words, () => searchText(line));

/** Lines of the reconciles of an object. */
export const logsOf = (object) => (line) =>
  line.name === object.name && line.namespace === object.namespace && (!line.kind || line.kind === object.kind);

/** Lines of a reconcile, oldest first. */
export function logsOfReconcile(reconcile) {
  const id = reconcile.id.slice(reconcile.id.indexOf(":") + 1);
  return [...model.log.values()].filter((line) => line.reconcile === id).sort((a, b) => a.number - b.number);
}

const levels = { ERROR: "bad", WARN: "warning" };

export class LogList extends NewestFirst {
  fill = fill;

  constructor(list, onReconcile, options) {
    super(list, options);
    list.addEventListener("click", (event) => {
      const id = event.target.closest(".line")?.dataset.reconcile;
      const found = id && [...model.reconcile.keys()].find((key) => key.endsWith(`:${id}`));
      if (found) onReconcile(found);
    });
  }

  entries() {
    return model.log.values();
  }

  compare(a, b) {
    return b.number - a.number;
  }
}

function fill(item, line) {
  item.dataset.level = levels[line.level] ?? "normal";
  let button = item.querySelector(".line");
  if (!button) {
    button = el("button", { className: "line log-grid", type: "button", tabIndex: -1 });
    item.append(button);
  }
  button.dataset.reconcile = line.reconcile;
  button.title = line.reconcile ? `${exactly(line.at)}, reconcile ${line.reconcile} of ${line.controller}` : exactly(line.at);
  button.replaceChildren(
    el("span", { className: "clock" }, clock(line.at)),
    el("span", { className: "level" }, line.level),
    el("span", { className: "message" },
      line.name ? el("span", { className: "about" }, line.kind ? kindBadge(line.kind, isCustom(line)) : null, line.name, " ") : null,
      line.text));
}

/** The lines as a plain list, for the inside of a reconcile. */
export function logLines(lines) {
  const list = el("div", { className: "log-lines" });
  for (const line of lines) {
    const row = el("div", { className: "log-line" }, el("span", { className: "clock" }, exactly(line.at)), el("span", { className: "level" }, line.level), el("span", { className: "message" }, line.text));
    row.dataset.level = levels[line.level] ?? "normal";
    list.append(row);
  }
  return list;
}
