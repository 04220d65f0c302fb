//! Writes the script, its rows, and the sentences about both.

use weir_words::Text;

use super::fit::LogFlow;
use super::gather::AccessLogs;
use super::phases::{LogWindow, ScriptPhase};
use super::routes::{RoutePiece, Routes};
use super::said;
use super::sessions::{STEPS_MAX, SessionStep, Sessions};
use super::wish::{MadeScript, Wish};
use crate::csv;

/// Most rows of a scenario: its sessions, evenly chosen if there are more.
const ROWS_MAX: usize = 1_000;
/// The same, if the rows are in the script itself.
const ROWS_INSIDE_MAX: usize = 100;
/// Most files of rows; the rows of further scenarios, which are the rare ones, are in the script itself.
const FILES_MAX: usize = 90;
/// Most rows of such a scenario.
const ROWS_RARE_MAX: usize = 20;
/// Pauses below this are no pauses.
const THINK_MS_MIN: u64 = 20;
/// Most statuses that are shown of a route.
const STATUSES_MAX: usize = 5;
/// Most steps that a scenario's name has.
const NAMED_MAX: usize = 4;

/// Everything that the script is made from.
pub(super) struct ScriptParts<'l> {
    pub(super) wish: &'l Wish,
    pub(super) log: &'l AccessLogs,
    pub(super) window: &'l LogWindow,
    pub(super) routes: &'l Routes,
    pub(super) sessions: &'l Sessions,
}

/// The values of a scenario that differ from session to session.
#[derive(Default)]
struct Columns {
    rows: usize,
    all: Vec<(String, Vec<String>)>,
}

impl Columns {
    /// The text of the value in the script: the value itself if all rows have the same, or its template.
    fn place(&mut self, name: &str, values: Vec<String>, template: impl Fn(&str) -> String) -> String {
        if values.iter().all(|value| Some(value) == values.first()) {
            return values.into_iter().next().unwrap_or_default();
        }
        // A session that has the same id in each request has it in one column.
        if let Some((known, _)) = self.all.iter().find(|(_, known)| *known == values) {
            return template(known);
        }
        let is_taken = |name: &str| self.all.iter().any(|(known, _)| known == name);
        let numbered = (2..).map(|number| format!("{name}{number}"));
        let name = std::iter::once(name.to_owned()).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default();
        let shown = template(&name);
        self.all.push((name, values));
        shown
    }
}

/// The steps of a route, in all sessions: for scenarios that stand for others.
struct Pools {
    steps: Vec<Vec<SessionStep>>,
    thinks: Vec<Vec<u64>>,
}

