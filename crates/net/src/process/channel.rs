//! A socket pair between the keeper and the server: messages of bytes and descriptors.
//!
//! A small message is one packet, so several threads may send at once. A large one begins with packets of descriptors;
//! bytes that do not fit into a packet are in a file in memory, whose descriptor comes last.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::process::Child;
use std::time::Duration;

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, Shutdown, SocketFlags, SocketType, recvmsg, sendmsg, shutdown, socketpair, sockopt,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Bytes of a packet, at most.
const PACKET_BYTES: usize = 32 << 10;
/// Descriptors in a packet, at most; the kernel's own bound is 253.
const PACKET_FILES: usize = 200;
/// Descriptors in a message, at most: more than a configuration has sockets and logs.
const MESSAGE_FILES_MAX: usize = 1 << 20;
/// Bytes of a message in a file, at most: the files that a configuration names are among them.
const MESSAGE_BYTES_MAX: u64 = 1 << 30;

/// The first byte of a packet: descriptors of a message whose end follows.
const FILES: u8 = b'f';
/// The bytes of a message.
const BYTES: u8 = b'b';
/// The bytes of a message are in its last descriptor.
const IN_FILE: u8 = b'm';

/// The bytes and the descriptors of a message.
pub type ChannelMessage = (Vec<u8>, Vec<OwnedFd>);

/// Messages that a process sent before its end, and that are read after it, at most.
const LAST_WORDS_MAX: usize = 64;

/// The life of a child process.
#[derive(Debug)]
pub struct Life {
    /// Readable once it has ended; a kernel before Linux 5.3 has no such descriptor.
    process: Option<OwnedFd>,
    last_words: Cell<usize>,
}

impl Life {
    /// The life of this child.
    pub fn of(child: &Child) -> Life {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Life { process, last_words: Cell::new(LAST_WORDS_MAX) }
    }
}

/// One end.
#[derive(Debug)]
pub struct Channel(OwnedFd);

