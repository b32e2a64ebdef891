// A process that looks like a HotSpot JVM and is made to be slow or large to read. Compiled twice: with -DLIBRARY as
// libjvm.so, whose vmStructs are hostile, and without as the program that loads it and waits.
//
//   program libjvm.so names    20,000 names of 16 bytes in each table, all of one hash under a multiplicative hash without key
//   program libjvm.so long     the same with a common start of 4,064 bytes: 80 MB of text in each table
//   program libjvm.so endless  one entry again and again, without the end mark, up to the end of the mapping
//   program libjvm.so runs N   N mappings of one file, of which every second page is touched: 8,192 runs of pages each
//
// It prints READY when it is as it will stay, and ends when its standard input does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef LIBRARY

#define ENTRIES 20000
#define PREFIX_BYTES 4064

struct field { const char *type, *name, *type_string; int32_t is_static; uint64_t offset; void *address; };
struct type { const char *name, *superclass; int32_t is_oop, is_integer, is_unsigned; uint64_t size; };
struct number { const char *name; int32_t value; };
struct long_number { const char *name; uint64_t value; };

#define EXPORT __attribute__((visibility("default")))
EXPORT struct field *gHotSpotVMStructs;
EXPORT struct type *gHotSpotVMTypes;
EXPORT struct number *gHotSpotVMIntConstants;
EXPORT struct long_number *gHotSpotVMLongConstants;
EXPORT uint64_t gHotSpotVMStructEntryTypeNameOffset = offsetof(struct field, type);
EXPORT uint64_t gHotSpotVMStructEntryFieldNameOffset = offsetof(struct field, name);
EXPORT uint64_t gHotSpotVMStructEntryTypeStringOffset = offsetof(struct field, type_string);
EXPORT uint64_t gHotSpotVMStructEntryIsStaticOffset = offsetof(struct field, is_static);
EXPORT uint64_t gHotSpotVMStructEntryOffsetOffset = offsetof(struct field, offset);
EXPORT uint64_t gHotSpotVMStructEntryAddressOffset = offsetof(struct field, address);
EXPORT uint64_t gHotSpotVMStructEntryArrayStride = sizeof(struct field);
EXPORT uint64_t gHotSpotVMTypeEntryTypeNameOffset = offsetof(struct type, name);
EXPORT uint64_t gHotSpotVMTypeEntrySuperclassNameOffset = offsetof(struct type, superclass);
EXPORT uint64_t gHotSpotVMTypeEntrySizeOffset = offsetof(struct type, size);
EXPORT uint64_t gHotSpotVMTypeEntryArrayStride = sizeof(struct type);
EXPORT uint64_t gHotSpotVMIntConstantEntryNameOffset = offsetof(struct number, name);
EXPORT uint64_t gHotSpotVMIntConstantEntryValueOffset = offsetof(struct number, value);
EXPORT uint64_t gHotSpotVMIntConstantEntryArrayStride = sizeof(struct number);
EXPORT uint64_t gHotSpotVMLongConstantEntryNameOffset = offsetof(struct long_number, name);
EXPORT uint64_t gHotSpotVMLongConstantEntryValueOffset = offsetof(struct long_number, value);
EXPORT uint64_t gHotSpotVMLongConstantEntryArrayStride = sizeof(struct long_number);

static uint64_t mix(uint64_t hash, uint64_t word) {
    uint64_t spread = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    return spread ^ (spread >> 32);
}

// Whether the eight bytes are ASCII without NUL.
static int is_text(uint64_t word) {
    for (int byte = 0; byte < 8; byte++) {
        uint8_t letter = word >> (8 * byte);
        if (letter == 0 || letter > 126) return 0;
    }
    return 1;
}

static void *table(size_t entries, size_t bytes) {
    char *memory = mmap(NULL, (entries + 1) * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) abort();
    return memory;
}

static void fill(char **names) {
    gHotSpotVMStructs = table(ENTRIES, sizeof(struct field));
    gHotSpotVMTypes = table(ENTRIES, sizeof(struct type));
    gHotSpotVMIntConstants = table(ENTRIES, sizeof(struct number));
    gHotSpotVMLongConstants = table(ENTRIES, sizeof(struct long_number));
    // One less than the limit of a table, so that it is read to its end.
    for (int at = 0; at < ENTRIES - 1; at++) {
        gHotSpotVMStructs[at] = (struct field){"", names[at], "", 0, 8, NULL};
        gHotSpotVMTypes[at] = (struct type){names[at], NULL, 0, 0, 0, 8};
        gHotSpotVMIntConstants[at] = (struct number){names[at], at};
        gHotSpotVMLongConstants[at] = (struct long_number){names[at], at};
    }
}

EXPORT void be_hostile(const char *how) {
    static char *names[ENTRIES];
    if (strcmp(how, "endless") == 0) {
        for (int at = 0; at < ENTRIES; at++) names[at] = "again";
        fill(names);
        gHotSpotVMStructs[ENTRIES - 1] = gHotSpotVMStructs[ENTRIES] = gHotSpotVMStructs[0];
        return;
    }
    size_t prefix = strcmp(how, "long") == 0 ? PREFIX_BYTES : 0;
    // The owner is empty: its length, and its mark.
    uint64_t state = mix(0, 1), prefix_word;
    memset(&prefix_word, 'x', 8);
    for (size_t at = 0; at < prefix; at += 8) state = mix(state, prefix_word);
    uint64_t random = 1;
    for (int at = 0; at < ENTRIES - 1;) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        uint64_t first = (random & 0x3f3f3f3f3f3f3f3full) | 0x4040404040404040ull;
        // The second word makes up for what the first did to the hash.
        uint64_t second = mix(state, first) ^ 0x5a5a5a5a5a5a5a5aull;
        if (!is_text(first) || !is_text(second)) continue;
        char *name = malloc(prefix + 17);
        if (name == NULL) abort();
        memset(name, 'x', prefix);
        memcpy(name + prefix, &first, 8);
        memcpy(name + prefix + 8, &second, 8);
        name[prefix + 16] = 0;
        names[at++] = name;
    }
    fill(names);
}

#else

#define FILE_BYTES (64UL << 20)

static void map_runs(long mappings) {
    int file = memfd_create("hostile", 0);
    if (file < 0 || ftruncate(file, FILE_BYTES) != 0) exit(3);
    for (long at = 0; at < mappings; at++) {
        volatile char *memory = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (memory == MAP_FAILED) exit(3);
        madvise((void *)memory, FILE_BYTES, MADV_NOHUGEPAGE);
        madvise((void *)memory, FILE_BYTES, MADV_RANDOM);
        for (size_t page = 0; page < FILE_BYTES; page += 8192) memory[page] = 1;
    }
}

/// Neighbours differ in their rights, so that the kernel does not make one of them.
static void map_many(long mappings) {
    for (long at = 0; at < mappings; at++) {
        int rights = at % 2 ? PROT_READ : PROT_READ | PROT_WRITE;
        if (mmap(NULL, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) exit(3);
    }
}

int main(int count, char **words) {
    if (count < 3) return 2;
    void *library = dlopen(words[1], RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    void (*be_hostile)(const char *) = (void (*)(const char *))dlsym(library, "be_hostile");
    if (be_hostile == NULL) return 3;
    int is_many = strcmp(words[2], "mappings") == 0;
    be_hostile(strcmp(words[2], "runs") == 0 || is_many ? "endless" : words[2]);
    if (count > 3) (is_many ? map_many : map_runs)(atol(words[3]));
    puts("READY");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    return 0;
}

#endif
