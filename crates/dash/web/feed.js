// What the edge sends: the whole first, then what has changed, once a second.

/**
 * A document with a patch applied: RFC 7396, and where an object meets a list of the same kind of thing, its members
 * are places in that list. What did not change is the same object as before.
 * @param {any} doc
 * @param {any} patch
 */
export function merge(doc, patch) {
  if (patch === null || typeof patch !== "object" || Array.isArray(patch)) return patch;
  if (Array.isArray(doc)) {
    const list = doc.slice();
    for (const place in patch) list[Number(place)] = merge(doc[Number(place)], patch[place]);
    return list;
  }
  const out = doc !== null && typeof doc === "object" ? { ...doc } : {};
  for (const name in patch) {
    if (patch[name] === null) delete out[name];
    else out[name] = merge(out[name], patch[name]);
  }
  return out;
}

/** Points kept for the charts: ten minutes, one a second. */
export const POINTS_MAX = 600;

/**
 * What the page knows, after one more event. A part that does not follow the one before is an error: ask anew. `docs`
 * are the documents since the page was opened, ten minutes at most: what did not change between two of them is the same
 * object, so they cost about what was sent.
 * @param {{doc: any, before: any, past: any[], docs: any[]} | null} state
 * @param {"whole" | "delta"} kind
 * @param {any} data
 * @param {any[]} [kept] documents from before the feed was opened again
 */
export function step(state, kind, data, kept = []) {
  if (kind === "whole") {
    const { past, ...doc } = data;
    const isSame = kept.at(-1)?.snapshot?.nginx?.pid === doc.snapshot?.nginx?.pid;
    return { doc, before: null, past: (past ?? []).slice(-POINTS_MAX), docs: [...(isSame ? kept.slice(1 - POINTS_MAX) : []), doc] };
  }
  if (!state) throw new Error("an update came before the full state");
  if (data.seq !== state.doc.seq + 1) throw new Error(`part ${data.seq} came after ${state.doc.seq}`);
  const doc = merge(state.doc, data);
  const past = state.past.length >= POINTS_MAX ? state.past.slice(1 - POINTS_MAX) : state.past.slice();
  past.push(doc.point);
  return { doc, before: state.doc, past, docs: [...state.docs.slice(1 - POINTS_MAX), doc] };
}

/** Longest pause before the next try, in milliseconds. */
const PAUSE_MAX = 10_000;
/** Silence after which the page says so, in milliseconds. */
export const SILENCE = 3500;

/**
 * Keeps the feed open, and tells what comes of it.
 * @param {string} url
 * @param {(event: {state?: any, may?: any, link: "open" | "lost" | "refused"}) => void} tell
 */
export function follow(url, tell) {
  let state = null;
  let kept = [];
  let source = null;
  let pause = 500;
  let timer = 0;

  function open() {
    source = new EventSource(url);
    for (const kind of ["whole", "delta"]) {
      source.addEventListener(kind, (event) => {
        try {
          state = step(state, kind, JSON.parse(event.data), kept);
        } catch {
          return again(0);
        }
        pause = 500;
        tell({ state, link: "open" });
      });
    }
    // What may be done here; it comes before anything else.
    source.addEventListener("may", (event) => {
      try {
        tell({ may: JSON.parse(event.data), link: "open" });
      } catch {
        again(0);
      }
    });
    source.onerror = () => {
      tell({ link: "lost" });
      again(pause);
      pause = Math.min(pause * 2, PAUSE_MAX);
    };
  }

  function again(wait) {
    source.close();
    kept = state?.docs ?? kept;
    state = null;
    clearTimeout(timer);
    timer = setTimeout(() => {
      // An event source does not say why it failed; a page whose token is gone is told so.
      fetch("doc.json", { method: "HEAD", cache: "no-store" })
        .then((answer) => {
          if (answer.status === 401) tell({ link: "refused" });
          else open();
        })
        .catch(() => {
          tell({ link: "lost" });
          again(pause);
          pause = Math.min(pause * 2, PAUSE_MAX);
        });
    }, wait);
  }

  open();
}
