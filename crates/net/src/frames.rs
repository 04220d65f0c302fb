//! Whole frames of one network interface, received and sent: a lab uses them for its links.
//!
//! Not for the data path and not for a worker: both calls block, so they need a thread of their own
//! (`worker::block_aside`).

use crate::sys;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, netdevice};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

/// The kernel's header before each frame (`struct virtio_net_hdr`): it tells which checksums are not filled in and
/// which frames are not split yet, as between virtual interfaces.
pub const NOTE: usize = 10;
/// The longest frame: 64 KiB before it is split, and its headers.
pub const FRAME_MAX: usize = NOTE + (64 << 10) + 256;
/// Bytes that may wait in the kernel.
const WAITING_MAX: i32 = 16 << 20;

/// An interface's frames. Needs CAP_NET_RAW.
#[derive(Debug)]
pub struct Frames(File);

impl Frames {
    /// The frames that arrive at an interface of this network namespace, by its name.
    pub fn open(interface: &str) -> io::Result<Frames> {
        // Without a protocol, the socket receives nothing before it is bound.
        let fd = net::socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let index = netdevice::name_to_index(&fd, interface)?;
        sys::keep_frames_whole(&fd)?;
        // Without CAP_NET_ADMIN there is less room, and more frames are lost, as on a network.
        let _ = sys::receive_room(&fd, WAITING_MAX);
        sys::bind_frames(&fd, index)?;
        Ok(Frames(File::from(fd)))
    }

    /// Receives the next frame into a buffer of [`FRAME_MAX`] bytes; returns its length.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match (&self.0).read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    /// Frames that arrived since the last call and that the kernel dropped, because too many waited.
    pub fn dropped(&self) -> u64 {
        sys::dropped_frames(self.0.as_fd()).map_or(0, u64::from)
    }

    /// Sends a frame as it was received.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        (&self.0).write(frame).map(drop)
    }
}
