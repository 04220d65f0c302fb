// SPDX-License-Identifier: MIT OR GPL-2.0
//
// Where the threads of a stack wait, seen from the scheduler.
//
//   sched_switch, out ─► what the thread waits for: its system call and arguments, the socket behind a descriptor
//   sched_waking      ─► which thread ends its wait
//   sched_wakeup      ─► from here on it waits for a CPU
//   sched_switch, in  ─► both times are added to `totals`
//   tcp, unix sockets ─► the time from what was sent on a connection to what came back, added to `peers`
//
// Only the processes of `wanted` and their descendants are accounted; of everybody else a switch costs a look-up. Every map has a
// bound, and what does not fit is counted. Field offsets are relocated by the loader from the kernel's own BTF. `build.sh` makes the
// object; crates/lab/src/watch/inside/bpf.rs loads it and has the same layouts.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define APART static __attribute__((noinline))
#define KERNEL __attribute__((preserve_access_index))

// include/uapi/linux/bpf.h: numbers of helpers, kinds of maps.
static void *(*const map_find)(void *map, const void *key) = (void *)1;
static long (*const map_put)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_drop)(void *map, const void *key) = (void *)3;
static u64 (*const now_ns)(void) = (void *)5;
static long (*const read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*const read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const read_text)(void *to, u32 size, const void *from) = (void *)115;
static struct task_struct *(*const current_task)(void) = (void *)158;
static long (*const registers_of)(struct task_struct *task) = (void *)175;
#define HASH 1
#define ARRAY 2
#define LRU_HASH 9
#define ONLY_NEW 1

// What of the kernel's structures is used.
struct pid_namespace;
struct upid {
	int nr;
	struct pid_namespace *ns;
} KERNEL;
struct ns_common {
	unsigned int inum;
} KERNEL;
struct pid_namespace {
	struct ns_common ns;
} KERNEL;
struct pid {
	unsigned int level;
	struct upid numbers[1];
} KERNEL;
struct inode {
	u16 i_mode;
} KERNEL;
struct file {
	struct inode *f_inode;
	void *private_data;
} KERNEL;
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} KERNEL;
struct files_struct {
	struct fdtable *fdt;
} KERNEL;
struct task_struct {
	int pid;
	int tgid;
	unsigned int __state;
	unsigned in_iowait : 1;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct files_struct *files;
} KERNEL;
struct in6_addr {
	u8 bytes[16];
};
struct sock_common {
	u32 skc_daddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	u8 skc_state;
	struct in6_addr skc_v6_daddr;
} KERNEL;
struct sock {
	struct sock_common __sk_common;
} KERNEL;
struct socket {
	struct sock *sk;
} KERNEL;
struct sockaddr_un {
	u16 sun_family;
	char sun_path[108];
};
struct unix_address {
	int len;
	struct sockaddr_un name[1];
} KERNEL;
struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
} KERNEL;
// x86-64 (arch/x86/include/asm/ptrace.h).
struct pt_regs {
	unsigned long r10;
	unsigned long orig_ax;
	unsigned long di;
	unsigned long si;
	unsigned long dx;
} KERNEL;

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define TYPE_MASK 0xf000
#define TYPE_SOCKET 0xc000
#define TYPE_PIPE 0x1000
#define TYPE_FILE 0x8000
#define TYPE_DEVICE 0x6000
#define TCP_CLOSE 7
#define TCP_FIN_WAIT1 4
#define TASK_D 2
#define TASK_DEAD 0x80
#define MSG_PEEK 2

// How a system call is read; the table is the loader's.
enum { CALL_OTHER, CALL_FD, CALL_FUTEX, CALL_POLL, CALL_EVENTS };
// What a thread did.
enum { WAITS = 1, WAITS_DISK, WAITS_CPU, RAN };
// Who ended a wait at a futex: nobody of the process, a thread of the process, a thread of it that has a request.
enum { BY_NOBODY, BY_THREAD, BY_REQUEST };
// What is behind a descriptor.
enum { BEHIND_NOTHING, BEHIND_INET, BEHIND_UNIX, BEHIND_PIPE, BEHIND_FILE, BEHIND_OTHER };
// Where a thread stands with a request.
enum { PHASE_NONE, PHASE_ASKED, PHASE_ANSWERED };

#define NAME_WORDS 5

