/* ExecFiltered(): executes argv[1] with the rest as its arguments, under a filter of system calls. For programs that make a
   call fail for another one. The value is the exit status where that could not be done. */
#ifndef MEMTRACE_TESTS_TRACEES_EXEC_FILTERED_H_
#define MEMTRACE_TESTS_TRACEES_EXEC_FILTERED_H_

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

static int ExecFiltered(char** argv, struct sock_filter* filter, unsigned short length) {
  const struct sock_fprog program = {length, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    return 3;
  }
  execv(argv[1], argv + 1);
  return 4;
}

#endif
