/* without_mapping_query: executes a program for which ioctl(PROCMAP_QUERY) fails, as Linux does before 6.11.
 *
 *   without_mapping_query PROGRAM ARGUMENTS... */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "exec_filtered.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xc0686611, 0, 1), /* _IOWR('f', 17, struct procmap_query) */
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return ExecFiltered(argv, filter, sizeof(filter) / sizeof(filter[0]));
}
