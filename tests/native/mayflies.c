// Processes that are JVMs for a moment: mayflies LIBJVM COUNT RATE COMMAND...
// COUNT children start, RATE a second; one that comes late starts at once. Each loads HotSpot's library into a process that had none,
// as a launcher does, lives for up to a second, and exits or is killed. One in ten is the COMMAND instead. When all have ended, the
// seconds that it took and the number of failed ones are printed. Nobody collects them before the input ends: until then each keeps its pid.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000L

static long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

static void sleep_until(long ns) {
    struct timespec at = {ns / SECOND_NS, ns % SECOND_NS};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) continue;
}

static void live(int number, const char *library, char **command) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (number % 10 == 0) {
        execv(command[0], command);
        _exit(3);
    }
    if (dlopen(library, RTLD_NOW | RTLD_GLOBAL) == NULL) _exit(4);
    // 37 has no divisor in common with 100: each length comes as often as the others.
    sleep_until(now_ns() + number * 37 % 100 * (SECOND_NS / 100));
    if (number % 2) raise(SIGKILL);
    _exit(0);
}

int main(int words, char **word) {
    if (words < 5) return 2;
    int count = atoi(word[2]), rate = atoi(word[3]);
    pid_t *children = calloc(count, sizeof *children);
    long start = now_ns();
    for (int number = 0; number < count; number++) {
        sleep_until(start + number * SECOND_NS / rate);
        children[number] = fork();
        if (children[number] < 0) return 5;
        if (children[number] == 0) live(number, word[1], word + 4);
    }
    int failed = 0;
    siginfo_t end;
    for (int number = 0; number < count; number++) {
        if (waitid(P_PID, children[number], &end, WEXITED | WNOWAIT)) return 6;
        failed += end.si_code == CLD_EXITED && end.si_status != 0;
    }
    printf("%f %d\n", (now_ns() - start) / 1e9, failed);
    fflush(stdout);
    while (read(0, children, 1) > 0) continue;
    while (wait(NULL) > 0) continue;
    return 0;
}
