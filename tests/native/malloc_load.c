/* Fills the heaps of glibc's malloc in a known way, prints malloc_info(3), then waits.
 *
 *   malloc_load THREADS CHUNKS BYTES ORDER KEEP
 *
 * Each thread allocates CHUNKS blocks of BYTES (0: of mixed sizes), then frees all but every KEEPth (0: none is freed), in
 * the order of their addresses (ORDER 0) or in a scattered one (1). */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t bytes;
static long chunks, keep;
static int scattered;
static pthread_barrier_t filled;

static void fill(void)
{
    void **blocks = malloc(chunks * sizeof *blocks);
    for (long i = 0; i < chunks; i++) {
        blocks[i] = malloc(bytes ? bytes : 16 + i * 7919 % 2000);
        memset(blocks[i], 1, 8);
    }
    long *order = malloc(chunks * sizeof *order);
    for (long i = 0; i < chunks; i++)
        order[i] = i;
    unsigned long random = 88172645463325252UL;
    for (long i = chunks - 1; scattered && i > 0; i--) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        long j = random % (i + 1), other = order[i];
        order[i] = order[j], order[j] = other;
    }
    for (long i = 0; keep && i < chunks; i++)
        if (order[i] % keep)
            free(blocks[order[i]]);
    free(order);
}

static void *run(void *unused)
{
    fill();
    pthread_barrier_wait(&filled);
    pause();
    return unused;
}

int main(int count, char **argument)
{
    if (count != 6)
        return 2;
    int threads = atoi(argument[1]);
    chunks = atol(argument[2]), bytes = atol(argument[3]), scattered = atoi(argument[4]), keep = atol(argument[5]);
    pthread_barrier_init(&filled, 0, threads + 1);
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, run, 0);
    }
    if (threads == 0)
        fill();
    else
        pthread_barrier_wait(&filled);
    setvbuf(stdout, malloc(4096), _IOFBF, 4096);
    malloc_info(0, stdout);
    puts("READY");
    fflush(stdout);
    pause();
    return 0;
}
