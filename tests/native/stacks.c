/* Loaded before a JVM: its threads get stacks that are aligned like huge pages and not mapped as stacks (MAP_STACK), as those
 * of a program that brings its own do. Since Linux 6.7 only such stacks can be on huge pages unasked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

#define HUGE ((size_t)2 << 20)

typedef int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *wanted, void *(*start)(void *), void *argument)
{
    create real = (create)dlsym(RTLD_NEXT, "pthread_create");
    size_t size = 0;
    int detached = PTHREAD_CREATE_JOINABLE;
    if (wanted == NULL || pthread_attr_getstacksize(wanted, &size) || size < 2 * HUGE)
        return real(thread, wanted, start, argument);
    size = (size + HUGE - 1) & ~(HUGE - 1);
    void *memory = mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return real(thread, wanted, start, argument);
    void *stack = (void *)(((uintptr_t)memory + HUGE - 1) & ~(HUGE - 1));
    pthread_attr_t own;
    pthread_attr_init(&own);
    pthread_attr_getdetachstate(wanted, &detached);
    pthread_attr_setdetachstate(&own, detached);
    pthread_attr_setstack(&own, stack, size);
    return real(thread, &own, start, argument);
}
