// One thing of the cluster, asked for again and again while its page is shown.

import { ask } from "./store.js";

// `show(found)` gets each answer. `missing(words)` is called when the thing is gone, or was never there; over any other
// fault what was shown stays.
export function refresher({ path, everyMs, show, missing, gone }) {
  let asked = 0;
  let busy = false;
  let ended = false;
  let seen = false;
  const sinceMs = () => performance.now() - asked;

  async function refresh() {
    if (busy || ended) return;
    busy = true;
    asked = performance.now();
    try {
      const found = await ask(path());
      if (ended) return;
      seen = true;
      show(found);
    } catch (error) {
      if (!ended && (error.gone || !seen)) missing(seen ? gone : `${error.message}.`);
    } finally {
      busy = false;
    }
  }

  refresh();
  const timer = setInterval(() => { if (!document.hidden && sinceMs() > everyMs) refresh(); }, 1000);
  return {
    refresh,
    sinceMs,
    end() {
      ended = true;
      clearInterval(timer);
    },
  };
}
