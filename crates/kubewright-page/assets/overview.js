// The overview of an object: kubectl lines, the last change, conditions, writes, and the newest of everything.

import { isManager } from "./connection.js";
import { model } from "./model.js";
import { $, ageOf, conditionMark, copyButton, el } from "./view.js";

/** Lines around a change. */
const CONTEXT = 2;
/** Lines of the last change. */
const LINES = 40;

/** Command lines for an object. */
export function kubectlLines(object) {
  const kubectl = model.cluster.kubectl || "kubectl";
  const kind = object.kind.toLowerCase() + (object.custom ? `.${object.group}` : "");
  const namespace = object.namespace ? ` -n ${object.namespace}` : "";
  const lines = [
    `${kubectl} get ${kind} ${object.name}${namespace} -o yaml`,
    `${kubectl} describe ${kind} ${object.name}${namespace}`,
  ];
  if (!isManager) lines.push(`${kubectl} edit ${kind} ${object.name}${namespace}`);
  if (object.kind === "Pod") lines.push(`${kubectl} logs ${object.name}${namespace}`);
  if (!isManager) lines.push(`${kubectl} delete ${kind} ${object.name}${namespace}`);
  return lines;
}

export function drawCommands(object) {
  const holder = $("overview-kubectl");
  const lines = kubectlLines(object);
  const key = lines.join("\n");
  if (holder.dataset.key === key) return;
  holder.dataset.key = key;
  holder.replaceChildren(...lines.map((line) => el("div", { className: "command" }, el("code", {}, line), copyButton(line, "Copy"))));
  const verb = (line) => line.slice((model.cluster.kubectl || "kubectl").length + 1).split(" ")[0];
  $("object-commands").replaceChildren("Copy kubectl", ...lines.map((line) => copyButton(line, verb(line))));
}

/** The changed lines of the last change, with some lines around them. */
export function drawChange(detail, lineOf) {
  const holder = $("overview-change");
  const { lines } = detail;
  const marked = lines.map(([mark], at) => (mark !== 0 ? at : -1)).filter((at) => at >= 0);
  const [last] = detail.writes;
  const by = last?.manager ? ` by ${last.manager}` : "";
  if (!marked.length) {
    const text = last ? `No change since the page started. Created${by}.` : "No change since the page started.";
    holder.replaceChildren(el("p", { className: "none" }, text));
    return;
  }
  const near = new Set(marked.flatMap((at) => Array.from({ length: 2 * CONTEXT + 1 }, (_, i) => at - CONTEXT + i)));
  const shown = [...near].filter((at) => at >= 0 && at < lines.length).sort((a, b) => a - b);
  const code = el("div", { className: "yaml" });
  let before = -1;
  for (const at of shown.slice(0, LINES)) {
    if (before >= 0 && at > before + 1) code.append(el("div", { className: "code skip" }, el("span", { className: "sign" }, "⋯")));
    code.append(lineOf(lines[at][0], lines[at][1], ""));
    before = at;
  }
  const more = shown.length > LINES ? el("p", { className: "none" }, `and ${shown.length - LINES} more lines`) : null;
  const note = el("p", { className: "note-line" }, ageOf(detail.changed), ` ago${by}${last?.subresource ? ` (${last.subresource})` : ""}`);
  holder.replaceChildren(note, el("div", { className: "scroll" }, code), ...(more ? [more] : []));
}

export function drawConditions(detail) {
  const holder = $("overview-conditions");
  $("overview-conditions-title").hidden = !detail.conditions.length;
  if (!detail.conditions.length) {
    holder.replaceChildren();
    return;
  }
  const head = el("tr", {}, ...["Condition", "Status", "Reason", "Message", "Since"].map((name) => el("th", { scope: "col" }, name)));
  const body = el("tbody", {});
  for (const condition of detail.conditions) {
    const since = Date.parse(condition.lastTransitionTime);
    const status = el("td", { className: "condition" }, `${conditionMark(condition.status)} ${condition.status}`);
    status.dataset.status = condition.status;
    body.append(el("tr", {}, el("th", { scope: "row" }, condition.type ?? ""), status, el("td", {}, condition.reason ?? ""),
      el("td", {}, condition.message ?? ""), el("td", {}, since ? ageOf(since) : "")));
  }
  holder.replaceChildren(el("table", { className: "conditions" }, el("thead", {}, head), body));
}

const verbs = { created: "created it", modified: "changed", deleted: "deleted it" };

export function drawWrites(detail) {
  const holder = $("overview-writes");
  $("overview-writes-title").hidden = !detail.writes.length;
  const body = el("tbody", {});
  for (const write of detail.writes.slice(0, 8)) {
    const fields = write.changed.join(", ") + (write.more ? ` and ${write.more} more` : "");
    body.append(el("tr", {},
      el("td", { className: "c-age" }, ageOf(write.at)),
      el("th", { scope: "row" }, write.manager || "unknown"),
      el("td", {}, `${verbs[write.verb] ?? write.verb} ${fields}${write.subresource ? ` (${write.subresource})` : ""}`)));
  }
  const head = el("thead", { className: "sr" }, el("tr", {}, ...["Age", "Field manager", "Change"].map((name) => el("th", { scope: "col" }, name))));
  holder.replaceChildren(...(detail.writes.length ? [el("table", { className: "writes" }, head, body)] : []));
}
