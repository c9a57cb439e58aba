// A list with the newest entries first; older ones are shown on request.

import { el, keepStop, roving } from "./view.js";

/** Page size of a list. */
const STEP = 200;

/**
 * Subclasses define the `entries`, their order (`compare`), their display `state`, and how to `fill` an element.
 * Elements are updated in place, which keeps the focus.
 */
export class NewestFirst {
  #list;
  #shown = new Map();
  #limit;
  #pages;
  #older = el("button", { className: "older", type: "button" });

  /** `limit` shows only the newest entries. */
  constructor(list, { limit } = {}) {
    this.#list = list;
    this.#limit = limit ?? STEP;
    this.#pages = limit === undefined;
    roving(list, ".line");
    this.#older.addEventListener("click", () => {
      this.#limit += STEP;
      this.show(this.wanted);
    });
  }

  /** Display state of an entry besides its content. */
  state() {
    return null;
  }

  /** The element of a displayed entry. */
  item(id) {
    return this.#shown.get(id)?.item;
  }

  /** Shows the entries that `wanted` accepts; returns their number. */
  show(wanted) {
    this.wanted = wanted;
    const all = [...this.entries()].filter(wanted).sort(this.compare);
    const top = all.slice(0, this.#limit);
    const keep = new Set(top.map((entry) => entry.id));
    for (const [id, { item }] of this.#shown) {
      if (keep.has(id)) continue;
      item.remove();
      this.#shown.delete(id);
    }
    let before = null;
    for (const entry of top) {
      const state = this.state(entry);
      let shown = this.#shown.get(entry.id);
      if (!shown) {
        shown = { item: el("li", {}), entry: null, state: null };
        shown.item.dataset.id = entry.id;
        this.#shown.set(entry.id, shown);
      }
      if (shown.entry !== entry || shown.state !== state) {
        this.fill(shown.item, entry, state);
        Object.assign(shown, { entry, state });
      }
      const place = before ? before.nextSibling : this.#list.firstChild;
      if (place !== shown.item) this.#list.insertBefore(shown.item, place);
      before = shown.item;
    }
    if (this.#pages && all.length > top.length) {
      this.#older.textContent = `Show ${Math.min(STEP, all.length - top.length)} older`;
      this.#list.append(this.#older);
    } else {
      this.#older.remove();
    }
    keepStop(this.#list, ".line");
    return all.length;
  }
}
