//! Limits that the controller and its agents share.

use std::time::Duration;

/// A silent peer counts as lost after this time: an agent for its controller, a controller for its agents.
pub const LOST: Duration = Duration::from_secs(5);
/// Interval at which the controller and each agent send a message.
pub const BEAT: Duration = Duration::from_secs(1);
/// Interval between two looks at the clock while no message arrives.
pub const LOOK: Duration = Duration::from_millis(50);
/// Most messages that wait for their reader; the server keeps the others.
pub const HEARD_MAX: usize = 1024;
