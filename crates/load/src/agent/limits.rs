//! Limits that the controller and its agents share.

use std::time::Duration;

/// A silent peer counts as lost after this time: an agent for its controller, a controller for its agents.
pub const LOST: Duration = Duration::from_secs(5);
/// Interval at which the controller and each agent send a message.
pub const BEAT: Duration = Duration::from_secs(1);
/// Interval between two looks at the clock while no message arrives.
pub const LOOK: Duration = Duration::from_millis(50);
/// Most messages that wait for their reader; Redis keeps the others, up to its `client-output-buffer-limit`.
pub const HEARD_MAX: usize = 1024;
/// Most bytes of a message: a longer one is not weir's, and is dropped.
pub const MESSAGE_BYTES_MAX: usize = 2 << 20;
/// Most bytes that a message has after its line of JSON.
pub const BODY_BYTES_MAX: usize = 1 << 20;
