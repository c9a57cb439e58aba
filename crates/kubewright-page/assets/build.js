// What kubewright dev does: compiling with progress, the first error of a failed build, restarts and exits.

import { model } from "./model.js";
import { $, age, el, say, setState } from "./view.js";

let dismissed = null;

const words = {
  starting: () => ["waiting", "Starting"],
  compiling: (build) => ["running", build.total ? `Compiling ${build.done}/${build.total}` : "Compiling"],
  deploying: () => ["running", "Deploying"],
  running: (build) => ["good", build.starts > 1 ? `Restarted ${age(build.since)} ago` : `Started ${age(build.since)} ago`],
  failed: () => ["bad", "Build failed"],
  exited: () => ["bad", "Operator exited"],
};

export function setUp() {
  $("banner-close").addEventListener("click", () => {
    dismissed = model.build.get("")?.since ?? null;
    show();
  });
}

/** Shows the state in the header, and errors in a banner. */
export function show() {
  const build = model.build.get("");
  const label = $("build");
  label.hidden = !build;
  if (!build) return;
  const [level, word] = (words[build.phase] ?? words.starting)(build);
  const old = build.old_runs && build.phase === "compiling" ? "the old operator keeps running" : "";
  setState(label, level, word, [build.current && `compiling ${build.current}`, build.note, old].filter(Boolean).join("\n"));
  const bar = $("progress");
  const measured = build.phase === "compiling" && build.total > 0;
  bar.hidden = !measured;
  if (measured) {
    bar.max = build.total;
    bar.value = build.done;
    bar.setAttribute("aria-valuetext", `${build.done} of ${build.total} crates`);
  }
  const trouble = build.phase === "failed" || build.phase === "exited";
  const banner = $("banner");
  banner.hidden = !trouble || dismissed === build.since;
  if (banner.hidden) return;
  const [first, ...rest] = (build.error || "See the terminal for the output of cargo.").split("\n");
  say($("banner-title"), build.phase === "exited" ? "The operator exited" : "The build failed");
  say($("banner-note"), build.note);
  const text = $("banner-text");
  if (text.dataset.error !== build.error) {
    text.dataset.error = build.error;
    text.replaceChildren(el("b", {}, first), rest.length ? `\n${rest.join("\n")}` : "");
  }
}
