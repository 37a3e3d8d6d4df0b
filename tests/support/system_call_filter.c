/* system_call_filter [unix] COMMAND...: runs a command under a seccomp filter that refuses (EPERM) what Docker's default
 * profile refuses to containers without capabilities, as far as a library might use it. unix: also sockets of this
 * machine (AF_UNIX). */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif
#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define REFUSE_CALL(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), REFUSE

int main(int argc, char** argv) {
    const int unix_too = argc > 1 && strcmp(argv[1], "unix") == 0;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE_CALL(SYS_pidfd_getfd),
        REFUSE_CALL(SYS_kcmp),
        REFUSE_CALL(SYS_process_vm_readv),
        REFUSE_CALL(SYS_process_vm_writev),
        REFUSE_CALL(SYS_ptrace),
        REFUSE_CALL(SYS_userfaultfd),
        REFUSE_CALL(SYS_perf_event_open),
        REFUSE_CALL(SYS_bpf),
        REFUSE_CALL(SYS_io_uring_setup),
        REFUSE_CALL(SYS_mbind),
        REFUSE_CALL(SYS_get_mempolicy),
        REFUSE_CALL(SYS_set_mempolicy),
        REFUSE_CALL(SYS_move_pages),
        REFUSE_CALL(SYS_add_key),
        REFUSE_CALL(SYS_keyctl),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unix_too ? AF_UNIX : 0xffff, 0, 1),
        REFUSE,
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    /* unshare(1) behind this needs no new privileges. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("seccomp");
        return 1;
    }
    char** command = argv + 1 + unix_too;
    if (command[0])
        execvp(command[0], command);
    perror(command[0] ? command[0] : "no command");
    return 127;
}
