//! A screen made from a document of the dashboard.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, Widget};
use serde_json::Value;
use weir_conf::language::{Language, words};
use weir_conf::said::{Said, Text};
use weir_conf::say;

use crate::texts;

/// The data of a screen.
pub struct Screen<'s> {
    /// The newest document.
    pub doc: &'s Value,
    /// The document before it, for rates.
    pub before: Option<&'s Value>,
    /// The language of the words.
    pub language: Language,
    /// Why there is no newer document.
    pub trouble: Option<&'s str>,
}

/// Largest number of waterlines shown.
const LINES_MAX: usize = 8;
/// Largest width of a waterline's bar, in cells.
const BAR_MAX: u16 = 30;
/// A screen of at least this many columns shows a waterline's figures beside its bar.
const WIDE: u16 = 72;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

/// Draws the screen.
pub fn draw(frame: &mut Frame<'_>, screen: &Screen<'_>) {
    frame.render_widget(screen, frame.area());
}

/// The same screen as lines without colours.
pub fn text(screen: &Screen<'_>, columns: u16, rows: u16) -> Vec<String> {
    let area = Rect::new(0, 0, columns, rows);
    let mut buffer = Buffer::empty(area);
    screen.render(area, &mut buffer);
    let lines = (0..rows).map(|y| {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..columns {
            let symbol = buffer[(x, y)].symbol();
            if skip == 0 {
                line.push_str(symbol);
            }
            // A wide character also fills the next cell.
            skip = if skip > 0 { skip - 1 } else { Span::raw(symbol).width().saturating_sub(1) };
        }
        line.trim_end().to_owned()
    });
    let mut lines: Vec<String> = lines.collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

impl Widget for &Screen<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let waterlines = self.waterlines();
        let (zones, peers) = (self.zones(), self.peers());
        let height = |rows: usize| Constraint::Max(if rows == 0 { 0 } else { rows as u16 + 2 });
        let [head, verdict, lines, zone, peer] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(2),
            height(waterlines.len()),
            height(zones.len()),
            height(peers.len()),
        ])
        .areas(area);
        Paragraph::new(self.headline()).render(head, buffer);
        Paragraph::new(self.verdict()).render(verdict, buffer);
        self.draw_waterlines(&waterlines, lines, buffer);
        let (first, others) = (Constraint::Fill(1), Constraint::Length(9));
        self.table(
            self.say(texts::TOP_ZONE),
            &[self.say(texts::TOP_RATE), "p50", "p95", "p99", "4xx", "5xx"],
            zones,
            [first, others],
            zone,
            buffer,
        );
        let columns = [
            self.say(texts::TOP_RATE),
            self.say(texts::TOP_IN_FLIGHT),
            self.say(texts::REUSED),
            self.say(texts::HEAD_P95),
            self.say(texts::FAILS),
            self.say(texts::STATE),
        ];
        self.table(self.say(texts::TOP_PEER), &columns, peers, [first, others], peer, buffer);
    }
}

