// From what the edge counts to what a view shows: rates between two seconds, shares, lists out of maps. Pure.

/** How much a counter grew each second; nothing where it is new, or was set back. */
export function grew(now, before, seconds) {
  if (typeof now !== "number" || typeof before !== "number" || !(seconds > 0) || now < before) return undefined;
  return (now - before) / seconds;
}

/** Seconds between two documents. */
export const between = (doc, before) => (before ? (doc.at - before.at) / 1000 : 0);

/** A part of a whole, where there is a whole. */
export const part = (some, all) => (all > 0 ? some / all : undefined);

/** Microseconds as milliseconds, of a time that was measured at all. */
export const ms = (times, quantile) => (times?.count !== 0 && times?.[quantile] !== undefined ? times[quantile] / 1000 : undefined);

/** How many of a peer's responses were 5xx. */
export const failed = (responses) => Object.entries(responses.codes ?? {}).reduce((sum, [code, count]) => (code >= 500 ? sum + count : sum), 0);

/** Limits and their use, the fullest first. */
export function waterlines(doc) {
  return (doc.waterlines ?? []).map((line, place) => ({ ...line, place })).sort((a, b) => b.ratio - a.ratio || a.place - b.place);
}

/** The tone of a limit. How near it is says the edge, so that a limit is amber only where the verdict would report it. */
export const toneOf = ({ level }) => ({ near: "warn", full: "bad" })[level] ?? "water";

/** The waterline of a kind of limit of which there is one. */
export const waterlineOf = (doc, kind) => (doc.waterlines ?? []).find((line) => line.kind === kind);

/** Server or location zones as rows. */
export function zones(doc, before, kind, past) {
  const seconds = between(doc, before);
  const [now, then] = [doc.snapshot.http[kind] ?? {}, before?.snapshot.http[kind] ?? {}];
  return Object.entries(now).map(([name, zone]) => {
    const old = then[name];
    const times = doc.snapshot.weir[kind]?.[name];
    const account = before?.snapshot.weir[kind]?.[name];
    const uptime = doc.snapshot.weir.uptime_ms / 1000;
    return {
      name,
      zone,
      rate: times?.rate ?? grew(zone.requests, old?.requests, seconds),
      average: uptime > 0 ? zone.requests / uptime : undefined,
      max: times?.rate_max,
      p50: ms(times?.recent, "p50_us"),
      p95: ms(times?.recent, "p95_us"),
      p99: ms(times?.recent, "p99_us"),
      received: grew(zone.received, old?.received, seconds),
      sent: grew(zone.sent, old?.sent, seconds),
      handshakes: zone.ssl ? part(zone.ssl.handshakes, zone.requests) : undefined,
      resumed: zone.ssl ? part(zone.ssl.session_reuses, zone.ssl.handshakes) : undefined,
      failed: grew(times?.failed, account?.failed, seconds),
      refused: grew(times?.refused, account?.refused, seconds),
    };
  });
}

/** Protocols as rows, with their share of all requests. */
export function protocols(doc, before) {
  const seconds = between(doc, before);
  const [now, then] = [doc.snapshot.weir.protocols ?? [], before?.snapshot.weir.protocols ?? []];
  const all = now.reduce((sum, row) => sum + row.requests, 0);
  return now.map((row, at) => ({
    protocol: row.protocol,
    requests: row.requests,
    rate: grew(row.requests, then[at]?.requests, seconds),
    share: part(row.requests, all),
    received: grew(row.received, then[at]?.received, seconds),
    sent: grew(row.sent, then[at]?.sent, seconds),
  }));
}

