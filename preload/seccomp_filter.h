// SeccompFilter: what a filter that the program is about to install says to a system call.
//
// A classic BPF program over struct seccomp_data (Documentation/userspace-api/seccomp_filter.rst,
// net/core/filter.c of the kernel: bpf_check_classic() and seccomp_check_filter() name its
// instructions). Asked before it is installed, so that the tracer makes none of the calls that
// it forbids: one that kills would kill the program for what we do.
//
// Its address may be wrong, which is the kernel's to say: it is looked at before it is read.
//
// Not thread-safe. No libc, no errno; the copy is memory of our own.

#ifndef MEMTRACE_PRELOAD_SECCOMP_FILTER_H_
#define MEMTRACE_PRELOAD_SECCOMP_FILTER_H_

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstddef>
#include <cstdint>

namespace memtrace {

// Would the kernel take a filter from this thread? Not from one that could start a setuid program
// in it: without PR_SET_NO_NEW_PRIVS and CAP_SYS_ADMIN.
bool MayInstallFilters();

class SeccompFilter {
 public:
  // `program`: a struct sock_fprog of the program's.
  explicit SeccompFilter(const void* program);
  ~SeccompFilter();
  SeccompFilter(const SeccompFilter&) = delete;
  SeccompFilter& operator=(const SeccompFilter&) = delete;

  // False: it could not be copied, or the kernel will not take it. Nothing is known of it.
  explicit operator bool() const { return length_ != 0; }

  // The filter's result for `call`: SECCOMP_RET_... with its data.
  uint32_t Run(const seccomp_data& call) const;

  // Whether the filter lets the call through, logged or not.
  bool Allows(long number, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0,
              uint64_t e = 0, uint64_t f = 0) const;

 private:
  sock_filter* code_ = nullptr;
  size_t length_ = 0;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_SECCOMP_FILTER_H_
