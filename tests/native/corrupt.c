/* Heaps that a program destroyed itself. Whoever reads them must neither fall nor hang, and must say what is wrong.
 *
 *   corrupt sizes|wrap|cycle|cache|fast|top|ring|heaps|header|noise */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS 4000
#define HEAP_BYTES ((uintptr_t)64 << 20)

static uintptr_t *blocks[BLOCKS];
static uintptr_t *in_thread;

static void *allocate_in_an_arena_of_its_own(void *nothing)
{
    for (int block = 0; block < 1000; block++) {
        void *one = malloc(100000);
        memset(one, 1, 100);
        in_thread = one;
    }
    __atomic_store_n(&blocks[0], malloc(10), __ATOMIC_RELEASE);
    for (;;)
        pause();
    return nothing;
}

static int has(const char *name, const char *wanted)
{
    return strcmp(name, wanted) == 0;
}

static int corrupt(const char *name)
{
    /* The last heap of the thread's arena, and the arena. */
    uintptr_t *heap = (uintptr_t *)((uintptr_t)in_thread & ~(HEAP_BYTES - 1));
    uintptr_t *arena = (uintptr_t *)heap[0];
    if (has(name, "sizes")) {
        for (int block = 10; block < BLOCKS; block += 50)
            blocks[block][-1] = block % 100 ? 0x4141414141414141 : 7;
    } else if (has(name, "wrap")) {
        /* The next chunk is this one, or lies before it. */
        for (int block = 11; block < BLOCKS; block += 100)
            blocks[block][-1] = block % 200 == 11 ? 1 : (uintptr_t)-255;
    } else if (has(name, "cycle")) {
        /* Freed blocks lie in the bins: forward to itself, and back to nowhere. */
        for (int block = 1001; block < BLOCKS; block += 40)
            blocks[block][0] = (uintptr_t)(blocks[block] - 2), blocks[block][1] = 0x10;
    } else if (has(name, "cache")) {
        for (int block = 100; block < 1000; block++)
            blocks[block][0] = block % 2 ? (uintptr_t)blocks[block] ^ (uintptr_t)blocks[block] >> 12 : 0xdeadbeef;
    } else if (has(name, "fast")) {
        for (int block = 100; block < 1000; block++)
            blocks[block][0] = ((uintptr_t)blocks[block] - 16) ^ (uintptr_t)blocks[block] >> 12;
    } else if (has(name, "top")) {
        /* `top` follows have_fastchunks and ten fastbins, or flags where those are gone (2.43). */
        arena[12] = arena[1] = 0x7fff00000010;
    } else if (has(name, "ring")) {
        for (int word = 250; word < 275; word++)
            if (arena[word] == (uintptr_t)arena || arena[word] > 0x700000000000)
                arena[word] = (uintptr_t)arena;
    } else if (has(name, "heaps")) {
        heap[1] = (uintptr_t)heap;
    } else if (has(name, "header")) {
        heap[2] = heap[3] = (uintptr_t)-4096;
    } else if (has(name, "noise")) {
        uint64_t state = 88172645463325252u;
        for (int round = 0; round < 20000; round++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            uintptr_t *one = blocks[state % (BLOCKS - 10) + 1] - 2;
            one[state >> 32 & 3] = state >> 40 & 1 ? (uintptr_t)blocks[state >> 20 & 2047] : state >> (state & 63);
        }
    } else {
        return 2;
    }
    return 0;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    pthread_create(&thread, NULL, allocate_in_an_arena_of_its_own, NULL);
    while (__atomic_load_n(&blocks[0], __ATOMIC_ACQUIRE) == NULL)
        usleep(1000);
    for (int block = 1; block < BLOCKS; block++)
        blocks[block] = malloc(block < 1000 ? 40 : (size_t)block);
    for (int block = 1; block < BLOCKS; block += 2)
        free(blocks[block]);
    for (int block = 2; block < 1000; block += 2)
        free(blocks[block]);
    int status = corrupt(count > 1 ? arguments[1] : "");
    if (status != 0)
        _exit(status);
    if (write(1, "READY\n", 6) != 6)
        _exit(3);
    for (;;)
        pause();
}
