//! The counters of vmstat(8): tasks, memory, swap, disks, interrupts.

use super::files::Files;
use super::strip::figure;

/// The kernel's counters at one instant. Sizes are in bytes, the other figures count since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vm {
    /// Tasks that run or wait for a CPU.
    pub running: u64,
    /// Tasks that wait for a disk or another device.
    pub blocked: u64,
    /// Swap in use.
    pub swapped: u64,
    /// Memory that nothing uses.
    pub free: u64,
    /// Buffers of the kernel.
    pub buffers: u64,
    /// The page cache, and kernel memory that can be reclaimed.
    pub cached: u64,
    /// Bytes read from swap.
    pub swap_in: u64,
    /// Bytes written to swap.
    pub swap_out: u64,
    /// Bytes read from block devices.
    pub blocks_in: u64,
    /// Bytes written to block devices.
    pub blocks_out: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Switches of a CPU from one task to another.
    pub switches: u64,
}

/// The size of a page in `/proc/vmstat`, as far as swap is concerned.
const PAGE_BYTES: u64 = 4096;

/// Reads the counters; `None` if the kernel's files are not there.
pub fn vm_under(files: &Files) -> Option<Vm> {
    let stat = files.text("proc/stat")?;
    let pages = files.text("proc/vmstat").unwrap_or_default();
    let memory = files.text("proc/meminfo").unwrap_or_default();
    let kib = |name| figure(&memory, name) << 10;
    Some(Vm {
        running: figure(&stat, "procs_running"),
        blocked: figure(&stat, "procs_blocked"),
        swapped: kib("SwapTotal").saturating_sub(kib("SwapFree")),
        free: kib("MemFree"),
        buffers: kib("Buffers"),
        cached: kib("Cached") + kib("SReclaimable"),
        swap_in: figure(&pages, "pswpin") * PAGE_BYTES,
        swap_out: figure(&pages, "pswpout") * PAGE_BYTES,
        // These two count kibibytes, unlike their names.
        blocks_in: figure(&pages, "pgpgin") << 10,
        blocks_out: figure(&pages, "pgpgout") << 10,
        interrupts: figure(&stat, "intr"),
        switches: figure(&stat, "ctxt"),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::tree;

    #[test]
    fn counters_are_read_by_name() {
        let root = tree::made_up(&[
            ("proc/stat", "cpu  1 2\nintr 900 1 2\nctxt 70\nprocs_running 3\nprocs_blocked 2\n"),
            ("proc/vmstat", "pgpgin 5\npgpgout 6\npswpin 1\npswpout 2\n"),
            (
                "proc/meminfo",
                "MemTotal: 9 kB\nMemFree:  4 kB\nBuffers: 1 kB\nCached: 2 kB\nSwapCached: 7 kB\n\
                 SwapTotal: 8 kB\nSwapFree: 5 kB\nSReclaimable: 1 kB\n",
            ),
        ]);
        let expected = Vm {
            running: 3,
            blocked: 2,
            swapped: 3 << 10,
            free: 4 << 10,
            buffers: 1 << 10,
            cached: 3 << 10,
            swap_in: 4096,
            swap_out: 8192,
            blocks_in: 5 << 10,
            blocks_out: 6 << 10,
            interrupts: 900,
            switches: 70,
        };
        assert_eq!(vm_under(&Files::under(root.path())), Some(expected));
        assert_eq!(vm_under(&Files::under(Path::new("/nowhere"))), None);
    }
}