// What is waited for. A futex: its address. A socket: ports, state, and the peer's address or the path.
struct object {
	u32 behind;
	u16 local;
	u16 remote;
	u8 family;
	u8 state;
	u8 is_own; // the path is this socket's own: it was accepted
	u8 is_iowait;
	u32 op; // of a futex: the operation; bit 8: the value waited on is 2; bit 9: the wait has a timeout
	u64 address;
	u64 name[NAME_WORDS];
};

// Everything is set, also what pads.
struct key {
	u32 label;
	u32 thread;
	u32 process;
	s32 call;
	u8 did;
	u8 phase;
	u8 by;
	u8 zero;
	u32 zero_too;
	struct object object;
};

struct total {
	u64 ns;
	u64 count;
	u64 most_ns;
};

struct thread {
	u64 since; // switched out
	u64 woken;
	u64 on;	   // switched in
	u32 label;
	u32 number; // in the namespace of the lab
	u32 process;
	u32 phase;
	struct key key;
};

struct connection {
	u64 sent; // and nothing came since
	u64 came; // and nothing was sent since
	u32 label;
	u32 is_in; // a client's
	struct object object;
};

struct peer_key {
	u32 label;
	u32 is_in;
	struct object object; // without the local port
};

struct peer {
	u64 ns;
	u64 count;
	u64 most_ns;
	u64 connections;
};

struct map {
	u32 type;
	u32 key_size;
	u32 value_size;
	u32 max_entries;
	u32 flags;
};
#define MAP(name, kind, key, value, most) struct map name SEC("maps") = {kind, key, value, most, 0}

// By the lab's number of a process: its label.
MAP(wanted, HASH, 4, 4, 4096);
// By the machine's number of a process: its label and its number in the lab; 0 of all others.
MAP(known, LRU_HASH, 4, 8, 16384);
// By the machine's number of a thread.
MAP(threads, HASH, 4, sizeof(struct thread), 16384);
MAP(totals, HASH, sizeof(struct key), sizeof(struct total), 65536);
MAP(connections, LRU_HASH, 8, sizeof(struct connection), 16384);
MAP(peers, HASH, sizeof(struct peer_key), sizeof(struct peer), 4096);
// By label and port: what a process listens on.
MAP(listens, HASH, 8, 4, 4096);
// By the number of a system call.
MAP(calls, ARRAY, 4, 4, 512);
// 0: the inode of the lab's process namespace. 1: what did not fit.
MAP(notes, ARRAY, 4, 8, 4);

#define READ(to, from) read_kernel(&(to), sizeof(to), __builtin_preserve_access_index(&(from)))

INLINE void note(u32 at)
{
	u64 *count = map_find(&notes, &at);
	if (count)
		__sync_fetch_and_add(count, 1);
}

// A task's number in the lab's process namespace; 0 if it is in none of those.
APART u32 number_of(struct task_struct *task)
{
	u32 zero = 0;
	u64 *inode = map_find(&notes, &zero);
	struct pid *pid = 0;
	u32 level = 0;
	if (!inode || READ(pid, task->thread_pid) || !pid || READ(level, pid->level))
		return 0;
	void *numbers = __builtin_preserve_access_index(&pid->numbers);
#pragma unroll
	for (u32 at = 0; at < 8; at++) {
		struct pid_namespace *ns = 0;
		u32 inum = 0, nr = 0;
		if (at > level)
			break;
		struct upid *one = numbers + at * 16;
		if (READ(ns, one->ns) || !ns || READ(inum, ns->ns.inum))
			break;
		if (inum == (u32)*inode) {
			READ(nr, one->nr);
			return nr;
		}
	}
	return 0;
}

// The label of a task's process and its number: high and low half; 0 of one that is not accounted.
INLINE u64 label_of(struct task_struct *task, u32 tgid)
{
	u64 *seen = map_find(&known, &tgid), found = 0;
	if (seen)
		return *seen;
	struct task_struct *leader = 0;
	if (READ(leader, task->group_leader) || !leader)
		return 0;
	u32 number = number_of(leader);
	u32 *label = number ? map_find(&wanted, &number) : 0;
	if (label)
		found = (u64)*label << 32 | number;
	map_put(&known, &tgid, &found, 0);
	return found;
}

APART void add(struct key *key, u64 ns)
{
	struct total *total = map_find(&totals, key);
	if (total) {
		// A key has one thread, and a thread one CPU.
		total->ns += ns;
		total->count += 1;
		if (ns > total->most_ns)
			total->most_ns = ns;
		return;
	}
	struct total first = {ns, 1, ns};
	if (map_put(&totals, key, &first, ONLY_NEW))
		note(1);
}

