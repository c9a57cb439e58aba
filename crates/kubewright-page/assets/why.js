// Why a reconcile ran: the writes and reconciles before it, back to the first cause.

import { request } from "./connection.js";
import { model } from "./model.js";
import { clock, el, fullName } from "./view.js";

const verbs = { created: "created", modified: "changed", deleted: "deleted" };
const roles = { operator: "operator", user: "user", controller: "controller", unknown: "unknown writer" };

/** Fetches the chains of a reconcile into an element. */
export async function explain(reconcile, holder, { onObject, onReconcile }) {
  try {
    const answer = await request(`why?id=${encodeURIComponent(reconcile.id)}`);
    if (!answer.ok) return;
    const { chains } = await answer.json();
    holder.replaceChildren(...chains.map((chain, at) => chainOf(chain, reconcile.causes[at], { onObject, onReconcile })).filter(Boolean));
  } catch {
    // The header reports the lost connection.
  }
}

function chainOf(chain, cause, actions) {
  if (!chain.length) return null;
  const list = el("ol", { className: "chain" });
  chain.forEach((step, at) => {
    const item = el("li", {}, ...stepOf(step, actions));
    item.dataset.step = step.step;
    if (step.step === "write" && !step.certain) item.classList.add("likely");
    if (at === chain.length - 1) {
      item.classList.add("first");
      item.append(el("span", { className: "extra" }, "first cause"));
    }
    list.append(item);
  });
  return list;
}

/** Fields of a step. */
const FIELDS = 3;
const sections = { spec: 0, status: 1 };
const place = (field) => sections[field.split(".")[0]] ?? 2;

/** The changed fields, those of the spec first, and annotations and labels as one each: in short, and all of them. */
function fieldsOf({ changed, more }) {
  const rest = (number) => (number ? ` and ${number} more` : "");
  const short = [...new Set(changed.map((field) => field.replace(/^(metadata\.\w+)\[.*$/, "$1")))].sort((a, b) => place(a) - place(b));
  return [short.slice(0, FIELDS).join(", ") + rest(more + Math.max(0, short.length - FIELDS)), changed.join(", ") + rest(more)];
}

function stepOf(step, { onObject, onReconcile }) {
  if (step.step === "end") return [el("span", {}, step.text)];
  const link = (text, action) => {
    const button = el("button", { className: "link", type: "button" }, text);
    button.addEventListener("click", action);
    return button;
  };
  if (step.step === "reconcile") {
    return [
      el("span", { className: "clock" }, clock(Date.parse(step.at))),
      el("span", {}, "by ", link(`reconcile of ${step.kind} ${fullName(step)}`, () => onReconcile(step.id)), ` (controller ${step.controller})`),
    ];
  }
  const [fields, all] = fieldsOf(step);
  const name = `${step.kind} ${fullName(step)}`;
  return [
    el("span", { className: "clock" }, clock(step.at)),
    el("span", { title: all },
      step.certain ? "" : el("i", {}, "likely: "),
      el("b", {}, step.manager || "an unknown client"),
      step.manager ? ` (${roles[step.by] ?? step.by}) ` : " ",
      `${verbs[step.verb] ?? step.verb} `,
      model.object.has(step.object) ? link(name, () => onObject(step.object)) : name,
      step.subresource ? ` (${step.subresource})` : "",
      fields ? `: ${fields}` : ""),
  ];
}
