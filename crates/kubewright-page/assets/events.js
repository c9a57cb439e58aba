// Events, newest first.

import { isCustom, model } from "./model.js";
import { NewestFirst } from "./newest.js";
import { ageOf, el, fullName, fullNamed, kindBadge, matches } from "./view.js";

const searchText = (event) =>
  `${event.type} ${event.reason} ${event.message} ${event.object.kind} ${fullName(event.object)} ${event.source}`;

export const eventFilter = (words, namespace) => (event) =>
  (!namespace || event.object.namespace === namespace) && matches(words, () => searchText(event));

/** Events of an object: by UID, or by name if the event has none. */
export const eventsOf = (object) => (event) =>
  event.object.id
    ? event.object.id === object.id
    : event.object.kind === object.kind && event.object.name === object.name && event.object.namespace === object.namespace;

const second = (event) => Math.floor(event.since / 1000);

export class EventList extends NewestFirst {
  fill = fill;

  constructor(list, onOpen, options) {
    super(list, options);
    list.addEventListener("click", (event) => {
      const id = event.target.closest(".line")?.dataset.object;
      if (id && model.object.has(id)) onOpen(id);
    });
  }

  entries() {
    return model.event.values();
  }

  /** Some times have fractions of a second and others do not, so the resource version decides within a second. */
  compare(a, b) {
    return second(b) - second(a) || b.version - a.version || (a.id < b.id ? -1 : 1);
  }
}

function fill(item, event) {
  const warning = event.type !== "Normal";
  item.dataset.level = warning ? "warning" : "normal";
  let line = item.querySelector(".line");
  if (!line) {
    line = el("button", { className: "line event-grid", type: "button", tabIndex: -1 });
    item.append(line);
  }
  line.dataset.object = event.object.id;
  line.title = `${event.object.kind} ${fullName(event.object)}${event.source ? `, reported by ${event.source}` : ""}`;
  line.replaceChildren(
    el("span", { className: "c-age" }, ageOf(event.since)),
    el("span", { className: "reason" }, el("span", { className: "sort" }, warning ? "▲" : "·"), el("span", { className: "sr" }, `${event.type} `), el("span", { className: "full" }, event.reason)),
    el("span", { className: "what" }, kindBadge(event.object.kind, isCustom(event.object)), fullNamed(event.object)),
    el("span", { className: "message" }, event.message),
    el("span", { className: "times" }, event.count > 1 ? `×${event.count}` : ""));
}
