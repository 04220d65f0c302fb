//! `host`: the machine's limits for this process (CPUs, file descriptors), and the use by its threads.
//!
//! Everything is read from files below a root directory (`/` in production, a made-up tree in tests) and never
//! written. A file that is missing or unreadable means "no limit known", never an error: weir also runs on kernels
//! without cgroups.
//!
//! - `cpu`, `limits`, `unit`, `pam`: what the machine allows: CPUs, open files, and where a limit comes from
//! - `strip`, `machine`, `process`, `thread`, `vm`: what is used: CPU time, pressure, memory
//! - `tcp`, `sockets`, `ends`, `listen`, `listeners`: sockets and the processes that hold them
//! - `running`, `programs`, `pools`, `place`: processes; pools of application servers; where a process's threads are
//! - `files`: reads the kernel's small files
#![forbid(unsafe_code)]

mod cpu;
mod ends;
mod files;
mod limits;
mod listen;
mod listeners;
mod machine;
mod pam;
mod place;
mod pools;
mod process;
mod programs;
mod running;
mod sockets;
mod strip;
mod tcp;
mod thread;
#[cfg(test)]
mod tree;
mod unit;
mod vm;

pub use cpu::{
    OwnGroup, allowed_cpus, allowed_cpus_of_process, allowed_cpus_under, effective_cpus, effective_cpus_of,
    effective_cpus_under, own_group_under, throttling_under,
};
pub use ends::{Ends, ends_of, peers_of};
pub use files::Files;
pub use limits::{FileLimit, file_limit, file_limit_of, file_limit_under};
pub use listen::{listening_under, listens_of};
pub use listeners::{Listeners, listeners_under};
pub use machine::{CPUS_MAX, CpuTime, TICK, cpu_times, cpu_times_under, worked};
pub use pam::{PamLimit, pam_limits_under};
pub use place::{places_of, places_under};
pub use pools::{Pool, pools_under};
pub use process::{
    FamilyCpu, Member, PROCESSES_MAX, family, family_cpu, family_cpu_under, family_under, members_under, number_inside,
    others_cpu, started_ticks,
};
pub use programs::{Program, Seen, programs, seen_under};
pub use running::{Process, node_processes_under, processes_under};
pub use sockets::{
    PortRest, TIME_WAIT_MS, local_ports, local_ports_under, localhost_is_dual_under, open_files, port_rest_under,
    sysctl_under, tcp_sockets_under, waiting_sockets_under,
};
pub use strip::{
    CpuKinds, Quota, ThreadTimes, cpu_kinds_under, listen_overflows_under, load_under, memory_limit_under,
    memory_under, pressure_under, quota_of_process, quota_under, resident_under, retransmitted_under, stalled_under,
    thread_times_of, thread_times_under,
};
pub use tcp::{
    HeldPorts, PEERS_MAX, SOCKETS_MAX, SocketCounts, asking_names, counters_of, devices_of, link_speeds_under,
    links_under, local_port_range, sockets_of,
};
pub use thread::{THREADS_MAX, ThreadCpu, own_cpu, own_thread, threads, threads_under};
pub use unit::{Unit, service_under, unit_under};
pub use vm::{Vm, vm_under};
