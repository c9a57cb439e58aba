// Connects the model to the views, and keys and buttons to actions.

import * as build from "./build.js";
import { isManager } from "./connection.js";
import { EventList, eventFilter } from "./events.js";
import * as failures from "./failures.js";
import { drawLanes } from "./lanes.js";
import { LogList, logFilter } from "./logs.js";
import { connect, model, subscribe } from "./model.js";
import * as pane from "./object.js";
import { ReconcileList, reconcileFilter } from "./reconciles.js";
import { ReviewList, reviewFilter } from "./reviews.js";
import * as tree from "./tree.js";
import { $, el, say, setState, tick } from "./view.js";

const look = { words: [], namespace: "", system: false };
const events = new EventList($("event-list"), (id) => open(id));
const reconciles = new ReconcileList($("reconcile-list"), { onObject: (id) => open(id), onReconcile: showReconcile });
const reviews = new ReviewList($("review-list"));
const logs = new LogList($("log-list"), showReconcile);

// --- Views ---------------------------------------------------------------------------------------------------------

/** `changed` are the IDs of the changed objects, if nothing else changed. */
function showObjects(changed = null) {
  const { found, of } = tree.rebuild(look, changed);
  const text = found === of ? String(of) : `${found} of ${of}`;
  say($("objects-count"), text);
  say($("tab-objects").querySelector("b"), text);
}

/** Shows a list with its number in both tab bars, or why it is empty. */
function showList(name, list, filter, all, nothing) {
  const number = list.show(filter(look.words, look.namespace));
  say($(`${name}-count`), String(number));
  say($(`tab-${name}`).querySelector("b"), String(number));
  const note = $(`${name}-empty`);
  note.hidden = number > 0;
  say(note, all.size ? "Nothing matches the filter." : nothing);
}

const noEvents = isManager ? "A manager does not cache Events. Use kubectl get events." : "No events yet.";
const showEvents = () => showList("events", events, eventFilter, model.event, noEvents);

const showReviews = () =>
  showList("reviews", reviews, reviewFilter, model.review, "No reviews yet. Calls of the operator's webhooks appear here.");

const showLogs = () => showList("logs", logs, logFilter, model.log, "No output of the operator yet.");

function showReconciles() {
  const waiting = model.operator.size
    ? "The operator is connected and has not reconciled anything yet."
    : "No operator is connected yet. Reconciles appear here once it runs.";
  showList("reconciles", reconciles, reconcileFilter, model.reconcile, waiting);
}

/** Expands a reconcile in the list. */
function showReconcile(id) {
  if (pane.shown() !== null) open(null);
  view("reconciles");
  const item = reconciles.toggle(id, true);
  item?.scrollIntoView({ block: "nearest" });
  item?.querySelector(".line").focus();
}

const showLanes = () => drawLanes(Number($("window").value), showReconcile);

function showStatus() {
  const { lost, discovered, listing, forbidden, unreadable, full, kinds, rejected } = model.cluster;
  const cluster = $("cluster");
  const problems = Object.keys(unreadable).length;
  if (!model.connected && !model.ready) {
    setState(cluster, "waiting", "Connecting");
  } else if (!model.connected) {
    const server = isManager ? "Manager" : "kubewright dev";
    setState(cluster, "bad", `${server} stopped`, `Connection to ${isManager ? "the manager" : server} lost. Showing the last known state; reconnecting.`);
  } else if (lost) {
    setState(cluster, "bad", "Disconnected", lost);
  } else if (!discovered || listing) {
    setState(cluster, "waiting", discovered ? `Listing, ${listing} kinds left` : "Connecting");
  } else {
    setState(cluster, "good", "Connected", isManager ? `the manager caches ${kinds} kinds` : `watching ${kinds} kinds`);
  }
  const notes = [
    lost && model.connected ? lost : "",
    problems ? `${problems} ${problems === 1 ? "kind" : "kinds"} cannot be listed` : "",
    forbidden.length ? `${forbidden.length} ${forbidden.length === 1 ? "kind is" : "kinds are"} forbidden` : "",
    full ? "too many objects; some are not shown" : "",
    rejected.length ? `rejected connection of ${rejected.join(", ")}: only the operator started by kubewright dev can connect` : "",
  ].filter(Boolean);
  const note = $("notes");
  say(note, notes.join(" · "));
  note.title = [...notes, ...Object.entries(unreadable).map(([kind, why]) => `${kind}: ${why}`), ...forbidden].join("\n");

  showOperator();
}

