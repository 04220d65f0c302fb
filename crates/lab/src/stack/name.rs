//! The names of control groups and folders of the lab, and the process that a name belongs to.

/// The beginning of the name of every directory and control group of a lab. The lab's process id follows.
pub const NAME: &str = "weir-lab-";

/// The process id in a name with our prefix.
pub(super) fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(NAME)?.split('-').next()?.parse().ok()
}
