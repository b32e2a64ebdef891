// A library that maps memory when it is loaded and keeps it, as native caches do: with a pointer to it in its data, or, with
// HOLDER_FORGETS set, with none that anybody could find.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HELD_BYTES (160UL << 20)
#define GUARD_BYTES 4096UL

static void *held;

__attribute__((constructor)) static void hold(void) {
    // A page without rights on either side keeps the kernel from joining it with its neighbours.
    char *reserved = mmap(NULL, HELD_BYTES + 2 * GUARD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (reserved == MAP_FAILED) return;
    char *memory = reserved + GUARD_BYTES;
    if (mprotect(memory, HELD_BYTES, PROT_READ | PROT_WRITE) != 0) return;
    memset(memory, 7, HELD_BYTES);
    if (getenv("HOLDER_FORGETS") == NULL) held = memory;
}

void *holder_memory(void) { return held; }
