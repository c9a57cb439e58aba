// Connects the model to the views, and keys and buttons to actions.

import { EventList, eventFilter } from "./events.js";
import { connect, model, subscribe } from "./model.js";
import * as pane from "./object.js";
import { ReconcileList, drawLanes, reconcileFilter } from "./reconciles.js";
import * as tree from "./tree.js";
import { $, el, say, setState, tick } from "./view.js";

const look = { words: [], namespace: "", plumbing: false };
const events = new EventList($("event-list"), (id) => open(id));
const reconciles = new ReconcileList($("reconcile-list"));

// --- Views ---------------------------------------------------------------------------------------------------------

function showObjects() {
  const { found, of } = tree.rebuild(look);
  const text = found === of ? String(of) : `${found} of ${of}`;
  say($("objects-count"), text);
  say($("tab-objects").querySelector("b"), text);
}

function showEvents() {
  const number = events.show(eventFilter(look.words, look.namespace));
  say($("events-count"), String(number));
  say($("tab-events").querySelector("b"), String(number));
  const note = $("events-empty");
  note.hidden = number > 0;
  say(note, model.event.size ? "Nothing matches the filter." : "No events yet.");
}

function showReconciles() {
  const number = reconciles.show(reconcileFilter(look.words, look.namespace));
  say($("reconciles-count"), String(number));
  say($("tab-reconciles").querySelector("b"), String(number));
  const note = $("reconciles-empty");
  note.hidden = number > 0;
  const waiting = model.operator.size
    ? "The operator is connected and has not reconciled anything yet."
    : "No operator is connected yet. Reconciles appear here once it runs.";
  say(note, model.reconcile.size ? "Nothing matches the filter." : waiting);
}

function showLanes() {
  drawLanes(Number($("window").value), (id) => {
    view("reconciles");
    const item = reconciles.toggle(id, true);
    item?.scrollIntoView({ block: "nearest" });
    item?.querySelector(".line").focus();
  });
}

function showStatus() {
  const { lost, discovered, listing, forbidden, unreadable, full, kinds } = model.cluster;
  const cluster = $("cluster");
  const problems = Object.keys(unreadable).length;
  cluster.title = "";
  if (!model.connected && !model.ready) {
    setState(cluster, "waiting", "Connecting");
  } else if (!model.connected) {
    setState(cluster, "bad", "kubewright dev stopped");
    cluster.title = "Connection to kubewright dev lost. Showing the last known state; reconnecting.";
  } else if (lost) {
    setState(cluster, "bad", "Disconnected");
    cluster.title = lost;
  } else if (!discovered || listing) {
    setState(cluster, "waiting", discovered ? `Reading, ${listing} kinds left` : "Connecting");
  } else {
    setState(cluster, "good", "Connected");
    cluster.title = `watching ${kinds} kinds`;
  }
  const notes = [
    lost && model.connected ? lost : "",
    problems ? `${problems} ${problems === 1 ? "kind" : "kinds"} cannot be listed` : "",
    forbidden.length ? `${forbidden.length} ${forbidden.length === 1 ? "kind is" : "kinds are"} forbidden` : "",
    full ? "too many objects; some are not shown" : "",
  ].filter(Boolean);
  const note = $("notes");
  say(note, notes.join(" · "));
  note.title = [...Object.entries(unreadable).map(([kind, why]) => `${kind}: ${why}`), ...forbidden].join("\n");

  const all = [...model.operator.values()].sort((a, b) => (a.at < b.at ? 1 : -1));
  const operator = all.find((one) => one.connected) ?? all[0];
  const label = $("operator");
  if (!operator) setState(label, "unknown", "No operator");
  else if (operator.connected) setState(label, "good", operator.name);
  else setState(label, "waiting", `${operator.name} stopped`);
  label.title = operator?.connected ? `process ${operator.pid}` : "";
}

function showNamespaces() {
  const select = $("namespace");
  const names = new Set();
  for (const object of model.object.values()) {
    if (object.namespace && (look.plumbing || !object.plumbing)) names.add(object.namespace);
  }
  if (look.namespace) names.add(look.namespace);
  const sorted = [...names].sort();
  const key = sorted.join();
  if (select.dataset.key === key) return;
  select.dataset.key = key;
  select.replaceChildren(el("option", { value: "" }, "All namespaces"), ...sorted.map((name) => el("option", { value: name }, name)));
  select.value = look.namespace;
}

