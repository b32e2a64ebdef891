/* One hostile process, which does as an unprivileged user what could harm a privileged reader.
 *
 *     crowd KIND DIRECTORY UID
 *
 * DIRECTORY belongs to UID and becomes the working directory. The process maps DIRECTORY/lib/server/libjvm.so, so that it
 * looks like a JVM from outside, prints READY, and goes on until it is killed or its parent ends.
 *
 *   fifo      "release" is a FIFO in every directory where a JDK may have it
 *   link      "release" is a chain of symbolic links that ends at a file which only root may read
 *   truncate  the mapped library is truncated and restored all the time
 *   fork      children that look like JVMs come and go
 *   exec      the process replaces itself again and again
 *   map       mappings appear, split and vanish
 *   thread    threads with escape sequences in their names come and go
 *   flood     answers the attach protocol with bytes without end
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY "lib/server/libjvm.so"
#define LIBRARY_BYTES (64 << 10)
#define PAUSE_US 200000 /* 200 of these share two cores with the reader */

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void become(const char *uid_text) {
    uid_t uid = (uid_t)strtoul(uid_text, NULL, 10);
    if (geteuid() != 0) return; /* an exec of ourselves */
    /* A JVM that was killed leaves its socket, which may be root's, and pids come again. */
    char socket[64];
    snprintf(socket, sizeof socket, "/tmp/.java_pid%d", getpid());
    unlink(socket);
    if (setgroups(0, NULL) || setgid(uid) || setuid(uid)) fail("setuid");
    /* Otherwise /proc/PID belongs to root after the change, and the process would be no other user's. */
    prctl(PR_SET_DUMPABLE, 1);
}

static void make_library(void) {
    if (mkdir("lib", 0755) && errno != EEXIST) fail("lib");
    if (mkdir("lib/server", 0755) && errno != EEXIST) fail("lib/server");
    int file = open(LIBRARY, O_RDWR | O_CREAT, 0755);
    if (file < 0 || ftruncate(file, LIBRARY_BYTES)) fail(LIBRARY);
    /* The head of an ELF file whose tables claim to lie far outside. */
    unsigned char head[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    memset(head + 16, 0xff, sizeof head - 16);
    head[16] = 3, head[17] = 0, head[18] = 62, head[19] = 0;
    if (pwrite(file, head, sizeof head, 0) != sizeof head) fail("write");
    close(file);
}

static void map_library(void) {
    int file = open(LIBRARY, O_RDONLY);
    if (file < 0 || mmap(NULL, LIBRARY_BYTES, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED) fail("mmap");
    close(file);
}

static void ready(void) {
    printf("READY %d\n", getpid());
    fflush(stdout);
}

static void rest(void) { usleep(PAUSE_US); }

static void fifo(void) {
    const char *places[] = {"release", "lib/release", "lib/server/release"};
    for (int i = 0; i < 3; i++)
        if (mkfifo(places[i], 0644) && errno != EEXIST) fail(places[i]);
    ready();
    for (;;) pause();
}

static void link_chain(void) {
    char name[32], to[32];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "l%d", i);
        snprintf(to, sizeof to, i ? "l%d" : "/etc/shadow", i - 1);
        if (symlink(to, name) && errno != EEXIST) fail(name);
    }
    if (symlink("l19", "release") && errno != EEXIST) fail("release");
    if (symlink("release", "lib/release") && errno != EEXIST) fail("lib/release");
    ready();
    for (;;) pause();
}

static void truncating(void) {
    ready();
    for (;; usleep(PAUSE_US / 20))
        if (truncate(LIBRARY, 0) || truncate(LIBRARY, LIBRARY_BYTES)) fail("truncate");
}

static void forking(void) {
    signal(SIGCHLD, SIG_IGN);
    ready();
    for (;; rest())
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            usleep(PAUSE_US);
            _exit(0);
        }
}

static void executing(char **argv) {
    if (getenv("AGAIN") == NULL) ready();
    setenv("AGAIN", "1", 1);
    usleep(2 * PAUSE_US);
    execv("/proc/self/exe", argv);
    fail("execv");
}

static void mapping(void) {
    ready();
    enum { PAGES = 400, PAGE = 4096 };
    for (;; rest()) {
        char *at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) continue;
        memset(at, 1, PAGES * PAGE);
        for (int i = 0; i < PAGES; i += 2) mprotect(at + i * PAGE, PAGE, PROT_READ);
        munmap(at, PAGES * PAGE);
    }
}

static void *named(void *unused) {
    (void)unused;
    prctl(PR_SET_NAME, "\x1b]0;x\x07\xe2\x80\xae\x9b");
    usleep(PAUSE_US);
    return NULL;
}

static void threading(void) {
    ready();
    for (;; rest()) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, named, NULL) == 0) pthread_detach(thread);
    }
}

static void ignore(int number) { (void)number; }

static void flooding(void) {
    struct sigaction catch = {.sa_handler = ignore, .sa_flags = SA_RESTART};
    sigaction(SIGQUIT, &catch, NULL);
    signal(SIGPIPE, SIG_IGN);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "/tmp/.java_pid%d", getpid());
    unlink(name.sun_path);
    int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (door < 0 || bind(door, (struct sockaddr *)&name, sizeof name) || listen(door, 16)) fail("socket");
    chmod(name.sun_path, 0600);
    static char bytes[1 << 16];
    memset(bytes, '\x1b', sizeof bytes);
    memcpy(bytes, "0\n", 2);
    ready();
    for (;;) {
        int guest = accept(door, NULL, NULL);
        if (guest < 0) continue;
        while (write(guest, bytes, sizeof bytes) > 0) usleep(PAUSE_US / 200);
        close(guest);
    }
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: crowd KIND DIRECTORY UID\n");
        return 2;
    }
    const char *kind = argv[1];
    become(argv[3]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (chdir(argv[2])) fail(argv[2]);
    make_library();
    map_library();
    if (!strcmp(kind, "fifo")) fifo();
    if (!strcmp(kind, "link")) link_chain();
    if (!strcmp(kind, "truncate")) truncating();
    if (!strcmp(kind, "fork")) forking();
    if (!strcmp(kind, "exec")) executing(argv);
    if (!strcmp(kind, "map")) mapping();
    if (!strcmp(kind, "thread")) threading();
    if (!strcmp(kind, "flood")) flooding();
    fprintf(stderr, "unknown kind %s\n", kind);
    return 2;
}
