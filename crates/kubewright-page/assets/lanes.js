// A timeline per controller with the depth of its queue.

import { model } from "./model.js";
import { levelOf, outcomeOf } from "./reconciles.js";
import { $, duration, el, fullName, say, svg } from "./view.js";

const LANE = 26;

const lanes = new Map();

/** Draws the timelines. Called for each change and once per second; a lane whose width changes draws itself again. */
export function drawLanes(seconds, onPick) {
  const holder = $("lanes");
  const byController = new Map();
  for (const operator of model.operator.values()) for (const name of operator.controllers) byController.set(name, []);
  for (const name of model.queue.keys()) byController.set(name, []);
  for (const reconcile of model.reconcile.values()) {
    if (!byController.has(reconcile.controller)) byController.set(reconcile.controller, []);
    byController.get(reconcile.controller).push(reconcile);
  }
  for (const [name, lane] of lanes) {
    if (byController.has(name)) continue;
    lane.element.remove();
    lanes.delete(name);
  }
  const now = Date.now();
  for (const name of [...byController.keys()].sort()) {
    if (!lanes.has(name)) lanes.set(name, makeLane(name, holder, onPick));
    const lane = lanes.get(name);
    Object.assign(lane, { reconciles: byController.get(name), seconds });
    drawLane(lane, now);
  }
}

function makeLane(name, holder, onPick) {
  const chart = svg("svg", { class: "timeline", role: "img", height: LANE });
  const depth = el("b", {});
  const active = el("span", { className: "active" });
  const spark = svg("svg", { class: "spark", role: "img", width: 72, height: 20 });
  const element = el("div", { className: "lane" },
    el("span", { className: "controller ellipsis", title: name }, name),
    chart,
    el("span", { className: "queue" }, spark, el("span", { className: "numbers" }, depth, " queued", active)));
  chart.addEventListener("click", (event) => {
    const id = event.target.dataset?.id;
    if (id) onPick(id);
  });
  holder.append(element);
  const lane = { name, element, chart, depth, active, spark, bars: new Map(), width: 0, reconciles: [], seconds: 60 };
  new ResizeObserver(([entry]) => {
    lane.width = entry.contentRect.width;
    drawLane(lane, Date.now());
  }).observe(chart);
  return lane;
}

function drawLane(lane, now) {
  const { reconciles, seconds } = lane;
  const width = lane.width || lane.chart.clientWidth;
  const from = now - seconds * 1000;
  const inSight = reconciles.filter((reconcile) => reconcile.since + (reconcile.ms ?? 0) >= from).slice(-400);
  const keep = new Set();
  for (const reconcile of inSight) {
    keep.add(reconcile.id);
    let bar = lane.bars.get(reconcile.id);
    if (!bar) {
      bar = svg("rect", { rx: 1.5 }, svg("title"));
      bar.dataset.id = reconcile.id;
      lane.bars.set(reconcile.id, bar);
      lane.chart.append(bar);
    }
    const level = levelOf(reconcile);
    const ends = reconcile.outcome ? reconcile.since + (reconcile.ms ?? 0) : now;
    const x = ((reconcile.since - from) / (seconds * 1000)) * width;
    const wide = Math.max(3, ((ends - reconcile.since) / (seconds * 1000)) * width);
    // Failures are taller, so that they are visible without color.
    const tall = level === "bad" ? LANE - 4 : level === "good" || level === "unknown" ? 12 : 16;
    bar.setAttribute("class", level);
    bar.setAttribute("x", Math.min(x, width - wide).toFixed(1));
    bar.setAttribute("width", wide.toFixed(1));
    bar.setAttribute("y", (LANE - tall) / 2);
    bar.setAttribute("height", tall);
    say(bar.firstChild, `${fullName(reconcile)}: ${outcomeOf(reconcile)} ${duration(reconcile.ms)}`);
  }
  for (const [id, bar] of lane.bars) {
    if (keep.has(id)) continue;
    bar.remove();
    lane.bars.delete(id);
  }
  const bad = inSight.filter((reconcile) => levelOf(reconcile) === "bad").length;
  lane.chart.setAttribute("aria-label", `${lane.name}: ${inSight.length} reconciles, ${bad} failed`);
  drawQueue(lane, model.queue.get(lane.name), now);
}

function drawQueue(lane, queue, now) {
  const depth = queue?.depth ?? 0;
  say(lane.depth, String(depth));
  say(lane.active, ` · ${queue?.active ?? 0} active`);
  const points = (queue?.history ?? []).map(([at, value]) => [Date.parse(at), value]);
  const from = now - 60_000;
  const top = Math.max(1, ...points.map(([, value]) => value));
  const y = (value) => (18 - (value / top) * 16).toFixed(1);
  const x = (at) => (Math.max(0, (at - from) / 60_000) * 72).toFixed(1);
  let before = 0;
  let path = "";
  for (const [at, value] of points) {
    path += path ? `H${x(at)}V${y(value)}` : `M0 ${y(before)}H${x(at)}V${y(value)}`;
    before = value;
  }
  // If the operator has stopped, its queue is empty.
  path += path ? `V${y(depth)}H72` : `M0 ${y(0)}H72`;
  if (!lane.spark.firstChild) lane.spark.append(svg("path", { class: "area" }), svg("path", { class: "edge" }));
  lane.spark.firstChild.setAttribute("d", `${path}V19H0Z`);
  lane.spark.lastChild.setAttribute("d", path);
  lane.spark.setAttribute("aria-label", `${lane.name}: ${depth} in the queue, at most ${top} in the last minute`);
}