/** Statuses, the most frequent first. */
export function codes(responses) {
  return Object.entries(responses.codes ?? {})
    .map(([code, count]) => ({ code: Number(code), count }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count || a.code - b.code);
}

/** Groups, each with its peers as rows. */
export function groups(doc, before) {
  const seconds = between(doc, before);
  return Object.entries(doc.snapshot.http.upstreams ?? {}).map(([name, group]) => ({
    name,
    group,
    peers: (group.peers ?? []).map((peer, place) => {
      const cost = doc.snapshot.weir.upstreams?.[name]?.[place];
      const old = before?.snapshot.http.upstreams?.[name]?.peers?.[place];
      const oldCost = before?.snapshot.weir.upstreams?.[name]?.[place];
      return {
        peer,
        cost,
        state: peer.state === "up" && peer.max_conns && peer.active >= peer.max_conns ? "busy" : peer.state,
        rate: grew(peer.requests, old?.requests, seconds),
        opened: grew(cost?.opened, oldCost?.opened, seconds),
        // 5xx, and tries that got no answer.
        failing: (grew(failed(peer.responses), old && failed(old.responses), seconds) ?? 0) + (grew(peer.fails, old?.fails, seconds) ?? 0),
        reuse: cost ? part(cost.reused, cost.reused + cost.opened) : undefined,
        connect: ms(cost?.connect?.recent, "p95_us"),
        header: ms(cost?.header?.recent, "p95_us"),
        response: ms(cost?.response?.recent, "p95_us"),
      };
    }),
  }));
}

/** Sessions of `stream`: servers as rows, and groups with their peers as rows. */
export function sessions(doc, before) {
  const seconds = between(doc, before);
  const [now, then] = [doc.snapshot.stream ?? {}, before?.snapshot.stream ?? {}];
  const rates = (counts, old) => ({
    rate: grew(counts.connections, old?.connections, seconds),
    received: grew(counts.received, old?.received, seconds),
    sent: grew(counts.sent, old?.sent, seconds),
  });
  return {
    zones: Object.entries(now.server_zones ?? {}).map(([name, zone]) => ({ name, zone, ...rates(zone, then.server_zones?.[name]) })),
    groups: Object.entries(now.upstreams ?? {}).map(([name, group]) => ({
      name,
      peers: (group.peers ?? []).map((peer, place) => ({
        peer,
        state: peer.state === "up" && peer.max_conns && peer.active >= peer.max_conns ? "busy" : peer.state,
        ...rates(peer, then.upstreams?.[name]?.peers?.[place]),
      })),
    })),
  };
}

/** What a cache's requests came to, in the order in which they are told. */
export const OUTCOMES = ["hit", "stale", "updating", "revalidated", "miss", "expired", "bypass", "error"];
/** Of those, which the origin was asked for. */
export const ASKED = new Set(["miss", "expired", "bypass"]);

/** Caches with their books: how many requests are in them, and what is amiss. */
export function caches(doc, before) {
  const seconds = between(doc, before);
  return Object.entries(doc.snapshot.http.caches ?? {}).map(([name, cache]) => {
    const account = doc.snapshot.weir.caches?.[name] ?? {};
    const old = before?.snapshot.weir.caches?.[name];
    const sum = OUTCOMES.reduce((sum, outcome) => sum + (account[outcome] ?? 0), 0);
    return {
      name,
      cache,
      account,
      off: (account.requests ?? 0) - sum,
      underway: sum > (account.requests ?? 0) && sum - (account.requests ?? 0) <= (doc.snapshot.http.requests?.current ?? 0),
      requests: grew(account.requests, old?.requests, seconds),
      ended: grew(account.error, old?.error, seconds),
      fetches: grew(account.fetches, old?.fetches, seconds),
      saved: account.requests > 0 ? 1 - Math.min(1, account.fetches / account.requests) : undefined,
    };
  });
}

/** The document of ten seconds ago, or the oldest one: what failed since then fails now. @param {any[]} docs */
export const lately = (docs) => docs?.at(-11) ?? docs?.[0];

/** What was seen of one thing, second by second. @param {any[]} docs @param {(doc: any, before: any) => any} read */
export const trail = (docs, read) =>
  (docs ?? []).map((doc, at) => ({ at: doc.at, ...(at > 0 ? read(doc, docs[at - 1]) : null) }));

/** Answers of a zone or a peer each second, by class: `2xx`, `3xx`, … */
export function classes(responses, old, seconds) {
  const sum = (codes, first) => Object.entries(codes ?? {}).reduce((sum, [code, count]) => (Math.floor(code / 100) === first ? sum + count : sum), 0);
  return Object.fromEntries([1, 2, 3, 4, 5].map((first) => [`${first}xx`, grew(sum(responses?.codes, first), sum(old?.codes, first), seconds)]));
}

/** The reasons of requests that were not answered as they should be, in the order in which they are told. */
export const REASONS = ["limit", "upstream", "timeout", "client", "weir"];

/** Whether an error counts as a failed request, or is only told beside them: as the verdict counts. */
export const isFailed = (error) => error.kind === "failed";

/** A point of the history as errors by reason. */
export const reasons = (point) => point && { at: point.at, limit: point.refused, upstream: point.upstream, timeout: point.timeout, client: point.client, weir: point.weir };

/** The seconds before a moment and those since, as many of each. */
export function stretches(past, marked, most) {
  const first = past.findIndex((point) => point && point.at > marked);
  const at = first < 0 ? past.length : first;
  const seconds = Math.min(at, past.length - at, most);
  return { seconds, before: past.slice(at - seconds, at), after: past.slice(at, at + seconds) };
}

/** The one in the middle of those that are there. */
export function middle(values) {
  const there = values.filter(Number.isFinite).sort((a, b) => a - b);
  return there.length ? (there[(there.length - 1) >> 1] + there[there.length >> 1]) / 2 : undefined;
}
