// ReadOwnMemory: memory of this process that a load could die of, by way of the kernel: a shared
// mapping, or one of a file that may become shorter at this moment.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_READ_OWN_MEMORY_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_READ_OWN_MEMORY_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "preload/leak_scan/scan_words.h"
#include "preload/sys.h"

namespace memtrace {

// visit(words, address, count) for what can be read of [begin, end), two addresses of words no
// further apart than `buffer` is long. Returns the bytes that cannot be read; what lies behind them
// is read.
template <typename Visit>
uintptr_t ReadOwnMemory(uintptr_t begin, uintptr_t end, uint64_t* buffer, Visit visit) {
  uintptr_t unreadable = 0;
  for (uintptr_t at = begin; at < end;) {
    iovec local = {buffer, end - at};
    iovec remote = {reinterpret_cast<void*>(at), end - at};
    const long read = sys::Call(SYS_process_vm_readv, sys::Getpid(),
                                reinterpret_cast<long>(&local), 1,
                                reinterpret_cast<long>(&remote), 1, 0);
    const size_t words = read > 0 ? static_cast<size_t>(read) / kWord : 0;
    if (words != 0) {
      visit(buffer, at, words);
      at += words * kWord;
      continue;
    }
    // The kernel stops before the first page that it cannot read.
    const uintptr_t page_end = Down(at, kPage) + kPage;
    const uintptr_t next = page_end < end ? page_end : end;
    unreadable += next - at;
    at = next;
  }
  return unreadable;
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_READ_OWN_MEMORY_H_
