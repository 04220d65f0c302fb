//! A screen made from a document of the dashboard.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, Widget, Wrap};
use serde_json::Value;
use weir_edge::canary::say::sentence;
use weir_meter::live::Canary;
use weir_words::{Language, say};

use super::choice::{Choice, PANES, Pane};
use super::screen::Screen;
use super::tables::{self, Listing};
use crate::figures::{amount, percent, rate, short, time};
use crate::texts;

/// Largest number of waterlines shown.
const LINES_MAX: usize = 8;
/// Largest width of a waterline's bar, in cells.
const BAR_MAX: u16 = 30;
/// A screen of at least this many columns shows a waterline's figures beside its bar.
const WIDE: u16 = 72;
/// Columns of a table's column after the first.
const COLUMN: u16 = 10;
/// Columns that a table's first column has at least.
const FIRST: u16 = 24;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

/// Draws the screen. Returns the first row that each table shows.
pub fn draw(frame: &mut Frame<'_>, screen: &Screen<'_>) -> [usize; PANES] {
    let area = frame.area();
    screen.paint(area, frame.buffer_mut())
}

/// The state of an edge, its requests a second, and the time since its start.
pub fn summary(doc: &Value, language: Language) -> [String; 3] {
    let choice = Choice::default();
    let screen = Screen { doc, before: None, language, trouble: None, choice: &choice, edges: &[], has_keys: false };
    let (mark, _, word) = screen.state_of_edge();
    let up = doc.pointer("/snapshot/weir/uptime_ms").and_then(Value::as_f64);
    [format!("{mark} {word}"), screen.told(&rate(doc["point"]["rps"].as_f64())), screen.told(&time(up))]
}

/// The same screen as lines without colours.
pub fn text(screen: &Screen<'_>, columns: u16, rows: u16) -> Vec<String> {
    let area = Rect::new(0, 0, columns, rows);
    let mut buffer = Buffer::empty(area);
    screen.paint(area, &mut buffer);
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

/// The rows of each table, where all of them together have `free` rows: every table gets its part, and the rest of a
/// short table goes to the long ones.
fn shares(free: usize, wanted: [usize; PANES]) -> [usize; PANES] {
    let mut given = [0; PANES];
    let mut free = free;
    while let Some(place) = (0..PANES).filter(|place| given[*place] < wanted[*place]).min_by_key(|place| given[*place])
    {
        if free == 0 {
            break;
        }
        given[place] += 1;
        free -= 1;
    }
    given
}

impl Screen<'_> {
    /// Draws everything. Returns the first row that each table shows.
    fn paint(&self, area: Rect, buffer: &mut Buffer) -> [usize; PANES] {
        let mut top = area.y;
        let mut row = |height: u16| {
            let height = height.min(area.bottom().saturating_sub(top));
            let part = Rect::new(area.x, top, area.width, height);
            top += height;
            part
        };
        Paragraph::new(self.headline()).render(row(1), buffer);
        // The upstream stands at the verdict's end, so a second line takes what does not fit.
        let verdict = self.verdict();
        let height = 1 + u16::from(verdict.width() > usize::from(area.width));
        Paragraph::new(verdict).wrap(Wrap { trim: true }).render(row(height), buffer);
        if let Some(canary) = self.canary() {
            let height = 1 + u16::from(canary.width() > usize::from(area.width));
            Paragraph::new(canary).wrap(Wrap { trim: true }).render(row(height), buffer);
        }
        Paragraph::new(self.trails(area.width)).render(row(2), buffer);
        let waterlines = self.waterlines();
        if !waterlines.is_empty() {
            self.draw_waterlines(&waterlines, row(waterlines.len() as u16 + 2), buffer);
        }
        let mut listings = tables::of(self);
        for (listing, pane) in listings.iter_mut().zip(&self.choice.panes) {
            listing.sort(pane);
            listing.lines.retain(|line| line.is_failing || !self.choice.only_failing);
        }
        let keys = u16::from(self.has_keys);
        // A table has a head, and a free line after it.
        let wanted = [0, 1, 2].map(|place: usize| listings.get(place).map_or(0, |one| one.lines.len()));
        let heads = 2 * wanted.iter().filter(|rows| **rows > 0).count();
        let rest = usize::from(area.bottom().saturating_sub(row(0).y).saturating_sub(keys));
        let given = shares(rest.saturating_sub(heads), wanted);
        let mut firsts = [0; PANES];
        for (place, listing) in listings.into_iter().enumerate() {
            let (rows, wanted) = (given[place], wanted[place]);
            if rows == 0 {
                continue;
            }
            firsts[place] = self.choice.panes[place].first.min(wanted - rows);
            self.draw_listing(place, listing, firsts[place], rows, row(rows as u16 + 2), buffer);
        }
        if self.has_keys && area.height > 1 {
            let last = Rect::new(area.x, area.bottom() - 1, area.width, 1);
            Paragraph::new(self.keys()).render(last, buffer);
        }
        firsts
    }

    fn draw_listing(&self, place: usize, listing: Listing, first: usize, rows: usize, area: Rect, buffer: &mut Buffer) {
        let is_chosen = self.has_keys && self.choice.pane == place;
        let Pane { by, is_turned, .. } = self.choice.panes[place];
        // Columns that do not fit are left out, from the right.
        let shown = 1 + (listing.heads.len() - 1).min(usize::from(area.width.saturating_sub(FIRST) / COLUMN));
        let all = listing.lines.len();
        let head = listing.heads.iter().take(shown).enumerate().map(|(at, name)| {
            let arrow = match by == Some(at) {
                true if is_turned => " ▲",
                true => " ▼",
                false => "",
            };
            let text = match at {
                0 if rows < all => {
                    format!("{}{name}{arrow}  {}–{}/{all}", if is_chosen { "▸ " } else { "" }, first + 1, first + rows)
                }
                0 => format!("{}{name}{arrow}", if is_chosen { "▸ " } else { "" }),
                _ => format!("{name}{arrow}"),
            };
            aligned(at, text).style(if is_chosen { BOLD } else { DIM })
        });
        let head = Row::new(head.collect::<Vec<_>>());
        let lines = listing.lines.into_iter().skip(first).take(rows).map(|line| {
            let style = if line.is_failing { Style::new().fg(Color::Red) } else { Style::new() };
            Row::new(line.texts().take(shown).enumerate().map(|(at, text)| aligned(at, text))).style(style)
        });
        let widths =
            std::iter::once(Constraint::Fill(1)).chain(std::iter::repeat_n(Constraint::Length(COLUMN - 1), shown - 1));
        Widget::render(Table::new(lines, widths).header(head), area, buffer);
    }

    /// The sentence of a canary that runs.
    fn canary(&self) -> Option<Line<'static>> {
        let canary: Canary = serde_json::from_value(self.doc.pointer("/snapshot/weir/canary")?.clone()).ok()?;
        let said = || format!("{}: {}", self.say(texts::CANARY), self.told(&sentence(&canary)));
        canary.phase.is_on().then(|| Line::from(said()))
    }

    /// Three lines over the last minute or two: requests, failures, the slowest requests.
    fn trails(&self, width: u16) -> Line<'static> {
        let past = self.doc["past"].as_array();
        let each = (usize::from(width) / 3).saturating_sub(12);
        let mut spans = Vec::new();
        for (name, member, colour) in [
            (self.say(texts::TOP_REQUESTS), "rps", Color::Cyan),
            (self.say(texts::TOP_FAILED), "failed", Color::Red),
            ("p99", "p99", Color::Blue),
        ] {
            let values: Vec<f64> =
                past.into_iter().flatten().map(|point| point[member].as_f64().unwrap_or(0.0)).collect();
            let newest = values.get(values.len().saturating_sub(each)..).unwrap_or_default();
            spans.push(Span::styled(format!("{name} "), DIM));
            spans.push(Span::styled(trail(newest), Style::new().fg(colour)));
            spans.push(Span::raw("  "));
        }
        Line::from(spans)
    }

    /// The keys; with several edges, which one is shown.
    fn keys(&self) -> Line<'static> {
        let mut text = self.say(texts::TOP_KEYS).to_owned();
        if let (Some(edge), true) = (self.edges.get(self.choice.edge), self.edges.len() > 1) {
            let number = format!("{}/{}", self.choice.edge + 1, self.edges.len());
            text = self.told(&say!(texts::TOP_KEYS_OF_EDGES, number, &edge.url, text));
        }
        Line::from(Span::styled(text, DIM))
    }
}