impl<'s> Screen<'s> {
    fn say(&self, text: Text) -> &'static str {
        text.say(self.language)
    }

    fn said(&self, both: &'s Value) -> &'s str {
        both[words("en", "ko").say(self.language)].as_str().unwrap_or_default()
    }

    fn told(&self, said: &Said) -> String {
        said.say(self.language).to_owned()
    }

    /// The state of a peer. An unknown one is shown by its own name.
    fn state(&self, name: &str) -> String {
        let known = [
            ("up", texts::PEER_UP),
            ("busy", texts::PEER_BUSY),
            ("draining", texts::PEER_DRAINING),
            ("down", texts::PEER_DOWN),
            ("unavail", texts::PEER_UNAVAIL),
            ("checking", texts::PEER_CHECKING),
            ("unhealthy", texts::PEER_UNHEALTHY),
        ];
        let text = known.iter().find(|(state, _)| *state == name);
        text.map_or_else(|| name.to_owned(), |(_, text)| self.say(*text).to_owned())
    }

    fn headline(&self) -> Line<'s> {
        let point = &self.doc["point"];
        let number = |name: &str| point[name].as_f64();
        let mut spans = vec![Span::styled("weir  ", BOLD)];
        let mut put = |name: &'static str, value: String| {
            spans.push(Span::styled(format!("{name} "), DIM));
            spans.push(Span::raw(format!("{value}  ")));
        };
        put(self.say(texts::TOP_REQUESTS), self.told(&rate(number("rps"))));
        put(self.say(texts::TOP_FAILED), self.told(&rate(number("failed"))));
        put("p50", self.told(&time(number("p50"))));
        put("p99", self.told(&time(number("p99"))));
        put(self.say(texts::TOP_CONNECTIONS), short(number("active")));
        put("CPU", percent(number("cpu")));
        let sockets = self.doc.pointer("/snapshot/weir/websockets").unwrap_or(&Value::Null);
        if sockets["opened"].as_u64().is_some_and(|opened| opened > 0) {
            put(self.say(texts::TOP_WEBSOCKETS), short(sockets["open"].as_f64()));
            let grew = |side: &str| self.grew(&format!("/snapshot/weir/websockets/messages_{side}"));
            let messages = grew("received").zip(grew("sent")).map(|(up, down)| up + down);
            put(self.say(texts::TOP_MESSAGES), self.told(&rate(messages)));
        }
        if let Some(trouble) = self.trouble {
            spans.push(Span::styled(format!("▲ {trouble}"), Style::new().fg(Color::Yellow)));
        }
        Line::from(spans)
    }

    fn verdict(&self) -> Line<'s> {
        let verdict = &self.doc["verdict"];
        let (mark, colour, word) = match verdict["state"].as_str().unwrap_or_default() {
            "healthy" => ("●", Color::Cyan, self.say(texts::HEALTHY)),
            "near" => ("▲", Color::Yellow, self.say(texts::NEAR)),
            "limited" => ("■", Color::Red, self.say(texts::LIMITED)),
            "failing" => ("■", Color::Red, self.say(texts::FAILING)),
            _ => ("○", Color::Gray, self.say(texts::NO_FIGURES)),
        };
        Line::from(vec![
            Span::styled(format!("{mark} {word}  "), Style::new().fg(colour).add_modifier(Modifier::BOLD)),
            Span::raw(self.said(&verdict["words"])),
        ])
    }

    /// The waterlines, the fullest first.
    fn waterlines(&self) -> Vec<&'s Value> {
        let mut lines: Vec<&Value> = self.doc["waterlines"].as_array().into_iter().flatten().collect();
        let ratio = |line: &Value| line["ratio"].as_f64().unwrap_or_default();
        lines.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
        lines.truncate(LINES_MAX);
        lines
    }

    fn draw_waterlines(&self, lines: &[&'s Value], area: Rect, buffer: &mut Buffer) {
        let bar = BAR_MAX.min(area.width / 4);
        // On a narrow terminal, the name of a limit is more useful than the figures after its bar.
        let (used, left) = if area.width < WIDE { (0, 0) } else { (19, 14) };
        let near = self.doc["thresholds"]["near"].as_f64().unwrap_or(1.0);
        let limited = self.doc["thresholds"]["limited"].as_f64().unwrap_or(1.0);
        let rows = lines.iter().map(|line| {
            let ratio = line["ratio"].as_f64().unwrap_or_default();
            let is_calm = line["calm"].as_bool() == Some(true);
            let (mark, colour) = match ratio {
                _ if is_calm => (" ", Color::Cyan),
                ratio if ratio >= limited => ("■", Color::Red),
                ratio if ratio >= near => ("▲", Color::Yellow),
                _ => (" ", Color::Cyan),
            };
            let full = ((ratio.clamp(0.0, 1.0) * f64::from(bar)).round() as usize).min(usize::from(bar));
            let empty = usize::from(bar) - full;
            let level = Line::from(vec![
                Span::styled("█".repeat(full), Style::new().fg(colour)),
                Span::styled("░".repeat(empty), DIM),
            ]);
            let left = match (line["trend"].as_str(), line["eta_s"].as_f64()) {
                (Some("rising"), Some(eta)) => self.told(&say!(texts::TOP_IN, time(Some(eta * 1000.0)))),
                (Some("flat"), _) => self.say(texts::TOP_NOT_RISING).to_owned(),
                _ => String::new(),
            };
            let name = format!("{} {}", self.said(&line["name"]), line["of"].as_str().unwrap_or_default());
            let number = |name: &str| amount(line["unit"].as_str(), line[name].as_f64());
            Row::new([
                Cell::from(Span::styled(mark, Style::new().fg(colour))),
                Cell::from(name),
                Cell::from(level),
                Cell::from(Line::from(percent(Some(ratio))).right_aligned()),
                Cell::from(Line::from(format!("{} / {}", number("used"), number("limit"))).right_aligned()),
                Cell::from(Span::styled(left, DIM)),
            ])
        });
        let widths = [
            Constraint::Length(1),
            Constraint::Fill(1),
            Constraint::Length(bar),
            Constraint::Length(6),
            Constraint::Length(used),
            Constraint::Length(left),
        ];
        let names = ["", self.say(texts::TOP_LIMIT), "", "", self.say(texts::TOP_USE), self.say(texts::TOP_LEFT)];
        let head = Row::new(names.map(|name| Line::from(Span::styled(name, DIM))));
        Widget::render(Table::new(rows, widths).header(head), area, buffer);
    }

    /// Growth of a total, per second.
    fn grew(&self, path: &str) -> Option<f64> {
        self.between(|doc| doc.pointer(path)?.as_f64())
    }

    /// Growth of a value of the document, per second.
    fn between(&self, read: impl Fn(&Value) -> Option<f64>) -> Option<f64> {
        let (now, before) = (read(self.doc)?, read(self.before?)?);
        let seconds = (self.doc["at"].as_f64()? - self.before?["at"].as_f64()?) / 1000.0;
        (seconds > 0.0 && now >= before).then(|| (now - before) / seconds)
    }

    /// Server zones, the busiest first.
    fn zones(&self) -> Vec<Vec<String>> {
        let zones = self.doc.pointer("/snapshot/http/server_zones").and_then(Value::as_object);
        let times = self.doc.pointer("/snapshot/weir/server_zones");
        let mut rows: Vec<(f64, Vec<String>)> = zones
            .into_iter()
            .flatten()
            .map(|(name, _)| {
                let times = times.and_then(|times| times.get(name)).unwrap_or(&Value::Null);
                let recent = &times["recent"];
                let quantile = |name: &str| self.told(&time(recent[name].as_f64().map(|us| us / 1000.0)));
                let codes = format!("/snapshot/http/server_zones/{}/responses/codes", escaped(name));
                let grown = |class: char| self.told(&rate(self.between(|doc| class_of(doc.pointer(&codes)?, class))));
                let now = times["rate"].as_f64().unwrap_or_default();
                let row = vec![
                    name.clone(),
                    self.told(&rate(Some(now))),
                    quantile("p50_us"),
                    quantile("p95_us"),
                    quantile("p99_us"),
                    grown('4'),
                    grown('5'),
                ];
                (now, row)
            })
            .collect();
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
        rows.into_iter().map(|(_, row)| row).collect()
    }

    fn peers(&self) -> Vec<Vec<String>> {
        let groups = self.doc.pointer("/snapshot/http/upstreams").and_then(Value::as_object);
        let mut rows = Vec::new();
        for (name, group) in groups.into_iter().flatten() {
            for (place, peer) in group["peers"].as_array().into_iter().flatten().enumerate() {
                let path = format!("/snapshot/weir/upstreams/{}/{place}", escaped(name));
                let cost = self.doc.pointer(&path).unwrap_or(&Value::Null);
                let number = |name: &str| cost[name].as_f64().unwrap_or_default();
                let all = number("opened") + number("reused");
                let head = &cost["header"]["recent"];
                let requests = format!("/snapshot/http/upstreams/{}/peers/{place}/requests", escaped(name));
                rows.push(vec![
                    format!("{name}  {}", peer["server"].as_str().unwrap_or_default()),
                    self.told(&rate(self.grew(&requests))),
                    short(peer["active"].as_f64()),
                    percent((all > 0.0).then(|| number("reused") / all)),
                    self.told(&time(head["p95_us"].as_f64().map(|us| us / 1000.0))),
                    short(peer["fails"].as_f64()),
                    self.state(peer["state"].as_str().unwrap_or_default()),
                ]);
            }
        }
        rows
    }

    fn table(
        &self,
        name: &'static str,
        columns: &[&'static str],
        rows: Vec<Vec<String>>,
        [first, others]: [Constraint; 2],
        area: Rect,
        buffer: &mut Buffer,
    ) {
        if rows.is_empty() {
            return;
        }
        // Columns that do not fit are left out, from the right.
        let shown = columns.len().min(usize::from(area.width.saturating_sub(24)) / 10);
        let head = std::iter::once(Line::from(name))
            .chain(columns.iter().take(shown).map(|name| Line::from(*name).right_aligned()));
        let head = Row::new(head.map(|line| line.style(DIM)));
        let rows = rows.into_iter().map(|row| {
            let cells = row.into_iter().take(shown + 1).enumerate();
            Row::new(cells.map(|(at, text)| if at == 0 { Line::from(text) } else { Line::from(text).right_aligned() }))
        });
        let widths = std::iter::once(first).chain(std::iter::repeat_n(others, shown));
        Widget::render(Table::new(rows, widths).header(head), area, buffer);
    }
}

/// The number of statuses in a list that begin with this digit; `None` if there is no list.
fn class_of(codes: &Value, class: char) -> Option<f64> {
    let of_class = codes.as_object()?.iter().filter(|(code, _)| code.starts_with(class));
    Some(of_class.filter_map(|(_, count)| count.as_f64()).sum())
}

/// A name, escaped for a JSON pointer (RFC 6901).
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

const NOTHING: &str = "–";

fn short(number: Option<f64>) -> String {
    let Some(mut number) = number else { return NOTHING.to_owned() };
    let mut units = ["", "k", "M", "G"].iter();
    let mut unit = units.next().copied().unwrap_or_default();
    while number >= 999.5 {
        let Some(next) = units.next() else { break };
        (number, unit) = (number / 1000.0, next);
    }
    let digits = if number.fract() == 0.0 || number >= 99.95 { 0 } else { 1 };
    format!("{number:.digits$}{unit}")
}

fn rate(number: Option<f64>) -> Said {
    number.map_or(NOTHING.into(), |number| say!(texts::EACH_SECOND, short(Some(number))))
}

fn percent(share: Option<f64>) -> String {
    share.map_or(NOTHING.to_owned(), |share| format!("{:.0} %", share * 100.0))
}

fn time(ms: Option<f64>) -> Said {
    match ms {
        None => NOTHING.into(),
        Some(ms) if ms < 0.9995 => format!("{:.0} µs", ms * 1000.0).into(),
        Some(ms) if ms < 999.5 => format!("{ms:.1} ms").into(),
        Some(ms) if ms < 120_000.0 => say!(texts::SECONDS, format!("{:.1}", ms / 1000.0)),
        Some(ms) if ms < 7_200_000.0 => say!(texts::MINUTES, format!("{:.0}", ms / 60_000.0)),
        Some(ms) => say!(texts::HOURS, format!("{:.0}", ms / 3_600_000.0)),
    }
}

fn amount(unit: Option<&str>, number: Option<f64>) -> String {
    match (unit, number) {
        (Some("bytes"), Some(bytes)) if bytes >= 1_073_741_824.0 => format!("{:.1} GiB", bytes / 1_073_741_824.0),
        (Some("bytes"), Some(bytes)) => format!("{:.1} MiB", bytes / 1_048_576.0),
        (Some("cores"), Some(cores)) => format!("{cores:.2}"),
        (_, number) => short(number),
    }
}

#[cfg(test)]
mod tests;
