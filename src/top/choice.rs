//! The choices of the reader on the screen: the table that the keys act on, its order, its first row.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The tables that the keys move in, from top to bottom.
pub const PANES: usize = 3;

/// The choices of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pane {
    /// The column that gives the order; `None` for the order in which the table comes.
    pub by: Option<usize>,
    /// Whether the order is turned round.
    pub is_turned: bool,
    /// The first row that is shown.
    pub first: usize,
}

/// All choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The table that the keys move in.
    pub pane: usize,
    /// The choices of each table.
    pub panes: [Pane; PANES],
    /// Whether only rows that fail are shown.
    pub only_failing: bool,
    /// Which of the edges of this machine is shown.
    pub edge: usize,
}

/// The effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEffect {
    /// End.
    Leave,
    /// Draw again with these choices.
    Draw,
    /// Show another edge.
    Turn,
    /// The key has no meaning here.
    Nothing,
}

/// Rows of a large step.
const PAGE: usize = 10;

impl Choice {
    /// Takes a key. `columns` is the number of columns of the chosen table, `edges` the number of edges.
    pub fn take(&mut self, key: KeyEvent, columns: usize, edges: usize) -> KeyEffect {
        let is_control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
            return KeyEffect::Leave;
        }
        let Some(pane) = self.panes.get_mut(self.pane) else { return KeyEffect::Nothing };
        match key.code {
            KeyCode::Tab => self.pane = (self.pane + 1) % PANES,
            KeyCode::BackTab => self.pane = (self.pane + PANES - 1) % PANES,
            KeyCode::Down | KeyCode::Char('j') => pane.first = pane.first.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => pane.first = pane.first.saturating_sub(1),
            KeyCode::PageDown => pane.first = pane.first.saturating_add(PAGE),
            KeyCode::PageUp => pane.first = pane.first.saturating_sub(PAGE),
            KeyCode::Home => pane.first = 0,
            // The screen knows how many rows there are.
            KeyCode::End => pane.first = usize::MAX,
            KeyCode::Char('s') => {
                pane.by = match pane.by {
                    None => Some(0),
                    Some(by) if by + 1 < columns => Some(by + 1),
                    Some(_) => None,
                };
                pane.first = 0;
            }
            KeyCode::Char('r') => pane.is_turned = !pane.is_turned,
            KeyCode::Char('f') => {
                self.only_failing = !self.only_failing;
                self.panes.iter_mut().for_each(|pane| pane.first = 0);
            }
            KeyCode::Char('n') if edges > 1 => {
                self.edge = (self.edge + 1) % edges;
                return KeyEffect::Turn;
            }
            _ => return KeyEffect::Nothing,
        }
        KeyEffect::Draw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_move_sort_and_leave() {
        let mut choice = Choice::default();
        let mut press = |code: KeyCode| choice.take(KeyEvent::new(code, KeyModifiers::NONE), 3, 2);
        assert_eq!(press(KeyCode::Char('x')), KeyEffect::Nothing);
        for code in [KeyCode::Tab, KeyCode::Down, KeyCode::Down, KeyCode::Up, KeyCode::Char('r')] {
            assert_eq!(press(code), KeyEffect::Draw);
        }
        assert_eq!(press(KeyCode::Char('n')), KeyEffect::Turn);
        assert_eq!(press(KeyCode::Esc), KeyEffect::Leave);
        let pane = Pane { by: None, is_turned: true, first: 1 };
        assert_eq!(
            choice,
            Choice { pane: 1, panes: [Pane::default(), pane, Pane::default()], only_failing: false, edge: 1 }
        );
        let mut orders = Vec::new();
        for _ in 0..4 {
            choice.take(KeyEvent::new(KeyCode::Char('s'), KeyModifiers::NONE), 3, 2);
            orders.push(choice.panes[1].by);
        }
        assert_eq!(orders, [Some(0), Some(1), Some(2), None]);
        assert_eq!(choice.take(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL), 3, 2), KeyEffect::Leave);
        assert_eq!(choice.take(KeyEvent::new(KeyCode::Char('n'), KeyModifiers::NONE), 3, 1), KeyEffect::Nothing);
    }
}