INLINE void add_plain(struct thread *thread, u8 did, u64 ns)
{
	struct key key = {};
	key.label = thread->label;
	key.thread = thread->number;
	key.process = thread->process;
	key.call = -1;
	key.did = did;
	key.phase = thread->phase;
	add(&key, ns);
}

// Who is at the other end of a socket.
APART void describe_socket(struct sock *sk, struct object *object)
{
	u16 family = 0, port = 0;
	READ(family, sk->__sk_common.skc_family);
	object->family = family;
	if (family == AF_INET || family == AF_INET6) {
		object->behind = BEHIND_INET;
		READ(object->state, sk->__sk_common.skc_state);
		READ(object->local, sk->__sk_common.skc_num);
		READ(port, sk->__sk_common.skc_dport);
		object->remote = __builtin_bswap16(port);
		if (family == AF_INET) {
			u32 address = 0;
			READ(address, sk->__sk_common.skc_daddr);
			object->name[0] = address;
		} else {
			read_kernel(object->name, 16, __builtin_preserve_access_index(&sk->__sk_common.skc_v6_daddr));
		}
		return;
	}
	if (family != AF_UNIX) {
		object->behind = BEHIND_OTHER;
		return;
	}
	object->behind = BEHIND_UNIX;
	READ(object->state, sk->__sk_common.skc_state);
	struct unix_sock *un = (void *)sk, *peer = 0;
	struct unix_address *address = 0;
	if (!READ(address, un->addr) && address) {
		object->is_own = 1;
	} else if (!READ(peer, un->peer) && peer) {
		READ(address, peer->addr);
	}
	if (address) {
		void *name = __builtin_preserve_access_index(&address->name);
		int length = 0;
		READ(length, address->len);
		// A path ends with a zero. An abstract name begins with one, ends where its length says, and is told as `@`.
		if (length > 2 && read_text(object->name, 8 * NAME_WORDS, name + 2) <= 1)
			object->name[0] = '@';
	}
}

INLINE void describe_fd(struct task_struct *task, u32 fd, struct object *object)
{
	struct files_struct *files = 0;
	struct fdtable *table = 0;
	struct file **list = 0, *file = 0;
	struct inode *inode = 0;
	struct socket *socket = 0;
	struct sock *sk = 0;
	u32 most = 0;
	u16 mode = 0;
	if (READ(files, task->files) || !files || READ(table, files->fdt) || !table)
		return;
	if (READ(most, table->max_fds) || fd >= most || READ(list, table->fd) || !list)
		return;
	if (read_kernel(&file, sizeof(file), list + fd) || !file || READ(inode, file->f_inode) || !inode)
		return;
	if (READ(mode, inode->i_mode))
		return;
	switch (mode & TYPE_MASK) {
	case TYPE_SOCKET:
		if (!READ(socket, file->private_data) && socket && !READ(sk, socket->sk) && sk)
			describe_socket(sk, object);
		return;
	case TYPE_PIPE:
		object->behind = BEHIND_PIPE;
		return;
	case TYPE_FILE:
	case TYPE_DEVICE:
		object->behind = BEHIND_FILE;
		return;
	default:
		object->behind = BEHIND_OTHER;
	}
}

// Whether a connection is a client's: it was accepted on a port, or a path, that this process listens on.
INLINE u32 is_clients(u32 label, struct object *object)
{
	u64 port = (u64)label << 32 | object->local;
	if (object->behind == BEHIND_UNIX)
		return object->is_own;
	return map_find(&listens, &port) != 0;
}

