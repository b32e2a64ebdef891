/* Fills a cgroup with memory that is not a heap, then waits until its input ends:
 *   fill cache FILE MIB       pages of a file, which stays open
 *   fill closed FILE MIB      pages of a file that nobody has open
 *   fill tmpfs FILE MIB       the same on a tmpfs
 *   fill sockets COUNT        Unix sockets with queued data
 *   fill dentries DIR COUNT   names that are looked up and do not exist
 *   fill anonymous MIB
 *   fill processes COUNT FILES DIR    as many processes, which have as many files open together
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char block[1 << 20];

static int die(const char *what)
{
    perror(what);
    exit(1);
}

static int written(const char *path, long mib)
{
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0)
        die(path);
    memset(block, 7, sizeof block);
    while (mib-- > 0)
        if (write(file, block, sizeof block) != (ssize_t)sizeof block)
            die("write");
    /* Dirty pages could be written, and dropped, at any time. */
    fsync(file);
    return file;
}

static void sockets(long count)
{
    while (count-- > 0) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
            die("socketpair");
        while (write(pair[0], block, 32 << 10) > 0)
            ;
    }
}

static void dentries(const char *directory, long count)
{
    char name[4096];
    struct stat facts;
    for (long at = 0; at < count; at++) {
        snprintf(name, sizeof name, "%s/no-such-file-%ld-%ld", directory, (long)getpid(), at);
        stat(name, &facts);
    }
}

static void processes(long count, long files, const char *directory)
{
    char name[4096];
    long each = files / count;
    for (long at = 0; at < count; at++) {
        if (fork())
            continue;
        for (long file = 0; file < each; file++) {
            snprintf(name, sizeof name, "%s/%ld-%ld", directory, at, file);
            if (open(name, O_RDWR | O_CREAT, 0600) < 0)
                die(name);
        }
        puts("READY");
        fflush(stdout);
        pause();
    }
}

int main(int count, char **words)
{
    struct rlimit all;
    getrlimit(RLIMIT_NOFILE, &all);
    all.rlim_cur = all.rlim_max;
    setrlimit(RLIMIT_NOFILE, &all);
    const char *mode = count > 2 ? words[1] : "";
    if (!strcmp(mode, "cache") || !strcmp(mode, "tmpfs"))
        written(words[2], atol(words[3]));
    else if (!strcmp(mode, "closed"))
        close(written(words[2], atol(words[3])));
    else if (!strcmp(mode, "sockets"))
        sockets(atol(words[2]));
    else if (!strcmp(mode, "dentries"))
        dentries(words[2], atol(words[3]));
    else if (!strcmp(mode, "processes"))
        processes(atol(words[2]), atol(words[3]), words[4]);
    else {
        size_t bytes = (size_t)atol(words[2]) << 20;
        char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            die("mmap");
        memset(memory, 7, bytes);
    }
    puts("READY");
    fflush(stdout);
    while (read(0, block, sizeof block) > 0)
        ;
    return 0;
}
