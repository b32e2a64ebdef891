// A library that maps memory when it is loaded and keeps it, as native caches do: with a pointer to it in its data, or, with
// HOLDER_FORGETS set, with none that anybody could find.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HELD_BYTES (160UL << 20)

static void *held;

__attribute__((constructor)) static void hold(void) {
    void *memory = mmap(NULL, HELD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    memset(memory, 7, HELD_BYTES);
    // A mapping of its own rights on either side keeps the kernel from joining it with its neighbours.
    if (getenv("HOLDER_FORGETS") == NULL) held = memory;
}

void *holder_memory(void) { return held; }
