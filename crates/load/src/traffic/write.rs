//! Writes the script, its rows, and the sentences about both.

use super::detail::CallVersion;
use super::fit::LogFlow;
use super::parts::{Columns, ScriptParts, quoted, spread, tenth};
use super::phases::ScriptPhase;
use super::said;
use super::sessions::SessionStep;
use super::step::StepPlace;
use super::wish::MadeScript;
use crate::csv;

/// Most rows of a scenario: its sessions, evenly chosen if there are more.
const ROWS_MAX: usize = 1_000;
/// The same, if the rows are in the script itself.
const ROWS_INSIDE_MAX: usize = 100;
/// Most files of rows; the rows of further scenarios, which are the rare ones, are in the script itself.
const FILES_MAX: usize = 90;
/// Most rows of such a scenario.
const ROWS_RARE_MAX: usize = 20;
/// Most bytes of bodies in the rows of a scenario; with longer bodies it has fewer rows.
const BODIES_BYTES_MAX: usize = 8 << 20;
/// The same, if the rows are in the script itself.
const BODIES_INSIDE_BYTES_MAX: usize = 128 << 10;
/// Most statuses that are shown of a route.
const STATUSES_MAX: usize = 5;
/// Most steps that a scenario's name has.
const NAMED_MAX: usize = 4;

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
        script.push_str(&format!("config:\n  target: {}\n", quoted(&self.wish.target)));
        let protocol = self.log.protocol().map(|version| match version {
            CallVersion::Http3 => "http3: true".to_owned(),
            _ => "http2: true".to_owned(),
        });
        let host = self.host().map(|host| format!("defaults: {{ headers: {{ host: {} }} }}", quoted(host)));
        let http: Vec<String> = protocol.into_iter().chain(host).collect();
        if !http.is_empty() {
            script.push_str(&format!("  http: {{ {} }}\n", http.join(", ")));
        }
        script.push_str("  phases:\n");
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
        let bytes_max = if is_inside { BODIES_INSIDE_BYTES_MAX } else { BODIES_BYTES_MAX };
        let sessions = self.bounded(self.rows(scenario, pools, most), bytes_max);
        let mut columns = Columns { rows: sessions.len(), ..Columns::default() };
        let template = |name: &str| format!("{{{{ s{number}{}{name} }}}}", if is_inside { '.' } else { '_' });
        let routes: Vec<_> =
            scenario.routes.iter().filter_map(|route| self.routes.all.get(usize::from(*route))).collect();
        let shown: Vec<String> = routes.iter().take(NAMED_MAX).map(|route| route.shown()).collect();
        let more =
            if routes.len() > NAMED_MAX { format!(", and {} more", routes.len() - NAMED_MAX) } else { String::new() };
        let name = format!("{number}: {}{more}", shown.join(", "));
        if let [route] = scenario.routes.as_slice()
            && routes.iter().any(|route| route.traits.is_websocket)
        {
            let opened = pools.steps.get(usize::from(*route)).map_or(&[][..], Vec::as_slice);
            self.websocket(&name, scenario.weight, opened, out);
            return Columns::default();
        }
        out.push_str(&format!("  - name: {}\n    weight: {}\n    flow:\n", quoted(&name), scenario.weight));
        for (at, route) in routes.iter().enumerate() {
            let share = scenario.routes.get(at).and_then(|route| self.routes.shares.get(usize::from(*route)));
            let has_redirects = share.is_some_and(|share| share.redirects);
            let place = StepPlace { at, route, has_redirects, rows: &sessions, template: &template };
            self.step(&place, &mut columns, out);
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
        let mut all: Vec<Vec<SessionStep>> = vec![Vec::new(); rows];
        for route in &scenario.routes {
            // In another order for each place of the flow, so that its values do not depend on the others.
            let (steps, thinks) = (picked(of(route), rows, &mut random), picked(thinks(route), rows, &mut random));
            let thinks = thinks.into_iter().map(Some).chain(std::iter::repeat(None));
            for (row, (step, think_ms)) in all.iter_mut().zip(steps.into_iter().zip(thinks)) {
                // The first request has the client of the session, and the first with cookies has its cookies.
                let client = row.first().map_or(step.client, |first| first.client);
                let brought = row.iter().map(|earlier| earlier.cookies).find(|cookies| *cookies != 0);
                let cookies = brought.filter(|_| step.cookies != 0).unwrap_or(step.cookies);
                row.push(SessionStep { think_ms: think_ms.unwrap_or(0), client, cookies, ..step });
            }
        }
        all
    }

    /// As many of the rows as these bytes of bodies allow; one at least.
    fn bounded(&self, mut rows: Vec<Vec<SessionStep>>, bytes_max: usize) -> Vec<Vec<SessionStep>> {
        let body = |step: &SessionStep| self.log.details.get(step.detail).and_then(|detail| detail.body);
        let bytes: usize = rows.iter().flatten().map(|step| self.text(body(step)).len()).sum();
        if bytes > bytes_max {
            let most = (rows.len() as f64 * bytes_max as f64 / bytes as f64) as usize;
            rows = picked(&rows, most.max(1), &mut fastrand::Rng::with_seed(bytes as u64));
        }
        rows
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
}

fn of_phase(number: usize, phase: &ScriptPhase) -> String {
    let name = format!("{number}: {}", weir_meter::live::Timestamp(phase.at_ms));
    let ScriptPhase { duration_s, arrivals, .. } = phase;
    match arrivals {
        0 => format!("    - {{ pause: {duration_s}, name: {} }}\n", quoted(&name)),
        _ => format!("    - {{ duration: {duration_s}, arrivalCount: {arrivals}, name: {} }}\n", quoted(&name)),
    }
}

/// So many values, from all parts of a list, in an order of chance.
fn picked<T: Clone>(all: &[T], rows: usize, random: &mut fastrand::Rng) -> Vec<T> {
    let mut chosen: Vec<T> =
        (0..rows).filter_map(|row| all.get(spread(row, rows, all.len(), random))).cloned().collect();
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

/// The file's name without its folder: payloads are relative to the script.
fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
