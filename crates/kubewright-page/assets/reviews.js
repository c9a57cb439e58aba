// Reviews of the operator's webhooks: admission with verdict, warnings and patch, and conversion.

import { isCustom, model } from "./model.js";
import { NewestFirst } from "./newest.js";
import { clock, duration, el, exactly, fullName, kindBadge, matches, state } from "./view.js";

const operations = { CREATE: "create", UPDATE: "update", DELETE: "delete", CONNECT: "connect" };
const isAdmission = (review) => review.type === "admission";

const levelOf = (review) => (isAdmission(review) ? (review.allowed ? "good" : "bad") : review.error ? "bad" : "good");

function verdictOf(review) {
  if (!isAdmission(review)) return review.error ? "failed" : "converted";
  if (!review.allowed) return review.code ? `denied ${review.code}` : "denied";
  return review.patch.length ? "patched" : "allowed";
}

const version = (text) => text.split("/").at(-1);

function actionOf(review) {
  if (!isAdmission(review)) return `${review.from.map(version).join(", ")} → ${version(review.to)}`;
  return [operations[review.operation] ?? review.operation, review.subresource].filter(Boolean).join(" ") + (review.dry_run ? ", dry run" : "");
}

const nameOf = (review) => (isAdmission(review) ? review.name : (review.names[0] ?? "").split("/").at(-1) + (review.objects > 1 ? ` and ${review.objects - 1} more` : ""));

const webhookOf = (review) => (isAdmission(review) ? review.webhook : "conversion");

const searchText = (review) =>
  `${webhookOf(review)} ${review.kind} ${isAdmission(review) ? fullName(review) : review.names.join(" ")} ${actionOf(review)} ${verdictOf(review)} ${review.message ?? review.error ?? ""} ${review.user ?? ""}`;

const namespacesOf = (review) => (isAdmission(review) ? [review.namespace] : review.names.map((name) => name.split("/")[0]));

export const reviewFilter = (words, namespace) => (review) =>
  (!namespace || namespacesOf(review).includes(namespace)) && matches(words, () => searchText(review));

/** Reviews of an object. */
export const reviewsOf = (object) => (review) =>
  review.kind === object.kind &&
  (isAdmission(review)
    ? review.name === object.name && review.namespace === object.namespace
    : review.names.includes(fullName(object)));

export class ReviewList extends NewestFirst {
  fill = fill;
  #open = new Set();

  constructor(list, options) {
    super(list, options);
    list.addEventListener("click", (event) => {
      const id = event.target.closest("li")?.dataset.id;
      if (!event.target.closest(".line") || !id) return;
      if (!this.#open.delete(id)) this.#open.add(id);
      this.show(this.wanted);
    });
  }

  entries() {
    return model.review.values();
  }

  compare(a, b) {
    return b.number - a.number;
  }

  state(review) {
    return this.#open.has(review.id);
  }
}

function fill(item, review, open) {
  item.dataset.level = levelOf(review);
  let line = item.querySelector(".line");
  if (!line) {
    line = el("button", { className: "line review-grid", type: "button", tabIndex: -1 });
    item.append(line);
  }
  line.setAttribute("aria-expanded", String(open));
  const warnings = review.warnings ?? [];
  const reason = review.message ?? review.error;
  line.replaceChildren(
    el("span", { className: "clock" }, clock(review.since)),
    el("span", { className: "what" }, kindBadge(review.kind, isCustom(review)), el("span", { className: "full named" }, nameOf(review))),
    el("span", { className: "action" }, actionOf(review)),
    el("span", { className: "webhook" }, webhookOf(review)),
    el("span", { className: "took" }, duration(review.ms)),
    state(levelOf(review), verdictOf(review)));
  for (const part of item.querySelectorAll(".error, .warned, .inside")) part.remove();
  if (reason) item.append(el("p", { className: "error" }, reason));
  for (const warning of warnings) item.append(el("p", { className: "warned" }, `Warning: ${warning}`));
  if (open) item.append(inside(review));
}

function inside(review) {
  const facts = isAdmission(review)
    ? [["Webhook", review.webhook], ["Object", `${review.kind} ${fullName(review)}`], ["User", review.user], ["Answered", `${exactly(review.since)}, after ${duration(review.ms)}`]]
    : [["From", review.from.join(", ")], ["To", review.to], ["Objects", review.names.join(", ")], ["Answered", `${exactly(review.since)}, after ${duration(review.ms)}`]];
  const list = el("dl", { className: "facts" });
  for (const [name, value] of facts) if (value) list.append(el("dt", {}, name), el("dd", {}, value));
  return el("div", { className: "inside" }, list, isAdmission(review) ? patchOf(review) : null);
}

const pretty = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** `/spec/template/0` as `spec.template[0]`. */
function pathOf(pointer) {
  const parts = pointer.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  return parts.map((part, at) => (/^\d+$|^-$/.test(part) ? `[${part}]` : /[./]/.test(part) ? `[${part}]` : at ? `.${part}` : part)).join("");
}

/** The patch as a diff: the value before and after. */
function patchOf(review) {
  if (!review.patch.length) return el("p", { className: "none" }, review.allowed ? "No change to the object." : "");
  const diff = el("div", { className: "yaml" });
  const line = (mark, sign, word, text) => {
    const row = el("div", { className: "code" }, el("span", { className: "sign", "aria-hidden": "true" }, sign), el("span", { className: "sr" }, word), el("span", { className: "content" }, text));
    row.dataset.mark = mark;
    diff.append(row);
  };
  for (const { op, path, value, before } of review.patch) {
    const name = pathOf(path);
    if (before !== undefined && op !== "add") line("-1", "−", "removed: ", `${name}: ${pretty(before)}`);
    if (op !== "remove") line("1", "+", "added: ", `${name}: ${pretty(value)}`);
  }
  return el("div", { className: "patch" }, diff, review.more_patches ? el("p", { className: "none" }, `and ${review.more_patches} more operations`) : null);
}
