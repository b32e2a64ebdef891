/* Keeps the free memory of the host in small pieces: there is plenty of it, but hardly a block of 2 MiB, as after weeks of
 * work of a build server. Whatever wants a huge page then makes the kernel move other pages out of its way (compaction).
 *
 *   fragment FREE_MIB LEAST_MIB [HUGE_PAGES FILE COUNT]
 *
 * HUGE_PAGES of the pool of hugetlb are reserved, and never touched: that is memory which is neither free nor ours to break up,
 * and it takes no time. Then pages are taken until there are no free ones and at least twice FREE_MIB are held, which pages of files go for if they must;
 * LEAST_MIB (1024 or more) stay available. Pages chosen at random are given back until FREE_MIB are free. Then "READY" is
 * printed with figures, and it goes on: blocks that come free (a JVM ended) are broken up, and as many pages as that took are
 * given back elsewhere. All that it holds can be moved, and is gone with it, and that it is with its parent. Where memory
 * becomes short, it ends by itself, and writes COUNT, what the pool had, to FILE.
 *
 * A fault of 4 KiB takes the smallest free pieces first and leaves the blocks alone. So a block is taken as one huge page, which
 * is split: MADV_FREE of a part does that at once (mm/huge_memory.c, madvise_free_huge_pmd), where MADV_DONTNEED would
 * only put it on a list. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 512
#define BLOCK ((size_t)PAGE * PAGES)
#define SLOTS 32768
/* Whole blocks that are left alone: some lie where movable memory may not go. */
#define SPARE 32
#define PAUSE_US 5000
/* Before it is said to be ready. */
#define ROUNDS 2000
#define LEAST_MIB 1024
/* Below it the kernel takes pages of files away. */
#define NOTHING_FREE_MIB 512

static char *memory;
static uint16_t kept[SLOTS];
static uint8_t here[SLOTS][PAGES];
static uint16_t full[SLOTS], empty[SLOTS];
static int fulls, empties;
static long held;

static long number_after(const char *path, const char *key)
{
    static char text[8192];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    close(file);
    text[length < 0 ? 0 : length] = 0;
    char *found = strstr(text, key);
    return found ? atol(found + strlen(key)) : 0;
}

static long available_mib(void)
{
    return number_after("/proc/meminfo", "MemAvailable:") >> 10;
}

static long free_mib(void)
{
    return number_after("/proc/meminfo", "MemFree:") >> 10;
}

/* Free memory in blocks of 2 MiB; larger ones count as several. */
static long whole_blocks(void)
{
    char line[512];
    long blocks = 0;
    FILE *file = fopen("/proc/buddyinfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        char *at = strstr(line, "zone");
        long counts[11] = {0};
        int name_end = 0;
        if (at == NULL || sscanf(at, "zone %*s%n", &name_end) < 0)
            continue;
        at += name_end;
        for (int order = 0; order < 11; order++)
            counts[order] = strtol(at, &at, 10);
        blocks += counts[9] + 2 * counts[10];
    }
    if (file)
        fclose(file);
    return blocks;
}

static uint32_t next_random(void)
{
    static uint32_t state = 2463534242;
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}

static void drop(int slot, int page)
{
    madvise(memory + slot * BLOCK + (size_t)page * PAGE, PAGE, MADV_DONTNEED);
    here[slot][page] = 0;
    kept[slot]--;
    held--;
}

static void took(int slot)
{
    empties--;
    full[fulls++] = slot;
    memset(here[slot], 1, PAGES);
    kept[slot] = PAGES;
    held += PAGES;
}

/* Any free pages, the smallest pieces first. */
static int fill(void)
{
    if (empties == 0 || madvise(memory + empty[empties - 1] * BLOCK, BLOCK, MADV_POPULATE_WRITE))
        return 0;
    took(empty[empties - 1]);
    return 1;
}

