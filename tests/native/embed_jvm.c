// A program that loads HotSpot itself, without the launcher of Java:
// embed_jvm JAVA_HOME MEMFD TITLE [OPTION...] -- CLASS [ARGUMENT...]
// With a MEMFD that is not "-", libjvm.so is copied to a file of that name which exists in memory only (memfd_create(2)) and loaded
// from there. A TITLE that is not "-" is written over the arguments, as setproctitle(3) does. The JNI's tables are reached by the
// positions that its specification gives their functions, so that no header of a JDK is needed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#define OPTIONS_MAX 32
#define JNI_VERSION_1_8 0x00010008

struct option {
    char *text;
    void *extra;
};
struct arguments {
    int32_t version;
    int32_t count;
    struct option *options;
    uint8_t ignores_unknown;
};
typedef void **const *environment;

static char library[4096];

// HotSpot asks where its library lies to find its JDK (os::jvm_path). A file in memory has no such place.
char *realpath(const char *path, char *into) {
    const char *found = strncmp(path, "/proc/self/fd/", 14) == 0 ? library : path;
    if (into == NULL) return strdup(found);
    return strcpy(into, found);
}

static void *open_library(const char *name) {
    if (strcmp(name, "-") == 0) return dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    int from = open(library, O_RDONLY | O_CLOEXEC);
    int to = memfd_create(name, MFD_CLOEXEC);
    if (from < 0 || to < 0) return NULL;
    off_t length = lseek(from, 0, SEEK_END), at = 0;
    while (at < length)
        if (sendfile(to, from, &at, (size_t)(length - at)) <= 0) return NULL;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", to);
    void *opened = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    close(from);
    close(to);
    return opened;
}

static void set_title(char **words, int count, const char *title) {
    char *end = words[count - 1] + strlen(words[count - 1]) + 1;
    char *copy = strdup(title);
    memset(words[0], 0, (size_t)(end - words[0]));
    if (strlen(copy) < (size_t)(end - words[0])) strcpy(words[0], copy);
    free(copy);
}

static int run(environment env, char *name, char **arguments, int count) {
    void *(*find_class)(environment, const char *) = (*env)[6];
    void *(*new_string)(environment, const char *) = (*env)[167];
    void *(*new_array)(environment, int32_t, void *, void *) = (*env)[172];
    void (*set_element)(environment, void *, int32_t, void *) = (*env)[174];
    void *(*static_method)(environment, void *, const char *, const char *) = (*env)[113];
    void (*call)(environment, void *, void *, ...) = (*env)[141];
    for (char *letter = name; *letter; letter++)
        if (*letter == '.') *letter = '/';
    void *class = find_class(env, name);
    if (class == NULL) return 5;
    void *array = new_array(env, count, find_class(env, "java/lang/String"), NULL);
    for (int i = 0; i < count; i++) set_element(env, array, i, new_string(env, arguments[i]));
    call(env, class, static_method(env, class, "main", "([Ljava/lang/String;)V"), array);
    return 0;
}

int main(int count, char **words) {
    if (count < 6) return 2;
    snprintf(library, sizeof library, "%s/lib/server/libjvm.so", words[1]);
    void *opened = open_library(words[2]);
    if (opened == NULL) return 3;
    int (*create)(void **, environment *, struct arguments *) =
        (int (*)(void **, environment *, struct arguments *))dlsym(opened, "JNI_CreateJavaVM");
    struct option options[OPTIONS_MAX] = {0};
    struct arguments arguments = {JNI_VERSION_1_8, 0, options, 0};
    int at = 4;
    for (; at < count && strcmp(words[at], "--") != 0 && arguments.count < OPTIONS_MAX; at++)
        options[arguments.count++].text = strdup(words[at]);
    if (at + 1 >= count) return 2;
    char *copies[OPTIONS_MAX], *class = strdup(words[at + 1]);
    int copied = 0;
    for (at += 2; at < count && copied < OPTIONS_MAX; at++) copies[copied++] = strdup(words[at]);
    if (strcmp(words[3], "-") != 0) set_title(words, count, words[3]);
    void *vm = NULL;
    environment env = NULL;
    if (create == NULL || create(&vm, &env, &arguments) != 0) return 4;
    return run(env, class, copies, copied);
}