// What the current thread waits for, as it is switched out.
INLINE void describe(struct task_struct *task, struct thread *thread, u32 state)
{
	struct key *key = &thread->key;
	__builtin_memset(key, 0, sizeof(*key));
	key->label = thread->label;
	key->thread = thread->number;
	key->process = thread->process;
	key->did = state & TASK_D ? WAITS_DISK : WAITS;
	struct pt_regs *regs = (void *)registers_of(task);
	unsigned long call = 0, first = 0, second = 0, third = 0, fourth = 0;
	READ(call, regs->orig_ax);
	READ(first, regs->di);
	READ(second, regs->si);
	key->call = (s32)call;
	if (state & TASK_D) {
		u32 offset = __builtin_preserve_field_info(task->in_iowait, 0);
		u64 left = __builtin_preserve_field_info(task->in_iowait, 4);
		u64 size = __builtin_preserve_field_info(task->in_iowait, 1), word = 0;
		if (size == 8)
			read_kernel(&word, 8, (void *)task + offset);
		else if (size == 4)
			read_kernel(&word, 4, (void *)task + offset);
		else
			read_kernel(&word, 1, (void *)task + offset);
		key->object.is_iowait = (word << left) >> 63;
	}
	u32 number = (u32)call;
	u32 *kind = map_find(&calls, &number);
	switch (kind ? *kind : CALL_OTHER) {
	case CALL_FD:
		describe_fd(task, (u32)first, &key->object);
		break;
	case CALL_FUTEX:
		READ(third, regs->dx);
		key->object.address = first;
		READ(fourth, regs->r10);
		key->object.op = (second & 0x7f) | ((u32)third == 2) << 8 | (fourth != 0) << 9;
		break;
	case CALL_POLL:
		if (second == 1) {
			s32 fd = -1;
			if (!read_user(&fd, sizeof(fd), (void *)first) && fd >= 0)
				describe_fd(task, fd, &key->object);
		}
		break;
	case CALL_EVENTS:
		// An event loop has handed on what it read.
		thread->phase = PHASE_NONE;
		break;
	}
	if (key->object.behind == BEHIND_INET || key->object.behind == BEHIND_UNIX) {
		if (is_clients(thread->label, &key->object)) {
			key->object.is_own = 1;
			// Which client it is matters to nobody, and there may be many.
			key->object.remote = 0;
			key->object.name[0] = 0;
			key->object.name[1] = 0;
			// A whole request may take several reads: only after an answer is it the next that is waited for.
			if (thread->phase == PHASE_ANSWERED)
				thread->phase = PHASE_NONE;
		}
	}
	key->phase = thread->phase;
}

// A thread that is accounted; made where it is new.
INLINE struct thread *thread_of(struct task_struct *task, u32 number, u32 tgid)
{
	u64 label = label_of(task, tgid);
	if (!label)
		return 0;
	struct thread *found = map_find(&threads, &number);
	if (found)
		return found;
	struct thread first = {};
	first.label = label >> 32;
	first.process = (u32)label;
	first.number = number_of(task);
	if (map_put(&threads, &number, &first, ONLY_NEW))
		note(1);
	return map_find(&threads, &number);
}

INLINE void account_wait(struct thread *thread, u64 now)
{
	u64 until = thread->woken >= thread->since && thread->woken ? thread->woken : now;
	if (thread->key.did != WAITS_CPU)
		add(&thread->key, until - thread->since);
	if (now > until)
		add_plain(thread, WAITS_CPU, now - until);
}

// bool preempt, struct task_struct *prev, struct task_struct *next
SEC("tp_btf/sched_switch")
int switched(u64 *ctx)
{
	struct task_struct *from = (void *)ctx[1], *to = (void *)ctx[2];
	u64 now = now_ns();
	u32 from_number = from->pid, to_number = to->pid;
	struct thread *thread;
	u32 state = from->__state;
	if (from_number && state & TASK_DEAD) {
		// It never comes back, and its place is wanted.
		map_drop(&threads, &from_number);
	} else if (from_number && (thread = thread_of(from, from_number, from->tgid))) {
		if (thread->on && now > thread->on)
			add_plain(thread, RAN, now - thread->on);
		thread->on = 0;
		thread->since = now;
		if (ctx[0] & 1 || !state) {
			thread->woken = now;
			thread->key.did = WAITS_CPU;
		} else {
			thread->woken = 0;
			describe(from, thread, state);
		}
	}
	if (to_number && (thread = thread_of(to, to_number, to->tgid))) {
		if (thread->since)
			account_wait(thread, now);
		thread->since = 0;
		thread->on = now;
	}
	return 0;
}

// Whoever wakes a thread runs here. `sched_wakeup` may run on the CPU of the woken thread instead.
SEC("tp_btf/sched_waking")
int waking(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0], *own = current_task();
	u32 number = task->pid, own_number = own->pid;
	struct thread *thread = map_find(&threads, &number);
	if (!thread || !thread->since || thread->woken)
		return 0;
	struct thread *waker = map_find(&threads, &own_number);
	if (!waker || waker->label != thread->label)
		return 0;
	// An interrupt also runs as the current thread. Then the thread is in no call to a futex.
	struct pt_regs *regs = (void *)registers_of(own);
	unsigned long call = 0;
	READ(call, regs->orig_ax);
	u32 at = (u32)call;
	u32 *kind = map_find(&calls, &at);
	if (kind && *kind == CALL_FUTEX)
		thread->key.by = waker->phase == PHASE_NONE ? BY_THREAD : BY_REQUEST;
	return 0;
}

