/* Starts a command under a condition that it inherits:
 *   under no-thp COMMAND...          without transparent huge pages (prctl PR_SET_THP_DISABLE)
 *   under ADVICE ERRNO COMMAND...    process_madvise with that advice and at least one range fails with that error
 *   under -1 ERRNO COMMAND...        every process_madvise does
 * Filter: linux/seccomp.h; Documentation/userspace-api/seccomp_filter.rst. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void refuse(int advice, int error)
{
    struct sock_filter all[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_madvise, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)advice, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_filter every[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_madvise, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof all / sizeof *all, all};
    if (advice < 0) {
        filter.len = sizeof every / sizeof *every;
        filter.filter = every;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
        perror("seccomp");
        exit(125);
    }
}

int main(int count, char **words)
{
    int first = 2;
    if (count < 3)
        return 125;
    if (!strcmp(words[1], "no-thp")) {
        if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)) {
            perror("PR_SET_THP_DISABLE");
            return 125;
        }
    } else {
        if (count < 4)
            return 125;
        refuse(atoi(words[1]), atoi(words[2]));
        first = 3;
    }
    execvp(words[first], words + first);
    perror(words[first]);
    return 125;
}
