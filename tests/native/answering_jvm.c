/* A hostile process that looks like a HotSpot JVM: it maps a file called libjvm.so, catches SIGQUIT, and chooses its names.
   FAKE_LIBRARY: the file to map. FAKE_THREAD: the name of its thread. FAKE_MODE: "" | deaf (dies of SIGQUIT) | flood (listens on
   the attach socket and answers without end). On SIGQUIT it prints which trigger files it sees. It ends with its input. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char trigger[64], here[64];

static void on_quit(int number) {
    char line[] = "QUIT tmp=0 cwd=0\n";
    struct stat facts;
    (void)number;
    if (stat(trigger, &facts) == 0) line[9] = '1';
    if (stat(here, &facts) == 0) line[15] = '1';
    (void)!write(1, line, sizeof line - 1);
}

static void flood(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/.java_pid%d", getpid());
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    umask(0177);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 5) != 0) exit(3);
    printf("READY\n");
    fflush(stdout);
    static char chunk[1 << 16];
    memset(chunk, '1', sizeof chunk);
    for (;;) {
        int peer = accept(listener, NULL, NULL);
        while (write(peer, chunk, sizeof chunk) > 0) {
        }
        close(peer);
    }
}

int main(void) {
    const char *library = getenv("FAKE_LIBRARY"), *name = getenv("FAKE_THREAD"), *mode = getenv("FAKE_MODE");
    int file = library ? open(library, O_RDONLY) : -1;
    if (file < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) return 2;
    if (name) prctl(PR_SET_NAME, name);
    signal(SIGPIPE, SIG_IGN);
    char byte;
    // It goes on once a socket that a killed JVM of the same pid left is gone.
    if (read(0, &byte, 1) != 1) return 0;
    snprintf(trigger, sizeof trigger, "/tmp/.attach_pid%d", getpid());
    snprintf(here, sizeof here, ".attach_pid%d", getpid());
    if (!mode || strcmp(mode, "deaf") != 0) signal(SIGQUIT, on_quit);
    if (mode && strcmp(mode, "flood") == 0) {
        alarm(120);
        flood();
    }
    printf("READY\n");
    fflush(stdout);
    for (;;) {
        ssize_t got = read(0, &byte, 1);
        if (got == 0) return 0;
    }
}