SEC("tp_btf/sched_wakeup")
int woken(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 number = task->pid;
	struct thread *thread = map_find(&threads, &number);
	if (thread && thread->since && !thread->woken)
		thread->woken = now_ns();
	return 0;
}

// struct task_struct *parent, struct task_struct *child
SEC("tp_btf/sched_process_fork")
int forked(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	u32 own = child->tgid, from = parent->tgid;
	if (own == from)
		return 0;
	u64 *label = map_find(&known, &from);
	if (label && *label) {
		u32 number = number_of(child);
		u64 found = *label >> 32 << 32 | number;
		map_put(&known, &own, &found, 0);
	} else {
		// Its number may have been somebody else's.
		map_drop(&known, &own);
	}
	return 0;
}

SEC("tp_btf/sched_process_exit")
int ended(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 number = task->pid;
	struct thread *thread = map_find(&threads, &number);
	if (!thread)
		return 0;
	u64 now = now_ns();
	if (thread->on && now > thread->on)
		add_plain(thread, RAN, now - thread->on);
	map_drop(&threads, &number);
	return 0;
}

// Something was sent, or came, on a connection of the current thread.
APART void moved(struct sock *sk, u32 is_sent)
{
	struct task_struct *task = current_task();
	u32 tgid = task->tgid, number = task->pid;
	u64 *label = map_find(&known, &tgid);
	if (!label || !*label)
		return;
	u64 at = (u64)sk, now = now_ns();
	struct connection *one = map_find(&connections, &at);
	u32 is_new = 0;
	// A Unix socket goes without a word, and its memory may be somebody else's by now.
	if (!one || one->label != (u32)(*label >> 32)) {
		struct connection first = {};
		first.label = *label >> 32;
		describe_socket(sk, &first.object);
		first.is_in = is_clients(first.label, &first.object);
		first.object.local = 0;
		first.object.state = 0;
		if (first.is_in) {
			first.object.remote = 0;
			first.object.name[0] = 0;
			first.object.name[1] = 0;
		}
		map_put(&connections, &at, &first, 0);
		one = map_find(&connections, &at);
		is_new = 1;
		if (!one)
			return;
	}
	// A client's: from what came to what was sent. Another's: from what was sent to what came.
	u32 is_begin = one->is_in ? !is_sent : is_sent;
	u64 began = one->is_in ? one->came : one->sent;
	u64 *begin = one->is_in ? &one->came : &one->sent;
	if (is_begin && !began)
		*begin = now;
	if (!is_begin && began)
		*begin = 0;
	u64 ns = !is_begin && began && now > began ? now - began : 0;
	if (ns || is_new) {
		struct peer_key key = {};
		key.label = one->label;
		key.is_in = one->is_in;
		key.object = one->object;
		struct peer *peer = map_find(&peers, &key);
		if (!peer) {
			struct peer first = {};
			map_put(&peers, &key, &first, ONLY_NEW);
			peer = map_find(&peers, &key);
		}
		if (peer) {
			if (ns) {
				__sync_fetch_and_add(&peer->ns, ns);
				__sync_fetch_and_add(&peer->count, 1);
				if (ns > peer->most_ns)
					peer->most_ns = ns;
			}
			if (is_new)
				__sync_fetch_and_add(&peer->connections, 1);
		} else {
			note(1);
		}
	}
	if (!one->is_in)
		return;
	struct thread *thread = map_find(&threads, &number);
	if (thread)
		thread->phase = is_sent ? PHASE_ANSWERED : PHASE_ASKED;
}

// struct sock *sk, int returned, int flags
SEC("tp_btf/sock_send_length")
int sent(u64 *ctx)
{
	if ((s32)ctx[1] > 0)
		moved((void *)ctx[0], 1);
	return 0;
}

// The same.
SEC("tp_btf/sock_recv_length")
int came(u64 *ctx)
{
	if ((s32)ctx[1] > 0 && !(ctx[2] & MSG_PEEK))
		moved((void *)ctx[0], 0);
	return 0;
}

// A connection that is closed waits for nothing. const struct sock *sk, int from, int to
SEC("tp_btf/inet_sock_set_state")
int closed(u64 *ctx)
{
	u64 at = ctx[0];
	int state = (int)ctx[2];
	if (state == TCP_CLOSE || state == TCP_FIN_WAIT1)
		map_drop(&connections, &at);
	return 0;
}

char terms[] SEC("license") = "Dual MIT/GPL";
