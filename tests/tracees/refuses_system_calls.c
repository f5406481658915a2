/* refuses_system_calls: runs a program in which some calls of the kernel fail.
 *
 *   refuses_system_calls WHICH ERRNO PROGRAM ARGUMENTS
 *
 * WHICH: shared-mappings, which are mappings of a file that are shared and writable; pwritev;
 * perf_event_open, for which ERRNO 0 kills.
 * A seccomp filter answers them with ERRNO, in PROGRAM and in what that executes. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const unsigned error = (unsigned)atoi(argv[2]) & SECCOMP_RET_DATA;
  struct sock_filter mappings[] = {
      LOAD(nr),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 7),
      LOAD(args[4]), /* no file: -1 */
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 5, 0),
      LOAD(args[2]),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_WRITE, 0, 3),
      LOAD(args[3]),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_SHARED, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      ALLOW,
  };
  struct sock_filter writes[] = {
      LOAD(nr),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwritev, 0, 3),
      LOAD(args[2]), /* one part: the file's header and what else begins it, or a ring's */
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      ALLOW,
  };
  struct sock_filter events[] = {
      LOAD(nr),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K,
               error == 0 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | error),
      ALLOW,
  };
  struct sock_fprog program;
  if (strcmp(argv[1], "shared-mappings") == 0) {
    program = (struct sock_fprog){sizeof(mappings) / sizeof(mappings[0]), mappings};
  } else if (strcmp(argv[1], "pwritev") == 0) {
    program = (struct sock_fprog){sizeof(writes) / sizeof(writes[0]), writes};
  } else if (strcmp(argv[1], "perf_event_open") == 0) {
    program = (struct sock_fprog){sizeof(events) / sizeof(events[0]), events};
  } else {
    return 2;
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    return 77;
  }
  execvp(argv[3], argv + 3);
  return 2;
}