function showOperator() {
  const all = [...model.operator.values()].sort((a, b) => (a.at < b.at ? 1 : -1));
  const operator = all.find((one) => one.connected) ?? all[0];
  const label = $("operator");
  const failing = failures.all();
  if (!operator) setState(label, "unknown", "No operator");
  else if (!operator.connected) setState(label, "waiting", `${operator.name} stopped`);
  else if (!failing.length) setState(label, "good", operator.name, `process ${operator.pid}`);
  else {
    const next = failing.filter((one) => one.retry !== null).sort((a, b) => a.retry - b.retry)[0] ?? failing[0];
    const details = failing.slice(0, 20).map(failures.describe).join("\n");
    setState(label, "bad", `${operator.name}: ${failing.length} failing, ${failures.retryText(next)}`, details);
  }
}

function showNamespaces() {
  const select = $("namespace");
  const names = new Set();
  for (const object of model.object.values()) {
    if (object.namespace && (look.system || !object.system)) names.add(object.namespace);
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
  const failing = ["reconcile", "operator", "object"].some(has) ? failures.update() : new Set();
  if (failing.size) tree.showFailures(failing);
  if (failing.size || ["status", "operator", "reconcile"].some(has)) showStatus();
  if (has("build")) build.show();
  if (has("object")) {
    if (everything || !tree.patch(changed.object)) {
      showNamespaces();
      showObjects(everything ? null : changed.object);
    }
    if (!everything) tree.flash(changed.object);
  }
  if (has("event")) showEvents();
  if (has("reconcile") || has("log")) showReconciles();
  if (has("review")) showReviews();
  if (has("log")) showLogs();
  if (has("reconcile") || has("queue") || has("operator")) showLanes();
  if (everything) openFromAddress();
  const itself = everything || changed.object.has(pane.shown());
  if (itself || ["event", "reconcile", "review", "log"].some(has)) pane.update(itself);
});

setInterval(() => {
  tick();
  tree.tick();
  pane.tick();
  showOperator();
  build.show();
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
  showReviews();
  showLogs();
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
$("system").addEventListener("click", () => {
  look.system = !look.system;
  $("system").setAttribute("aria-pressed", String(look.system));
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

const views = ["objects", "reconciles", "events", "reviews", "logs"];
/** Views that share a panel in wide windows. */
const shared = ["events", "reviews", "logs"];

/** Narrow windows show one view at a time. */
function view(name) {
  document.body.dataset.view = name;
  for (const one of views) $(`tab-${one}`).setAttribute("aria-selected", String(one === name));
  if (!shared.includes(name)) return;
  for (const one of shared) {
    const is = one === name;
    $(`more-${one}`).setAttribute("aria-selected", String(is));
    $(`more-${one}`).tabIndex = is ? 0 : -1;
    $(one).hidden = !is;
  }
}

for (const name of views) {
  $(`tab-${name}`).addEventListener("click", () => {
    if (pane.shown() !== null) open(null);
    view(name);
  });
}

shared.forEach((name, at) => {
  const tab = $(`more-${name}`);
  tab.addEventListener("click", () => view(name));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const to = shared[(at + step + shared.length) % shared.length];
    view(to);
    $(`more-${to}`).focus();
  });
});

$("operator").addEventListener("click", () => {
  const [failure] = failures.all();
  if (failure) showReconcile(failure.reconcile.id);
});

const lists = { reconciles: "reconcile-list", events: "event-list", reviews: "review-list", logs: "log-list" };

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open || $("signin").open) return;
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
    g: () => pane.showGraph(),
  };
  views.forEach((name, at) => {
    actions[at + 1] = () => {
      if (at > 0 && pane.shown() !== null) open(null);
      view(name);
      const place = at === 0 ? $("tree") : $(lists[name]).querySelector('.line[tabindex="0"]');
      place?.focus();
    };
  });
  if (!(event.key in actions)) return;
  event.preventDefault();
  actions[event.key]();
});

build.setUp();
showTheme();
showStatus();
showObjects();
showEvents();
showReconciles();
showReviews();
showLogs();
connect();
