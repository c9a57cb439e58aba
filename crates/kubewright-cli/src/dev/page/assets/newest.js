// A list with the newest first, which shows older ones when asked.

import { el, keepStop, roving } from "./view.js";

/** How many entries a list begins with, and grows by. */
const STEP = 200;

/**
 * Who extends it says what `entries` there are, how they `compare`, in which `state` an entry is shown, and how to `fill`
 * its element. Elements stay, and so does the focus, while what they say changes.
 */
export class NewestFirst {
  #list;
  #shown = new Map();
  #limit = STEP;
  #older = el("button", { className: "older", type: "button" });

  constructor(list) {
    this.#list = list;
    roving(list, ".line");
    this.#older.addEventListener("click", () => {
      this.#limit += STEP;
      this.show(this.wanted);
    });
  }

  /** What an entry is shown in beside what it says itself. */
  state() {
    return null;
  }

  /** The element of an entry that is shown. */
  item(id) {
    return this.#shown.get(id)?.item;
  }

  /** Shows those that `wanted` says; returns how many there are. */
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