subscribe((changed, everything) => {
  const has = (topic) => everything || changed[topic].size > 0;
  if (has("status") || has("operator")) showStatus();
  if (has("object")) {
    showNamespaces();
    showObjects();
    if (!everything) tree.flash(changed.object);
  }
  if (has("event")) showEvents();
  if (has("reconcile")) showReconciles();
  if (has("reconcile") || has("queue") || has("operator")) showLanes();
  if (everything) openFromAddress();
  const itself = everything || changed.object.has(pane.shown());
  if (itself || has("event") || has("reconcile")) pane.update(itself);
});

setInterval(() => {
  tick();
  pane.tick();
  showLanes();
}, 1000);

// --- The open object, which is part of the URL ------------------------------------------------------------------------

let followTimer;

function open(id, { follow = false } = {}) {
  clearTimeout(followTimer);
  if (follow) {
    // Wait until the selection settles while moving through the tree.
    followTimer = setTimeout(() => open(id), 120);
    return;
  }
  document.body.classList.toggle("with-object", id !== null);
  pane.show(id);
  tree.setOpened(id);
  history.replaceState(null, "", id === null ? location.pathname : `#${id}`);
}

function openFromAddress() {
  const id = location.hash.slice(1);
  if (id && id !== pane.shown() && model.object.has(id)) open(id);
}

function close() {
  open(null);
  $("tree").focus();
}

addEventListener("hashchange", openFromAddress);
tree.setUp(open);
pane.setUp(open, close);

// --- Tools ------------------------------------------------------------------------------------------------------------

function filter() {
  look.words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  look.namespace = $("namespace").value;
  showObjects();
  showEvents();
  showReconciles();
}

$("filter").addEventListener("input", filter);
$("filter").addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "Enter") {
    event.preventDefault();
    $("tree").focus();
  }
});
$("namespace").addEventListener("change", filter);
$("window").addEventListener("change", showLanes);
$("plumbing").addEventListener("click", () => {
  look.plumbing = !look.plumbing;
  $("plumbing").setAttribute("aria-pressed", String(look.plumbing));
  showNamespaces();
  showObjects();
});

const themes = ["auto", "light", "dark"];
const themeOf = () => document.documentElement.dataset.theme ?? "auto";

function showTheme() {
  const name = themeOf();
  say($("theme").querySelector(".say"), name[0].toUpperCase() + name.slice(1));
  $("theme").setAttribute("aria-label", `Theme: ${name}`);
}

function nextTheme() {
  const next = themes[(themes.indexOf(themeOf()) + 1) % themes.length];
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("theme", next);
  } catch {
    // Without storage, the choice lasts until the page is closed.
  }
  showTheme();
}

$("theme").addEventListener("click", nextTheme);
$("help").addEventListener("click", () => $("keys").showModal());

const views = ["objects", "reconciles", "events"];

/** Narrow windows show one view at a time. */
function view(name) {
  document.body.dataset.view = name;
  for (const one of views) $(`tab-${one}`).setAttribute("aria-selected", String(one === name));
}

for (const name of views) {
  $(`tab-${name}`).addEventListener("click", () => {
    if (pane.shown() !== null) open(null);
    view(name);
  });
}

const places = {
  1: () => $("tree"),
  2: () => $("reconcile-list").querySelector('.line[tabindex="0"]'),
  3: () => $("event-list").querySelector('.line[tabindex="0"]'),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  const field = $("filter");
  if (event.key === "Escape") {
    if (event.target === field || (field.value && pane.shown() === null)) {
      field.value = "";
      filter();
      $("tree").focus();
    } else if (pane.shown() !== null) {
      close();
    }
    return;
  }
  if (event.target.closest("input, select, textarea")) return;
  const actions = {
    "/": () => field.focus(),
    "?": () => $("keys").showModal(),
    t: nextTheme,
    n: () => pane.nextChange(),
  };
  for (const at of Object.keys(places)) {
    actions[at] = () => {
      if (at !== "1" && pane.shown() !== null) open(null);
      view(views[at - 1]);
      places[at]()?.focus();
    };
  }
  if (!(event.key in actions)) return;
  event.preventDefault();
  actions[event.key]();
});

showTheme();
showStatus();
showObjects();
showEvents();
showReconciles();
connect();