fn aligned(at: usize, text: String) -> Line<'static> {
    if at == 0 { Line::from(text) } else { Line::from(text).right_aligned() }
}

/// A line of blocks, as high as the values.
fn trail(values: &[f64]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().fold(0.0, f64::max);
    let block = |value: &f64| {
        let height = if most > 0.0 { (value / most * 7.0).ceil() } else { 0.0 };
        BLOCKS.get(height as usize).copied().unwrap_or('▁')
    };
    values.iter().map(block).collect()
}

impl<'s> Screen<'s> {
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

    /// The state of the edge: a mark, its colour, a word.
    fn state_of_edge(&self) -> (&'static str, Color, &'static str) {
        match self.doc["verdict"]["state"].as_str().unwrap_or_default() {
            "healthy" => ("●", Color::Cyan, self.say(texts::HEALTHY)),
            "near" => ("▲", Color::Yellow, self.say(texts::NEAR)),
            "limited" => ("■", Color::Red, self.say(texts::LIMITED)),
            "failing" => ("■", Color::Red, self.say(texts::FAILING)),
            _ => ("○", Color::Gray, self.say(texts::NO_FIGURES)),
        }
    }

    fn verdict(&self) -> Line<'s> {
        let verdict = &self.doc["verdict"];
        let (mark, colour, word) = self.state_of_edge();
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
        let rows = lines.iter().map(|line| {
            let ratio = line["ratio"].as_f64().unwrap_or_default();
            let (mark, colour) = match line["level"].as_str() {
                Some("full") => ("■", Color::Red),
                Some("near") => ("▲", Color::Yellow),
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
                (Some("rising"), None) => self.say(texts::TOP_RISING).to_owned(),
                (Some("flat"), _) => self.say(texts::TOP_NOT_RISING).to_owned(),
                _ => String::new(),
            };
            let name = format!("{} {}", self.said(&line["name"]), self.said(&line["object"]));
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
}

#[cfg(test)]
mod tests;
