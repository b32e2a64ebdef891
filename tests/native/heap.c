/* Heaps whose contents are known: each case fills malloc in its own way, lets glibc say what it has (malloc_info(3)),
 * and stops, all threads parked, so that the walk from outside must come to the same figures.
 *
 *   heap REPORT CASE [THREADS]
 *
 * Nothing is allocated between malloc_info and the word READY, nor after it. Behind malloc_info's XML stands a line
 * "live BLOCKS BYTES MAPPED": the chunks that this program itself holds in arenas, and those mapped one by one.
 *
 * No function is used whose symbol changed since glibc 2.31: the program is linked to old libraries too. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS_MAX 64
#define SLOTS 1500

static FILE *report;
static char report_buffer[4 << 20];
static void *slots[THREADS_MAX + 1][SLOTS];
static pthread_barrier_t barrier;
static int threads;

static uint32_t next(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

static void say(const char *text)
{
    if (write(1, text, strlen(text)) < 0)
        _exit(3);
}

static void tell_and_stop(void)
{
    size_t blocks = 0, bytes = 0, mapped = 0;
    for (int thread = 0; thread <= THREADS_MAX; thread++)
        for (int slot = 0; slot < SLOTS; slot++) {
            if (slots[thread][slot] == NULL)
                continue;
            size_t size = ((size_t *)slots[thread][slot])[-1];
            if (size & 2) {
                mapped++;
                continue;
            }
            blocks++;
            bytes += size & ~(size_t)7;
        }
    malloc_info(0, report);
    fprintf(report, "live %zu %zu %zu\n", blocks, bytes, mapped);
    fflush(report);
    say("READY\n");
    for (;;)
        pause();
}

/* Mostly small, some up to 120 KB, few above the mmap threshold. */
static size_t some_size(uint32_t *state)
{
    uint32_t kind = next(state) % 200;
    if (kind < 110)
        return 1 + next(state) % 1040;
    if (kind < 170)
        return 1000 + next(state) % 8000;
    return kind < 199 ? 8000 + next(state) % 112000 : 130000 + next(state) % 300000;
}

static void mix(void **mine, int count, int rounds, uint32_t seed)
{
    uint32_t state = seed * 2654435761u + 1;
    for (int round = 0; round < rounds; round++) {
        void **slot = &mine[next(&state) % count];
        if (*slot != NULL && next(&state) % 8 == 0) {
            *slot = realloc(*slot, some_size(&state));
            continue;
        }
        free(*slot);
        *slot = next(&state) % 3 != 0 ? malloc(some_size(&state)) : NULL;
    }
    /* What is freed now goes to the unsorted list; a large request sorts it into the bins. */
    for (int pass = 0; pass < 3; pass++) {
        for (int slot = pass; slot < count; slot += 5) {
            free(mine[slot]);
            mine[slot] = NULL;
        }
        if (pass < 2)
            mine[pass] = malloc(100000 + pass);
    }
}

/* More of each small size than a thread's cache takes: the rest goes to the fastbins, where nothing merges it. */
static void fill_fastbins(void)
{
    void *blocks[6][14];
    for (int size = 0; size < 6; size++)
        for (int block = 0; block < 14; block++)
            blocks[size][block] = malloc(24 + 16 * size);
    for (int block = 0; block < 14; block++)
        for (int size = 0; size < 6; size++)
            free(blocks[size][block]);
}

static void *worker(void *argument)
{
    int me = (int)(intptr_t)argument;
    int count = threads > 10 ? 300 : SLOTS;
    mix(slots[me], count, count * 4, me + 1);
    pthread_barrier_wait(&barrier);
    /* Blocks of another's arena: they go to this thread's cache and that arena's lists. */
    void **other = slots[me % threads + 1];
    for (int slot = 1; slot < count; slot += 7) {
        free(other[slot]);
        other[slot] = NULL;
    }
    fill_fastbins();
    pthread_barrier_wait(&barrier);
    for (;;)
        pause();
    return NULL;
}

static void run_threads(void)
{
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, threads + 1);
    mix(slots[0], SLOTS, SLOTS * 2, 77);
    for (int me = 1; me <= threads; me++)
        pthread_create(&thread, NULL, worker, (void *)(intptr_t)me);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
}

static void aligned(void)
{
    uint32_t state = 5;
    for (int slot = 0; slot < SLOTS; slot++) {
        size_t alignment = (size_t)32 << next(&state) % 12;
        size_t bytes = some_size(&state);
        if (slot % 3 == 0)
            slots[0][slot] = memalign(alignment, bytes);
        else if (slot % 3 == 1)
            slots[0][slot] = aligned_alloc(alignment, bytes / alignment * alignment + alignment);
        else if (posix_memalign(&slots[0][slot], alignment, bytes) != 0)
            _exit(4);
    }
    for (int slot = 0; slot < SLOTS; slot += 2) {
        free(slots[0][slot]);
        slots[0][slot] = NULL;
    }
}

static void mapped(void)
{
    uint32_t state = 9;
    mallopt(M_MMAP_THRESHOLD, 128 << 10); /* and so it no longer grows by itself */
    for (int round = 0; round < 2000; round++) {
        void **slot = &slots[0][next(&state) % 300];
        size_t bytes = (128 << 10) + next(&state) % (2 << 20);
        switch (next(&state) % 4) {
        case 0:
            free(*slot);
            *slot = NULL;
            break;
        case 1:
            free(*slot);
            *slot = memalign((size_t)64 << next(&state) % 10, bytes);
            break;
        default:
            *slot = realloc(*slot, bytes); /* mremap */
        }
    }
    mix(slots[1], SLOTS, SLOTS * 2, 3);
}