/* One whole block. */
static int take_block(void)
{
    static unsigned char resident[PAGES];
    if (empties == 0)
        return 0;
    int slot = empty[empties - 1];
    char *block = memory + slot * BLOCK;
    madvise(block, BLOCK, MADV_HUGEPAGE);
    *(volatile char *)block = 1;
    mincore(block, BLOCK, resident);
    int is_huge = resident[1] & resident[PAGES - 1] & 1;
    /* Since Linux 6.12 a split gives pages of zeros back, and the block would be whole again. */
    for (int page = 0; is_huge && page < PAGES; page++)
        block[(size_t)page * PAGE] = 1;
    madvise(block, is_huge ? PAGE : BLOCK, is_huge ? MADV_FREE : MADV_DONTNEED);
    /* khugepaged must not undo it. */
    madvise(block, BLOCK, MADV_NOHUGEPAGE);
    if (is_huge)
        took(slot);
    return is_huge;
}

static void give_back(long most)
{
    while (held > most && fulls > 0) {
        int at = next_random() % fulls, slot = full[at], page = next_random() % PAGES;
        /* What is nearly empty is emptied, so that there are slots again. */
        for (int tries = kept[slot] < PAGES / 8 ? PAGES : 1; tries > 0; tries--, page = (page + 1) % PAGES)
            if (here[slot][page])
                drop(slot, page);
        if (kept[slot] == 0) {
            full[at] = full[--fulls];
            empty[empties++] = slot;
        }
    }
}

static void be_harmless(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, "1000", 4) != 4)
        exit(3);
    close(file);
}

static void break_blocks(long most_held)
{
    for (long blocks = whole_blocks() - SPARE; blocks > 0 && take_block(); blocks--)
        give_back(most_held);
}

static int reserve(long huge_pages)
{
    int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
    return huge_pages == 0 || mmap(NULL, huge_pages * BLOCK, PROT_READ | PROT_WRITE, kind, -1, 0) != MAP_FAILED;
}

static void give_up(const char *path, const char *pages)
{
    int file = path == NULL ? -1 : open(path, O_WRONLY | O_CLOEXEC);
    /* The pages that are still reserved become free when this process ends, and the pool smaller by them. */
    if (file >= 0 && write(file, pages, strlen(pages)) < 0)
        exit(4);
    exit(5);
}

int main(int count, char **words)
{
    long leave = count >= 3 ? atol(words[1]) : 0, least = count >= 3 ? atol(words[2]) : 0;
    if (least < LEAST_MIB || leave < 1 || (count != 3 && count != 6))
        return 2;
    be_harmless();
    if (count == 6 && !reserve(atol(words[3])))
        return 3;
    memory = mmap(NULL, (SLOTS + 1) * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return 3;
    memory = (char *)(((uintptr_t)memory + BLOCK - 1) & ~(BLOCK - 1));
    madvise(memory, SLOTS * BLOCK, MADV_NOHUGEPAGE);
    while (empties < SLOTS)
        empty[empties] = SLOTS - 1 - empties, empties++;
    long blocks = whole_blocks(), free_before = free_mib();
    while (available_mib() > least && (free_mib() > NOTHING_FREE_MIB || held < leave << 9) && fill()) {
    }
    long filled = held, most_held = held - ((leave - free_mib()) << 8);
    if (most_held > held)
        most_held = held;
    give_back(most_held);
    /* The kernel frees pages of files for a while after memory was short, in whole blocks too. */
    for (int round = 0; round < ROUNDS && whole_blocks() > 2 * SPARE; round++, usleep(PAUSE_US))
        break_blocks(most_held);
    printf("READY held_mib=%ld free_mib=%ld blocks=%ld before: free_mib=%ld blocks=%ld; filled_mib=%ld\n", held >> 8,
           free_mib(), whole_blocks(), free_before, blocks, filled >> 8);
    fflush(stdout);
    for (;; usleep(PAUSE_US)) {
        break_blocks(most_held);
        if (available_mib() < LEAST_MIB / 2)
            give_up(count == 6 ? words[4] : NULL, count == 6 ? words[5] : NULL);
    }
}
