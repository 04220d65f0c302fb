//! The namespaces of another process, for a look at a program in a container.

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{chroot, fchdir};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use crate::sys;

/// Enters the namespaces of mounts and of the network of a process, and its root directory. Children of this process also
/// enter its namespace of processes. What is mounted afterwards, only this process and its children see.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, `EINVAL` if this process has several threads, and those of `open`.
pub fn enter(pid: u32) -> io::Result<()> {
    let open = |name: &str| File::open(format!("/proc/{pid}/{name}"));
    let (mounts, network, processes, root) = (open("ns/mnt")?, open("ns/net")?, open("ns/pid")?, open("root")?);
    move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
    // Before the copy is made: afterwards this descriptor belongs to the mounts of the other process.
    fchdir(&root)?;
    chroot(".")?;
    sys::own_mounts()?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
    move_into_link_name_space(processes.as_fd(), Some(LinkNameSpaceType::ProcessID))?;
    Ok(())
}

/// Mounts an empty directory in memory over this one.
///
/// # Errors
/// Those of mount(2).
pub fn mount_empty(place: &Path) -> io::Result<()> {
    const MODE: &CStr = c"mode=755";
    Ok(mount("weir", place, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(MODE))?)
}
