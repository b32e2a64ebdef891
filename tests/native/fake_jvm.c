// A process that looks like a JVM: it maps the file that it is given, which has the name libjvm.so, and waits until its input
// ends. With a directory it is in a chroot there, with a number it has that user's id: fake_jvm FILE [DIRECTORY|-] [UID].
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAPPED_BYTES (1UL << 20)

int main(int count, char **words) {
    if (count < 2) return 2;
    if (count > 2 && strcmp(words[2], "-") != 0 && (chroot(words[2]) != 0 || chdir("/") != 0)) return 3;
    int file = open(words[1], O_RDONLY | O_CLOEXEC);
    if (file < 0 || mmap(NULL, MAPPED_BYTES, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED) return 4;
    close(file);
    if (count > 3) {
        int id = atoi(words[3]);
        if (setresgid(id, id, id) != 0 || setresuid(id, id, id) != 0) return 5;
    }
    puts("READY");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) continue;
    return 0;
}
