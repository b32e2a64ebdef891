/*
 * Maps its own file as a native image of GraalVM does: the writable data once more, privately, at another address, with a part of
 * it that may only be read. Prints READY and waits for the end of its input.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The image heap: larger than a page, and not zero, or it would not be in the file. */
static char heap[1 << 20] = {1};

int main(void) {
    unsigned long from, to, offset;
    char rights[8], line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    int file = open("/proc/self/exe", O_RDONLY);
    unsigned long middle = (unsigned long)heap + sizeof heap / 2;
    while (maps && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %7s %lx", &from, &to, rights, &offset) != 4) continue;
        if (middle < from || middle >= to) continue;
        size_t bytes = sizeof heap / 2;
        char *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, (off_t)(offset + ((middle - from) & ~4095UL)));
        if (copy == MAP_FAILED) return 1;
        memset(copy, 2, bytes / 2);
        mprotect(copy + bytes / 2, bytes / 2, PROT_READ);
        puts("READY");
        fflush(stdout);
        while (getchar() != EOF) {}
        return 0;
    }
    return 1;
}
