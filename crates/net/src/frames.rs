//! Whole frames of one network interface, taken and given: what a lab's delay is made of.
//!
//! Not for the data path, and not of a worker: both calls wait, on a thread of their own (`worker::block_aside`).

use crate::sys;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, netdevice};
use std::fs::File;
use std::io::{self, Read, Write};

/// The kernel's note before each frame (`struct virtio_net_hdr`): what of it is not filled in or cut up yet, as between interfaces
/// that are no hardware.
const NOTE: usize = 10;
/// No frame is longer: 64 KiB before they are cut up, and their heads.
pub const FRAME_MAX: usize = NOTE + (64 << 10) + 256;
/// What may wait in the kernel, bytes.
const WAITING_MAX: i32 = 16 << 20;

/// An interface's frames. Needs CAP_NET_RAW.
#[derive(Debug)]
pub struct Frames(File);

impl Frames {
    /// Those that come in at an interface of this network, by its name.
    pub fn open(interface: &str) -> io::Result<Frames> {
        // Without a protocol nothing arrives before it is bound.
        let fd = net::socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let index = netdevice::name_to_index(&fd, interface)?;
        sys::keep_frames_whole(&fd)?;
        // Without CAP_NET_ADMIN there is less room; then more is lost, as on a network.
        let _ = sys::receive_room(&fd, WAITING_MAX);
        sys::bind_frames(&fd, index)?;
        Ok(Frames(File::from(fd)))
    }

    /// The next one, into a buffer of [`FRAME_MAX`] bytes; how long it is.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match (&self.0).read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    /// Sends one as it was received.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        (&self.0).write(frame).map(drop)
    }
}
