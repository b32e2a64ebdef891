// A library that starts a process by fork when it is loaded, as an agent might. The other function is not called, so that its slot waits.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((constructor)) static void start(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, NULL, 0);
}

char *forker_uncalled(void) { return getcwd(NULL, 0); }