impl Channel {
    /// Both ends.
    ///
    /// # Errors
    /// The kernel has no more descriptors.
    pub fn pair() -> io::Result<(Channel, Channel)> {
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Channel(one), Channel(other)))
    }

    /// The end that a descriptor is.
    pub(super) fn of(fd: OwnedFd) -> Channel {
        Channel(fd)
    }

    /// The end that a descriptor of another process is, if it is one of a channel.
    fn of_stranger(fd: OwnedFd) -> Option<Channel> {
        let is_channel = sockopt::socket_type(&fd).is_ok_and(|kind| kind == SocketType::SEQPACKET)
            && sockopt::socket_domain(&fd).is_ok_and(|family| family == AddressFamily::UNIX);
        is_channel.then_some(Channel(fd))
    }

    /// The descriptor of this end.
    pub(super) fn into_fd(self) -> OwnedFd {
        self.0
    }

    /// From now on, a message that the other end does not take in this time is an error, and with `receives` also one that
    /// it does not send.
    ///
    /// # Errors
    /// The time is zero.
    pub(super) fn set_patience(&self, patience: Duration, receives: bool) -> io::Result<()> {
        sockopt::set_socket_timeout(&self.0, sockopt::Timeout::Send, Some(patience))?;
        if receives {
            sockopt::set_socket_timeout(&self.0, sockopt::Timeout::Recv, Some(patience))?;
        }
        Ok(())
    }

    /// A second handle of this end.
    ///
    /// # Errors
    /// The kernel has no more descriptors.
    pub fn another(&self) -> io::Result<Channel> {
        self.0.try_clone().map(Channel)
    }

    /// Sends a message, and waits until the other end has room for it.
    ///
    /// # Errors
    /// The other end is closed; the kernel has no more memory.
    pub fn send(&self, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.send_with(bytes, files, SendFlags::NOSIGNAL)
    }

    fn send_with(&self, bytes: &[u8], files: &[BorrowedFd<'_>], flags: SendFlags) -> io::Result<()> {
        let (before, last) = match files.len() {
            ..=PACKET_FILES => (&[][..], files),
            _ => (files, &[][..]),
        };
        for part in before.chunks(PACKET_FILES) {
            self.packet(&[FILES], part, flags)?;
        }
        if bytes.len() < PACKET_BYTES {
            return self.packet(&[&[BYTES], bytes].concat(), last, flags);
        }
        if !last.is_empty() {
            self.packet(&[FILES], last, flags)?;
        }
        let mut file = File::from(memfd_create("weir message", MemfdFlags::CLOEXEC)?);
        file.write_all(bytes)?;
        self.packet(&[IN_FILE], &[file.as_fd()], flags)
    }

    /// Sends an answer without waiting: an end that asked has room for one. An end that has none, or that is no such channel, gets
    /// no answer.
    pub fn answer(&self, bytes: &[u8], files: &[BorrowedFd<'_>]) {
        // A server that does not wait any more needs no answer.
        let _ = self.send_with(bytes, files, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    /// The next message; `None` when the other end is closed.
    ///
    /// # Errors
    /// A packet is none of ours, or a message has more bytes or descriptors than allowed.
    pub fn receive(&self) -> io::Result<Option<ChannelMessage>> {
        let mut files = Vec::new();
        loop {
            let mut bytes = vec![0; PACKET_BYTES];
            let length = self.take(&mut bytes, &mut files)?;
            bytes.truncate(length);
            if files.len() > MESSAGE_FILES_MAX {
                return Err(io::Error::other("a message has too many descriptors"));
            }
            match bytes.first() {
                None => return Ok(None),
                Some(&FILES) => {}
                Some(&BYTES) => return Ok(Some((bytes.split_off(1), files))),
                Some(&IN_FILE) => {
                    let file = files.pop().map(File::from).ok_or_else(|| io::Error::other("a message has no file"))?;
                    return Ok(Some((whole(&file)?, files)));
                }
                Some(_) => return Err(io::Error::other("a packet of an unknown kind")),
            }
        }
    }

    /// The next message, if it is one packet with at most one descriptor, the channel for an answer: weir's keeper takes no
    /// others from its server.
    ///
    /// # Errors
    /// It has more; as [`Channel::receive`].
    pub fn receive_small(&self) -> io::Result<Option<(Vec<u8>, Option<Channel>)>> {
        let mut bytes = vec![0; PACKET_BYTES];
        let mut files = Vec::new();
        let length = self.take(&mut bytes, &mut files)?;
        bytes.truncate(length);
        match bytes.first() {
            None => Ok(None),
            Some(&BYTES) if files.len() < 2 => {
                Ok(Some((bytes.split_off(1), files.pop().and_then(Channel::of_stranger))))
            }
            Some(_) => Err(io::Error::other("a message is not small")),
        }
    }

    /// As [`Channel::receive_small`], and `None` also when the process at the other end has ended: another process may hold a copy
    /// of that end. The last messages of the process come before that.
    ///
    /// # Errors
    /// As [`Channel::receive_small`].
    pub fn receive_while(&self, life: &Life) -> io::Result<Option<(Vec<u8>, Option<Channel>)>> {
        let Some(process) = &life.process else { return self.receive_small() };
        loop {
            let mut ends = [PollFd::new(&self.0, PollFlags::IN), PollFd::new(process, PollFlags::IN)];
            match poll(&mut ends, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let [has_message, has_ended] = ends.map(|end| !end.revents().is_empty());
            if has_ended && life.last_words.replace(life.last_words.get().saturating_sub(1)) == 0 {
                return Ok(None);
            }
            if has_message {
                return self.receive_small();
            }
            if has_ended {
                return Ok(None);
            }
        }
    }

    /// Sends a message with a channel for the answer, and waits for it so long; `None` if the other end gives none.
    ///
    /// # Errors
    /// As [`Channel::send`] and [`Channel::receive`]; the other end gives no answer in this time.
    pub fn call(&self, bytes: &[u8], patience: Duration) -> io::Result<Option<ChannelMessage>> {
        let (here, there) = Channel::pair()?;
        here.set_patience(patience, true)?;
        self.send(bytes, &[there.as_fd()])?;
        drop(there);
        here.receive()
    }

    /// Ends the wait of another thread in [`Channel::receive`]: the channel looks closed to it.
    pub fn close(&self) {
        // An end that is closed already is the aim.
        let _ = shutdown(&self.0, Shutdown::Read);
    }

    fn packet(&self, bytes: &[u8], files: &[BorrowedFd<'_>], flags: SendFlags) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(PACKET_FILES))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(io::Error::other("a packet has too many descriptors"));
        }
        loop {
            match sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, flags) {
                Err(Errno::INTR) => {}
                sent => return Ok(sent.map(drop)?),
            }
        }
    }

    fn take(&self, bytes: &mut [u8], files: &mut Vec<OwnedFd>) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(PACKET_FILES))];
        loop {
            let mut control = RecvAncillaryBuffer::new(&mut space);
            match recvmsg(&self.0, &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => return Ok(0),
                Err(error) => return Err(error.into()),
                Ok(received) => {
                    for message in control.drain() {
                        if let RecvAncillaryMessage::ScmRights(more) = message {
                            files.extend(more);
                        }
                    }
                    return Ok(received.bytes);
                }
            }
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn whole(file: &File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let length = Some(length).filter(|length| *length <= MESSAGE_BYTES_MAX);
    let length = length.and_then(|length| usize::try_from(length).ok());
    let mut bytes = vec![0; length.ok_or_else(|| io::Error::other("a message is too long"))?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bytes_and_descriptors_arrive_in_any_number() {
        let (here, there) = Channel::pair().unwrap();
        let null = File::open("/dev/null").unwrap();
        for (length, count) in [(0, 0), (3, 1), (PACKET_BYTES - 2, 2), (PACKET_BYTES - 1, 0), (1 << 20, 450)] {
            let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let (sent, files) = (bytes.clone(), vec![null.as_fd(); count]);
            std::thread::scope(|scope| {
                scope.spawn(|| here.send(&sent, &files).unwrap());
                let (received, files) = there.receive().unwrap().unwrap();
                assert!(received == bytes, "{length}");
                assert_eq!(files.len(), count);
            });
        }
        drop(here);
        assert!(there.receive().unwrap().is_none());
    }

    mod mutate {
        use super::*;

        /// Packets of another process: each is a message, or an error that ends the reading. Each packet begins with its
        /// length.
        #[test]
        fn packets() {
            let seeds: [&[u8]; 4] = [b"\x05bword", b"\x01f\x06bagain", b"\x01m\x02b!", b"\x01x\x00\x04bend"];
            weir_mutate::mutate(&seeds, &["b", "f", "m", "\0", "\x02b!"], |bytes| {
                for is_small in [true, false] {
                    let (here, there) = Channel::pair().unwrap();
                    let (mut rest, mut sent) = (bytes, 0);
                    while let Some((&length, after)) = rest.split_first() {
                        let (packet, after) = after.split_at(usize::from(length).min(after.len()));
                        here.packet(packet, &[], SendFlags::NOSIGNAL).unwrap();
                        (rest, sent) = (after, sent + 1);
                    }
                    drop(here);
                    let mut received = 0;
                    loop {
                        let message = match is_small {
                            true => there.receive_small().map(|message| message.map(|(bytes, _)| bytes)),
                            false => there.receive().map(|message| message.map(|(bytes, _)| bytes)),
                        };
                        let Ok(Some(message)) = message else { break };
                        assert!(message.len() < bytes.len());
                        received += 1;
                    }
                    assert!(received <= sent);
                }
            });
        }
    }

    #[test]
    fn the_keeper_takes_small_messages_only() {
        let (here, there) = Channel::pair().unwrap();
        here.send(b"word", &[]).unwrap();
        assert_eq!(there.receive_small().unwrap().unwrap().0, b"word");
        let null = File::open("/dev/null").unwrap();
        here.send(b"", &[null.as_fd(), null.as_fd()]).unwrap();
        assert!(there.receive_small().is_err());
        here.send(&vec![0; PACKET_BYTES], &[]).unwrap();
        assert!(there.receive_small().is_err());
    }

    #[test]
    fn the_end_of_a_process_is_seen_though_another_holds_its_channel() {
        let (here, there) = Channel::pair().unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let life = Life::of(&child);
        there.send(b"word", &[]).unwrap();
        assert_eq!(here.receive_while(&life).unwrap().unwrap().0, b"word");
        there.send(b"last word", &[]).unwrap();
        child.kill().unwrap();
        assert_eq!(here.receive_while(&life).unwrap().unwrap().0, b"last word");
        assert!(here.receive_while(&life).unwrap().is_none(), "the channel itself is still open");
        // A process that still holds the channel cannot speak for the dead one without end.
        for _ in 0..LAST_WORDS_MAX {
            there.send(b"more", &[]).unwrap();
            let _ = here.receive_while(&life).unwrap();
        }
        there.send(b"more", &[]).unwrap();
        assert!(here.receive_while(&life).unwrap().is_none());
        child.wait().unwrap();
    }

    #[test]
    fn an_answer_waits_for_nobody() {
        let (here, _there) = Channel::pair().unwrap();
        // The other end takes nothing: the socket is full long before.
        for _ in 0..1_000 {
            here.answer(&[0; PACKET_BYTES / 2], &[]);
        }
        let (near, far) = Channel::pair().unwrap();
        let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        near.send(b"ask", &[stream.as_fd()]).unwrap();
        assert!(far.receive_small().unwrap().unwrap().1.is_none(), "a stream is no channel");
    }

    #[test]
    fn a_call_has_its_own_answer_or_none() {
        let (here, there) = Channel::pair().unwrap();
        let answers = std::thread::spawn(move || {
            for answer in [true, false] {
                let (bytes, channel) = there.receive_small().unwrap().unwrap();
                if answer {
                    channel.unwrap().send(&bytes.repeat(100_000), &[]).unwrap();
                }
            }
        });
        assert_eq!(here.call(b"ab", Duration::from_secs(60)).unwrap().unwrap().0.len(), 200_000);
        assert!(here.call(b"c", Duration::from_secs(60)).unwrap().is_none());
        answers.join().unwrap();
    }

    #[test]
    fn a_wait_can_be_ended() {
        let (here, _there) = Channel::pair().unwrap();
        let same = here.another().unwrap();
        let waits = std::thread::spawn(move || here.receive().unwrap().is_none());
        same.close();
        assert!(waits.join().unwrap());
    }
}