impl ScriptParts<'_> {
    pub(super) fn write(&self, phases: &[ScriptPhase], scenarios: &[LogFlow<'_>]) -> MadeScript {
        let notes = self.notes(scenarios);
        let pools = self.pools();
        let mut rows = Vec::new();
        let mut inside = String::new();
        let mut payload = String::new();
        let mut flows = String::new();
        for (number, scenario) in (1..).zip(scenarios) {
            let columns = self.scenario(number, scenario, &pools, &mut flows);
            if columns.all.is_empty() {
                continue;
            }
            match self.file_of(number) {
                Some(stem) => {
                    let name = format!("{stem}.{number}.csv");
                    let fields: Vec<String> = columns.all.iter().map(|(name, _)| format!("s{number}_{name}")).collect();
                    payload.push_str(&format!(
                        "    - {{ path: {}, fields: [{}], skipHeader: true, cast: false }}\n",
                        quoted(base(&name)),
                        fields.join(", ")
                    ));
                    rows.push((name, table(&columns)));
                }
                None => inside.push_str(&list(number, &columns)),
            }
        }
        let mut script = format!("# {}\n", said::fill(said::LOAD_FROM_MADE, self.wish.language, &[]));
        for note in &notes {
            script.push_str(&format!("# {note}\n"));
        }
        script.push_str(&self.table_of_routes());
        script.push_str(&format!("config:\n  target: {}\n  phases:\n", quoted(&self.wish.target)));
        for (number, phase) in (1..).zip(phases) {
            script.push_str(&of_phase(number, phase));
        }
        for (head, text) in [("  payload:\n", payload), ("  variables:\n", inside)] {
            if !text.is_empty() {
                script.push_str(head);
                script.push_str(&text);
            }
        }
        script.push_str("scenarios:\n");
        script.push_str(&flows);
        MadeScript { script, rows, notes }
    }

    /// Writes a scenario; returns its columns.
    fn scenario(&self, number: usize, scenario: &LogFlow<'_>, pools: &Pools, out: &mut String) -> Columns {
        let is_inside = self.file_of(number).is_none();
        let most = match (is_inside, &self.wish.stem) {
            (false, _) => ROWS_MAX,
            (true, None) => ROWS_INSIDE_MAX,
            (true, Some(_)) => ROWS_RARE_MAX,
        };
        let sessions = self.rows(scenario, pools, most);
        let mut columns = Columns { rows: sessions.len(), ..Columns::default() };
        let template = |name: &str| format!("{{{{ s{number}{}{name} }}}}", if is_inside { '.' } else { '_' });
        let routes: Vec<_> =
            scenario.routes.iter().filter_map(|route| self.routes.all.get(usize::from(*route))).collect();
        let shown: Vec<String> = routes.iter().take(NAMED_MAX).map(|route| route.shown()).collect();
        let more =
            if routes.len() > NAMED_MAX { format!(", and {} more", routes.len() - NAMED_MAX) } else { String::new() };
        out.push_str(&format!(
            "  - name: {}\n    weight: {}\n",
            quoted(&format!("{number}: {}{more}", shown.join(", "))),
            scenario.weight
        ));
        out.push_str("    flow:\n");
        for (at, route) in routes.iter().enumerate() {
            let steps = || sessions.iter().filter_map(move |steps| steps.get(at));
            let thinks: Vec<u64> =
                steps().map(|step| (step.think_ms as f64 / self.wish.speed).round() as u64).collect();
            if at > 0 && thinks.iter().any(|think| *think >= THINK_MS_MIN) {
                let texts = thinks.iter().map(|think| time(*think)).collect();
                let text = columns.place("think", texts, template);
                out.push_str(&format!("      - think: {}\n", quoted(&text)));
            }
            let mut url = String::new();
            let mut value = 0;
            for piece in &route.pieces {
                match piece {
                    RoutePiece::Text(text) => url.push_str(text),
                    RoutePiece::Value(name) => {
                        let of = |step: &SessionStep| {
                            self.routes.place(step.call)?.values.get(value).map(|text| text.to_string())
                        };
                        let values = steps().map(|step| of(step).unwrap_or_default()).collect();
                        url.push_str(&columns.place(name, values, template));
                        value += 1;
                    }
                }
            }
            let share = scenario.routes.get(at).and_then(|route| self.routes.shares.get(usize::from(*route)));
            let stays = if share.is_some_and(|share| share.redirects) { ", followRedirect: false" } else { "" };
            let method = route.method.to_ascii_lowercase();
            out.push_str(&format!("      - {method}: {{ url: {}{stays} }}\n", quoted(&url)));
        }
        columns
    }

    /// The name for the file of a scenario's rows. `None`: the rows are in the script.
    fn file_of(&self, number: usize) -> Option<&str> {
        self.wish.stem.as_deref().filter(|_| number <= FILES_MAX)
    }

    /// The sessions that give a scenario its values, at most so many.
    fn rows(&self, scenario: &LogFlow<'_>, pools: &Pools, most: usize) -> Vec<Vec<SessionStep>> {
        if !scenario.is_sample {
            let mut random = fastrand::Rng::with_seed(scenario.sessions.len() as u64);
            let mut sessions: Vec<&[SessionStep]> =
                scenario.sessions.iter().map(|session| self.sessions.steps(session)).collect();
            if sessions.len() > most {
                // From each stretch of equally long sessions, so that the pauses have the mean of all.
                sessions.sort_by_key(|steps| steps.iter().map(|step| step.think_ms).sum::<u64>());
            }
            let rows = sessions.len().min(most);
            let chosen = (0..rows).filter_map(|row| sessions.get(spread(row, rows, sessions.len(), &mut random)));
            return chosen.map(|steps| steps.to_vec()).collect();
        }
        let of = |route: &u16| pools.steps.get(usize::from(*route)).map_or(&[][..], Vec::as_slice);
        let thinks = |route: &u16| pools.thinks.get(usize::from(*route)).map_or(&[][..], Vec::as_slice);
        let rows = scenario.routes.iter().map(|route| of(route).len()).max().unwrap_or(0).min(most);
        let mut random = fastrand::Rng::with_seed(rows as u64);
        let mut all = vec![Vec::new(); rows];
        for route in &scenario.routes {
            // In another order for each place of the flow, so that its values do not depend on the others.
            let (steps, thinks) = (picked(of(route), rows, &mut random), picked(thinks(route), rows, &mut random));
            let thinks = thinks.into_iter().map(Some).chain(std::iter::repeat(None));
            for (row, (step, think_ms)) in all.iter_mut().zip(steps.into_iter().zip(thinks)) {
                row.push(SessionStep { think_ms: think_ms.unwrap_or(0), ..step });
            }
        }
        all
    }

    fn pools(&self) -> Pools {
        let empty = self.routes.all.len();
        let mut pools = Pools { steps: vec![Vec::new(); empty], thinks: vec![Vec::new(); empty] };
        for session in &self.sessions.all {
            for (at, step) in self.sessions.steps(session).iter().enumerate() {
                let route = usize::from(step.route);
                pools.steps.get_mut(route).into_iter().for_each(|pool| pool.push(*step));
                pools.thinks.get_mut(route).into_iter().filter(|_| at > 0).for_each(|pool| pool.push(step.think_ms));
            }
        }
        // So that a few of them have the mean of all.
        pools.thinks.iter_mut().for_each(|pool| pool.sort_unstable());
        pools
    }

    fn table_of_routes(&self) -> String {
        let mut text = format!("#\n# {}\n", said::fill(said::LOAD_FROM_ROUTES, self.wish.language, &[]));
        for line in self.lines_of_routes() {
            text.push_str(&format!("#   {line}\n"));
        }
        text
    }

    /// Each route with its share, its requests and its statuses.
    fn lines_of_routes(&self) -> Vec<String> {
        let all = self.sessions.requests().max(1) as f64;
        let line = |(route, share): (&super::routes::Route, &super::routes::RouteShare)| {
            let statuses = share.statuses.iter().take(STATUSES_MAX).map(|(status, count)| {
                format!("{status}: {} %", tenth(*count as f64 / share.requests.max(1) as f64 * 100.0))
            });
            let statuses: Vec<String> = statuses.collect();
            let kind = if route.is_asset() { "  (asset)" } else { "" };
            let share_of_all = tenth(share.requests as f64 / all * 100.0);
            format!("{share_of_all:>5} %  {:>8}  {}{kind}  [{}]", share.requests, route.shown(), statuses.join(", "))
        };
        self.routes.all.iter().zip(&self.routes.shares).map(line).collect()
    }

    fn notes(&self, scenarios: &[LogFlow<'_>]) -> Vec<String> {
        let say = |words: Text, values: &[&str]| said::fill(words, self.wish.language, values);
        let count = |notes: &mut Vec<String>, words: Text, count: u64| {
            if count > 0 {
                notes.push(say(words, &[&count.to_string()]));
            }
        };
        let (window, counts) = (self.window, &self.log.counts);
        let when = |ms: u64| format!("{}", weir_meter::live::Timestamp(ms));
        let requests = self.sessions.requests();
        let mut notes = vec![say(
            said::LOAD_FROM_SOURCE,
            &[
                &requests.to_string(),
                &self.sessions.all.len().to_string(),
                &when(window.from_ms),
                &when(window.to_ms),
                &scenarios.len().to_string(),
            ],
        )];
        self.log.formats.iter().for_each(|(name, format)| notes.push(say(said::LOAD_FROM_FORMAT, &[name, format])));
        self.log.host.iter().for_each(|host| notes.push(say(said::LOAD_FROM_HOST, &[host])));
        self.notes_of_time(&mut notes, requests);
        if counts.unread > 0 {
            let first = say(said::LOAD_FROM_UNREAD, &[&counts.unread.to_string(), &counts.lines.to_string()]);
            notes.push(first);
            notes.extend(self.log.unread.iter().map(|line| format!("  {line}")));
        }
        match self.log.only_client.as_deref().filter(|_| self.log.requests.len() > 1) {
            Some("") => notes.push(say(said::LOAD_FROM_NO_CLIENT, &[])),
            Some(client) => notes.push(say(said::LOAD_FROM_ONE_CLIENT, &[client])),
            None => {}
        }
        count(&mut notes, said::LOAD_FROM_OTHER_HOSTS, counts.other_hosts);
        count(&mut notes, said::LOAD_FROM_OTHER_METHODS, counts.other_methods);
        count(&mut notes, said::LOAD_FROM_ASSETS, counts.assets);
        count(&mut notes, said::LOAD_FROM_BEYOND, counts.beyond);
        count(&mut notes, said::LOAD_FROM_GATHERED, self.routes.gathered);
        if self.sessions.cut > 0 {
            notes.push(say(said::LOAD_FROM_CUT, &[&self.sessions.cut.to_string(), &STEPS_MAX.to_string()]));
        }
        count(
            &mut notes,
            said::LOAD_FROM_SAMPLES,
            scenarios.iter().filter(|scenario| scenario.is_sample).count() as u64,
        );
        notes.push(say(said::LOAD_FROM_NOT_IN_LOG, &[]));
        let shares = || self.routes.all.iter().zip(&self.routes.shares);
        let bodies = shares().filter(|(route, _)| matches!(&*route.method, "POST" | "PUT" | "PATCH"));
        count(&mut notes, said::LOAD_FROM_BODIES, bodies.map(|(_, share)| share.requests).sum());
        let same = shares().flat_map(|(_, share)| &share.statuses).filter(|(status, _)| *status == 304);
        count(&mut notes, said::LOAD_FROM_NOT_MODIFIED, same.map(|(_, count)| count).sum());
        if self.routes.shares.iter().any(|share| share.redirects) {
            notes.push(say(said::LOAD_FROM_REDIRECTS, &[]));
        }
        notes.push(say(said::LOAD_FROM_TARGET, &[&self.wish.target]));
        notes
    }

    fn notes_of_time(&self, notes: &mut Vec<String>, requests: usize) {
        let say = |words: Text, values: &[&str]| said::fill(words, self.wish.language, values);
        let window = self.window;
        let length_s = (window.to_ms - window.from_ms) as f64 / 1000.0;
        let ends = |request: Option<&super::gather::LoggedRequest>| request.map_or(0, |request| request.at_ms);
        if window.is_part {
            let whole_ms = ends(self.log.requests.last()) - ends(self.log.requests.first());
            notes.push(say(
                said::LOAD_FROM_PART,
                &[&tenth(whole_ms as f64 / 3_600_000.0), &tenth(requests as f64 / length_s)],
            ));
        }
        if let Some(minutes) = self.wish.minutes {
            let times = format!("{:.3}", window.share);
            notes.push(say(said::LOAD_FROM_SHAPE, &[&tenth(length_s / 60.0), &minutes.to_string(), &times]));
        }
        if (self.wish.speed - 1.0).abs() > f64::EPSILON {
            notes.push(say(said::LOAD_FROM_SPEED, &[&self.wish.speed.to_string()]));
        }
        if !self.log.has_fractions {
            notes.push(say(said::LOAD_FROM_WHOLE_SECONDS, &[]));
        }
    }
}

fn of_phase(number: usize, phase: &ScriptPhase) -> String {
    let name = format!("{number}: {}", weir_meter::live::Timestamp(phase.at_ms));
    let ScriptPhase { duration_s, arrivals, .. } = phase;
    match arrivals {
        0 => format!("    - {{ pause: {duration_s}, name: {} }}\n", quoted(&name)),
        _ => format!("    - {{ duration: {duration_s}, arrivalCount: {arrivals}, name: {} }}\n", quoted(&name)),
    }
}

/// The index of a row when `rows` are taken from `all`: one at random from each stretch of equal length. Every n-th would
/// follow a period of the log.
fn spread(row: usize, rows: usize, all: usize, random: &mut fastrand::Rng) -> usize {
    let (from, to) = (row * all / rows.max(1), (row + 1) * all / rows.max(1));
    if to > from { random.usize(from..to) } else { from.min(all.saturating_sub(1)) }
}

/// So many values, from all parts of a list, in an order of chance.
fn picked<T: Copy>(all: &[T], rows: usize, random: &mut fastrand::Rng) -> Vec<T> {
    let mut chosen: Vec<T> =
        (0..rows).filter_map(|row| all.get(spread(row, rows, all.len(), random))).copied().collect();
    random.shuffle(&mut chosen);
    chosen
}

/// The rows as CSV.
fn table(columns: &Columns) -> String {
    let mut text = String::new();
    csv::write(columns.all.iter().map(|(name, _)| name.as_str()), &mut text);
    for row in 0..columns.rows {
        csv::write(columns.all.iter().map(|(_, values)| values.get(row).map_or("", String::as_str)), &mut text);
    }
    text
}

/// The rows as a list in the script: Artillery takes one at random for each virtual user.
fn list(number: usize, columns: &Columns) -> String {
    let mut text = format!("    s{number}:\n");
    for row in 0..columns.rows {
        let values = columns
            .all
            .iter()
            .map(|(name, values)| format!("{name}: {}", quoted(values.get(row).map_or("", String::as_str))));
        text.push_str(&format!("      - {{ {} }}\n", values.collect::<Vec<_>>().join(", ")));
    }
    text
}

/// A pause as Artillery reads it: a fraction without a unit would be milliseconds.
fn time(ms: u64) -> String {
    if ms.is_multiple_of(1000) && ms > 0 { format!("{}s", ms / 1000) } else { format!("{ms}ms") }
}

fn tenth(value: f64) -> String {
    format!("{value:.1}")
}

/// A text in quotes; JSON's strings are YAML's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The file's name without its folder: payloads are relative to the script.
fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
