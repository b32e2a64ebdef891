/* Programs that do not hold still while they are read.
 *
 *   restless churn THREADS MEGABYTES     only malloc and free, all the time, about that much memory
 *   restless vanish THREADS              arenas' heaps are mapped and unmapped all the time, threads come and go
 *   restless fork                        forks children that allocate and end, all the time
 *   restless exit                        ends after 150 ms of churn */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOTS 4000

static int thread_bytes;

static uint32_t next(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

static void *churn(void *argument)
{
    uint32_t state = (uint32_t)(uintptr_t)argument * 2654435761u + 1;
    void **slots = calloc(SLOTS, sizeof *slots);
    /* Half of the slots are full, on average. */
    uint32_t size_most = thread_bytes / SLOTS * 4;
    for (;;) {
        void **slot = &slots[next(&state) % SLOTS];
        free(*slot);
        *slot = NULL;
        if (next(&state) % 2) {
            size_t bytes = 1 + next(&state) % (next(&state) % 4 ? size_most : 2 * size_most);
            *slot = malloc(bytes);
            memset(*slot, 1, bytes);
        }
    }
    return NULL;
}

static void *grow_and_shrink(void *argument)
{
    static void *blocks[64][1200];
    uintptr_t me = (uintptr_t)argument;
    for (int round = 0; round < 3; round++) {
        for (int block = 0; block < 1200; block++) {
            blocks[me][block] = malloc(100000);
            *(volatile char *)blocks[me][block] = 1;
        }
        for (int block = 1199; block >= 0; block--)
            free(blocks[me][block]);
    }
    return NULL;
}

static void vanish(int threads)
{
    pthread_t all[64];
    for (;;) {
        for (uintptr_t me = 0; me < (uintptr_t)threads; me++)
            pthread_create(&all[me], NULL, grow_and_shrink, (void *)me);
        for (int me = 0; me < threads; me++)
            pthread_join(all[me], NULL);
    }
}

static void fork_often(void)
{
    for (;;) {
        pid_t child = fork();
        if (child == 0) {
            for (int block = 0; block < 100; block++)
                *(volatile char *)malloc(1000 * block + 1) = 1;
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
}

static int number(const char *text)
{
    int value = 0;
    for (; text && *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (*text - '0');
    return value;
}

static void start_churn(int threads, int megabytes)
{
    pthread_t thread;
    thread_bytes = (megabytes << 20) / threads;
    for (uintptr_t me = 1; me <= (uintptr_t)threads; me++)
        pthread_create(&thread, NULL, churn, (void *)me);
}

int main(int count, char **arguments)
{
    const char *name = count > 1 ? arguments[1] : "";
    int threads = count > 2 ? number(arguments[2]) : 4;
    int megabytes = count > 3 ? number(arguments[3]) : 40;
    if (threads < 1 || threads > 64)
        return 2;
    if (strcmp(name, "churn") == 0 || strcmp(name, "exit") == 0)
        start_churn(threads, megabytes);
    if (write(1, "READY\n", 6) != 6)
        return 3;
    if (strcmp(name, "vanish") == 0)
        vanish(threads);
    if (strcmp(name, "fork") == 0) {
        start_churn(1, 10);
        fork_often();
    }
    if (strcmp(name, "exit") == 0) {
        usleep(150000);
        _exit(0);
    }
    for (;;)
        pause();
}