/* Somebody else takes memory by sbrk: malloc's arena goes on behind it, aligned to 16 bytes only. */
static void foreign(void)
{
    mix(slots[0], SLOTS, SLOTS * 2, 1);
    char *one = sbrk(3 * 4096 + 48);
    memset(one, 0xff, 3 * 4096 + 48);
    mix(slots[1], SLOTS, SLOTS * 3, 2);
    char *two = sbrk(255000);
    memset(two, 0x20, 255000);
    mix(slots[2], SLOTS, SLOTS * 3, 3);
}

static void *mix_and_end(void *argument)
{
    int me = (int)(intptr_t)argument;
    mix(slots[me], SLOTS, SLOTS, me);
    return NULL;
}

/* Threads that ended: their caches are flushed, their arenas stay, some get another thread. */
static void ended(void)
{
    pthread_t all[THREADS_MAX];
    for (int round = 0; round < 2; round++) {
        int count = round == 0 ? threads : threads / 2;
        for (int me = 0; me < count; me++)
            pthread_create(&all[me], NULL, mix_and_end, (void *)(intptr_t)(1 + me + round * threads));
        for (int me = 0; me < count; me++)
            pthread_join(all[me], NULL);
    }
}

static void *fill_heaps(void *argument)
{
    void **mine = slots[(intptr_t)argument];
    for (int slot = 0; slot < SLOTS; slot++)
        mine[slot] = malloc(90000 + slot);
    /* From the end, so that heaps are given back and shrink; then here and there. */
    for (int slot = SLOTS - 1; slot > 900; slot--) {
        free(mine[slot]);
        mine[slot] = NULL;
    }
    for (int slot = 0; slot < 900; slot += 3) {
        free(mine[slot]);
        mine[slot] = NULL;
    }
    pthread_barrier_wait(&barrier);
    for (;;)
        pause();
    return NULL;
}

/* Arenas of several heaps each. */
static void heaps(void)
{
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, threads + 1);
    for (int me = 1; me <= threads; me++)
        pthread_create(&thread, NULL, fill_heaps, (void *)(intptr_t)me);
    pthread_barrier_wait(&barrier);
}

/* Somebody was first, and is last. */
static void between(void)
{
    mix(slots[0], SLOTS, SLOTS * 2, 1);
    memset(sbrk(70000), 0xff, 70000);
}

/* The main arena cannot grow in place, so it takes mapped segments. */
static void blocked(void)
{
    mix(slots[0], SLOTS, SLOTS, 1);
    uintptr_t end = ((uintptr_t)sbrk(0) + 4095) & ~(uintptr_t)4095;
    void *fence = mmap((void *)end, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (fence == MAP_FAILED)
        _exit(5);
    for (int part = 1; part <= 4; part++) {
        mix(slots[part], SLOTS, SLOTS * 3, part);
        char *other = mmap(NULL, (size_t)part << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(other, part, 4096);
    }
}

/* One size after another, so that every bin gets something. */
static void bins(void)
{
    for (int slot = 0; slot < SLOTS; slot++)
        slots[0][slot] = malloc(slot < 1100 ? 8u + slot * 4u : (slot - 1000u) * 250u);
    for (int slot = 0; slot < SLOTS; slot += 2) {
        free(slots[0][slot]);
        slots[0][slot] = NULL;
    }
    slots[0][0] = malloc(120000);
    for (int slot = 1; slot < SLOTS; slot += 6) {
        free(slots[0][slot]);
        slots[0][slot] = NULL;
    }
}

/* Chunks of up to 1 MiB in the caches, where glibc.malloc.tcache_max allows it (2.42). */
static void large_cache(void)
{
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    for (int slot = 0; slot < 400; slot++)
        slots[0][slot] = malloc(1000 + slot * 2500);
    for (int slot = 0; slot < 400; slot += 2) {
        free(slots[0][slot]);
        slots[0][slot] = NULL;
    }
}

int main(int count, char **arguments)
{
    if (count < 3)
        return 2;
    const char *name = arguments[2];
    for (const char *digit = count > 3 ? arguments[3] : ""; *digit; digit++)
        threads = threads * 10 + (*digit - '0');
    if (threads > THREADS_MAX)
        return 2;
    if (strcmp(name, "between") == 0)
        memset(sbrk(50000), 0xff, 50000);
    report = fopen(arguments[1], "w");
    if (report == NULL)
        return 3;
    setvbuf(report, report_buffer, _IOFBF, sizeof report_buffer);
    if (strcmp(name, "threads") == 0)
        run_threads();
    else if (strcmp(name, "mix") == 0)
        mix(slots[0], SLOTS, SLOTS * 10, 1);
    else if (strcmp(name, "bins") == 0)
        bins();
    else if (strcmp(name, "aligned") == 0)
        aligned();
    else if (strcmp(name, "mapped") == 0)
        mapped();
    else if (strcmp(name, "foreign") == 0)
        foreign();
    else if (strcmp(name, "ended") == 0)
        ended();
    else if (strcmp(name, "heaps") == 0)
        heaps();
    else if (strcmp(name, "between") == 0)
        between();
    else if (strcmp(name, "blocked") == 0)
        blocked();
    else if (strcmp(name, "large-cache") == 0)
        large_cache();
    else if (strcmp(name, "empty") != 0)
        return 2;
    if (strcmp(name, "empty") != 0)
        fill_fastbins();
    tell_and_stop();
}
