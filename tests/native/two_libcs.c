/* A program with two C libraries: the second is loaded into a namespace of its own, and has a malloc of its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    void *(*other_malloc)(size_t);
    void *other = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
    if (other == NULL)
        _exit(4);
    *(void **)&other_malloc = dlsym(other, "malloc");
    for (int block = 0; block < 1000; block++) {
        memset(malloc(1000), 1, 1000);
        memset(other_malloc(2000), 2, 2000);
    }
    if (write(1, "READY\n", 6) != 6)
        _exit(3);
    for (;;)
        pause();
}
