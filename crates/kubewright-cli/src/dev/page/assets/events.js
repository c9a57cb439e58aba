// Events, newest first.

import { model } from "./model.js";
import { ageOf, badge, el, fullName, keepStop, matches, named, roving } from "./view.js";

const STEP = 200;

const searchText = (event) =>
  `${event.type} ${event.reason} ${event.message} ${event.object.kind} ${fullName(event.object)} ${event.source}`;

export const eventFilter = (words, namespace) => (event) =>
  (!namespace || event.object.namespace === namespace) && matches(words, () => searchText(event));

/** Events about an object: by its uid, or by its name where the event says none. */
export const eventsOf = (object) => (event) =>
  event.object.id
    ? event.object.id === object.id
    : event.object.kind === object.kind && event.object.name === object.name && event.object.namespace === object.namespace;

export class EventList {
  #list;
  #shown = new Map();
  #limit = STEP;
  #older = el("button", { className: "older", type: "button" });

  constructor(list, onOpen) {
    this.#list = list;
    roving(list, ".line");
    this.#older.addEventListener("click", () => {
      this.#limit += STEP;
      this.show(this.wanted);
    });
    list.addEventListener("click", (event) => {
      const id = event.target.closest(".line")?.dataset.object;
      if (id && model.object.has(id)) onOpen(id);
    });
  }

  show(wanted) {
    this.wanted = wanted;
    const all = [...model.event.values()].filter(wanted).sort((a, b) => b.since - a.since || b.version - a.version);
    const top = all.slice(0, this.#limit);
    const keep = new Set(top.map((event) => event.id));
    for (const [id, { item }] of this.#shown) {
      if (keep.has(id)) continue;
      item.remove();
      this.#shown.delete(id);
    }
    let before = null;
    for (const event of top) {
      let shown = this.#shown.get(event.id);
      if (!shown) {
        shown = { item: el("li", {}), entry: null };
        this.#shown.set(event.id, shown);
      }
      if (shown.entry !== event) {
        fill(shown.item, event);
        shown.entry = event;
      }
      const place = before ? before.nextSibling : this.#list.firstChild;
      if (place !== shown.item) this.#list.insertBefore(shown.item, place);
      before = shown.item;
    }
    if (all.length > top.length) {
      this.#older.textContent = `Show ${Math.min(STEP, all.length - top.length)} older`;
      this.#list.append(this.#older);
    } else {
      this.#older.remove();
    }
    keepStop(this.#list, ".line");
    return all.length;
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
  line.title = `${event.object.kind} ${fullName(event.object)}${event.source ? `, told by ${event.source}` : ""}`;
  line.replaceChildren(
    el("span", { className: "c-age" }, ageOf(event.since)),
    el("span", { className: "reason" }, el("span", { className: "sort" }, warning ? "▲" : "·"), el("span", { className: "sr" }, `${event.type} `), el("span", { className: "ellipsis" }, event.reason)),
    el("span", { className: "what" }, badge(event.object.kind, model.object.get(event.object.id)?.custom), named(event.object.name)),
    el("span", { className: "message" }, event.message),
    el("span", { className: "times" }, event.count > 1 ? `×${event.count}` : ""));
}
