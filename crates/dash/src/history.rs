//! Ten minutes of points in memory.

use std::collections::VecDeque;

use crate::point::Point;

/// Number of points kept: ten minutes at one a second.
pub const POINTS_MAX: usize = 600;

/// The newest points, oldest first.
#[derive(Default)]
pub struct History(VecDeque<Point>);

impl History {
    /// Adds the newest point; removes the oldest if there are more than [`POINTS_MAX`].
    pub fn push(&mut self, point: Point) {
        if self.0.len() >= POINTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(point);
    }

    /// All kept points.
    pub fn points(&self) -> &VecDeque<Point> {
        &self.0
    }
}
