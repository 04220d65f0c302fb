/* A library for LD_PRELOAD. In a process whose user is nobody:
 *
 * - With OUTSIDE_FILE, the first thread makes system calls that a server has no use for, and writes a line for each to stderr:
 *   call NAME RESULT, where the result is 0 or the number of the error.
 * - With HANG_FILE, a worker that asks for the local time waits while the file exists: an answer with $time_local hangs. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NOBODY 65534

struct start {
    void *(*run)(void *);
    void *argument;
};

static void say(const char *name, long result) {
    char line[200];
    int length = snprintf(line, sizeof line, "call %s %d\n", name, result < 0 ? errno : 0);
    if (write(2, line, length) < 0)
        abort();
}

static void calls(void) {
    pid_t parent = getppid();
    char path[200], byte;
    struct iovec here = {&byte, 1}, there = {(void *)calls, 1};

    say("read-passwd", open("/etc/passwd", O_RDONLY));
    say("read-outside", open(getenv("OUTSIDE_FILE"), O_RDONLY));
    say("read-root", open("/root", O_RDONLY | O_DIRECTORY));
    snprintf(path, sizeof path, "/proc/%d/mem", parent);
    say("read-memory", open(path, O_RDONLY));
    snprintf(path, sizeof path, "%s.new", getenv("OUTSIDE_FILE"));
    say("write-outside", open(path, O_WRONLY | O_CREAT, 0600));
    say("write-tmp", open("/tmp/weir-probe", O_WRONLY | O_CREAT, 0600));
    say("link-tmp", symlink("/etc", "/tmp/weir-probe-link"));
    say("signal", kill(parent, SIGCONT));
    say("signal-thread", syscall(SYS_tgkill, parent, parent, SIGCONT));
    say("signal-all", kill(-1, 0));
    say("trace", ptrace(PTRACE_ATTACH, parent, 0, 0));
    say("trace-read", process_vm_readv(parent, &here, 1, &there, 1, 0));
    say("program", execl("/bin/true", "true", NULL));
    say("process", syscall(SYS_fork));
    say("user", setresuid(0, 0, 0));
    say("namespace", unshare(CLONE_NEWUSER));
    say("mount", mount("none", "/mnt", "tmpfs", 0, NULL));
    say("root", chroot("/"));
    say("packets", socket(AF_PACKET, SOCK_RAW, 0));
    say("kernel-keys", syscall(SYS_keyctl, 0, 0, 0, 0, 0));
    say("kernel-programs", syscall(SYS_bpf, 0, NULL, 0));
    say("kernel-rings", syscall(SYS_io_uring_setup, 1, NULL));
    say("kernel-events", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
    say("faults", syscall(SYS_userfaultfd, 0));
    say("reboot", syscall(SYS_reboot, 0, 0, 0, NULL));
    say("end", 0);
}

static void *begin(void *start) {
    static atomic_flag is_done = ATOMIC_FLAG_INIT;
    struct start own = *(struct start *)start;
    free(start);
    if (getuid() == NOBODY && getenv("OUTSIDE_FILE") && !atomic_flag_test_and_set(&is_done))
        calls();
    return own.run(own.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    struct start *start = malloc(sizeof *start);
    *start = (struct start){run, argument};
    return create(thread, attributes, begin, start);
}

struct tm *localtime_r(const time_t *time, struct tm *result) {
    struct tm *(*ask)(const time_t *, struct tm *) = dlsym(RTLD_NEXT, "localtime_r");
    const char *file = getenv("HANG_FILE");
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    while (file && getuid() == NOBODY && strncmp(name, "worker", 6) == 0 && access(file, F_OK) == 0)
        usleep(1000);
    return ask(time, result);
}
