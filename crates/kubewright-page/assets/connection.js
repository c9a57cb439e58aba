// Requests to the server. `kubewright dev` streams changes. A manager is polled, with the token of the reader, which is
// kept in memory only.

import { $, say } from "./view.js";

/** Whether this is the read-only page of a manager. */
export const isManager = document.body.dataset.mode === "manager";

/** Milliseconds between two polls. */
const PACE = 200;
/** Milliseconds before another attempt. */
const AGAIN = 1000;

let token = "";

/** Gets a path of this page, relative to it. */
export const request = (path) => fetch(path, token ? { headers: { Authorization: `Bearer ${token}` } } : {});

/** Calls `receive(id, batch)` for all changes after `last()`, and `tell(connected)`. */
export function listen(last, receive, tell) {
  if (isManager) poll(last, receive, tell);
  else stream(last, receive, tell);
}

function stream(last, receive, tell) {
  const source = new EventSource(last() ? `events?after=${encodeURIComponent(last())}` : "events");
  source.onopen = () => tell(true);
  source.onmessage = (message) => receive(message.lastEventId, JSON.parse(message.data));
  source.onerror = () => {
    tell(false);
    // The browser reconnects by itself, unless the request was rejected.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => stream(last, receive, tell), AGAIN);
  };
}

const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));

async function poll(last, receive, tell) {
  for (;;) {
    try {
      const answer = await request(`updates?after=${encodeURIComponent(last())}`);
      if (answer.status === 401 || answer.status === 403) {
        tell(false);
        await signIn(answer.status === 401 ? "" : (await answer.text()).trim());
        continue;
      }
      if (!answer.ok) throw new Error(answer.statusText);
      tell(true);
      if (answer.status === 204) continue;
      const { id, batch } = await answer.json();
      receive(id, batch);
      if (!batch.more) await pause(PACE);
    } catch {
      tell(false);
      await pause(AGAIN);
    }
  }
}

/** Asks for a token. */
function signIn(refusal) {
  const dialog = $("signin");
  const field = $("signin-token");
  say($("signin-error"), refusal || (token ? "The token is not valid." : ""));
  $("signin-error").hidden = !refusal && !token;
  field.value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      token = field.value.trim();
      field.value = "";
      resolve();
    }, { once: true });
  });
}
