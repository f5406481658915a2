/* without_wipeonfork: executes a program for which madvise(MADV_WIPEONFORK) fails, as Linux does
 * before 4.14.
 *
 *   without_wipeonfork PROGRAM ARGUMENTS... */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "exec_filtered.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_WIPEONFORK, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return ExecFiltered(argv, filter, sizeof(filter) / sizeof(filter[0]));
}
