/* Truth for `scripts/holders`: preloaded, it notes which library asked malloc for each block of 4 KiB and more.
 *
 * MARUSA_TRUTH.PID is the file, one record a block: address, bytes, library; all zero once the block was freed. Who asked is the
 * first library on the stack that is not the C or C++ library. Names are behind the records.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RECORDS (1 << 20)
#define LIBRARIES 256
#define NAME_BYTES 128
#define BYTES_MIN 4096
#define DEPTH 24

struct record {
    uint64_t at, bytes, library;
};
static struct file {
    struct record records[RECORDS];
    char names[LIBRARIES][NAME_BYTES];
} *file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int is_inside __attribute__((tls_model("initial-exec")));

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int is_common(const char *name) {
    static const char *const common[] = {"libmalloc_truth", "libc.so", "libc-", "libstdc++", "ld-linux", "libgcc_s", "libm.so"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strncmp(name, common[i], strlen(common[i])) == 0)
            return 1;
    return 0;
}

static uint64_t library(void) {
    void *frames[DEPTH];
    int depth = backtrace(frames, DEPTH);
    const char *name = "?";
    for (int i = 0; i < depth; i++) {
        Dl_info info;
        if (dladdr(frames[i], &info) && info.dli_fname && !is_common(base_name(info.dli_fname))) {
            name = base_name(info.dli_fname);
            break;
        }
    }
    for (uint64_t i = 0; i < LIBRARIES; i++) {
        if (!file->names[i][0])
            strncpy(file->names[i], name, NAME_BYTES - 1);
        if (strncmp(file->names[i], name, NAME_BYTES - 1) == 0)
            return i;
    }
    return 0;
}

static struct record *place(uint64_t at, int is_new) {
    uint64_t slot = (at >> 4) * 0x9e3779b97f4a7c15u >> 44;
    for (int i = 0; i < RECORDS; i++, slot = (slot + 1) % RECORDS) {
        struct record *record = &file->records[slot];
        if (record->at == at || (is_new && record->bytes == 0))
            return record;
        if (!is_new && record->at == 0)
            return NULL;
    }
    return NULL;
}

static void *note(void *at, size_t bytes) {
    if (!file || !at || bytes < BYTES_MIN || is_inside)
        return at;
    is_inside = 1;
    pthread_mutex_lock(&lock);
    struct record *record = place((uint64_t)at, 1);
    if (record)
        *record = (struct record){(uint64_t)at, bytes, library()};
    pthread_mutex_unlock(&lock);
    is_inside = 0;
    return at;
}

static void forget(void *at) {
    if (!file || !at)
        return;
    /* Only blocks of some pages have records; a chunk's size lies right before it (glibc's malloc_chunk). */
    if ((((size_t *)at)[-1] & ~(size_t)7) < BYTES_MIN)
        return;
    pthread_mutex_lock(&lock);
    struct record *record = place((uint64_t)at, 0);
    if (record)
        record->bytes = 0;
    pthread_mutex_unlock(&lock);
}

void *malloc(size_t bytes) { return note(__libc_malloc(bytes), bytes); }
void *calloc(size_t count, size_t bytes) { return note(__libc_calloc(count, bytes), count * bytes); }
void *memalign(size_t to, size_t bytes) { return note(__libc_memalign(to, bytes), bytes); }
void *aligned_alloc(size_t to, size_t bytes) { return memalign(to, bytes); }
int posix_memalign(void **at, size_t to, size_t bytes) { return (*at = memalign(to, bytes)) ? 0 : 12; }
void free(void *at) {
    forget(at);
    __libc_free(at);
}
void *realloc(void *at, size_t bytes) {
    forget(at);
    return note(__libc_realloc(at, bytes), bytes);
}

__attribute__((constructor)) static void start(void) {
    const char *name = getenv("MARUSA_TRUTH");
    char path[4096];
    if (!name)
        return;
    /* Commands that the program starts have files of their own. */
    snprintf(path, sizeof path, "%s.%d", name, getpid());
    void *frames[2];
    is_inside = 1;
    backtrace(frames, 2); /* loads libgcc_s, which asks malloc */
    is_inside = 0;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *file) != 0)
        return;
    void *mapped = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    file = mapped == MAP_FAILED ? NULL : mapped;
}
