#include "preload/leak_scan/vtable_test.h"

#include <sys/mman.h>
#include <sys/uio.h>

#include "preload/leak_scan/scan_words.h"
#include "preload/sys.h"
#include "preload/unwind/stack_bounds.h"

namespace memtrace {
namespace {

// Copies `bytes` from where a file is mapped. How many there are: its end may be before that.
size_t ReadMapped(uintptr_t from, void* to, size_t bytes) {
  iovec local = {to, bytes};
  iovec remote = {reinterpret_cast<void*>(from), bytes};
  const long read = sys::Call(SYS_process_vm_readv, sys::Getpid(), reinterpret_cast<long>(&local),
                              1, reinterpret_cast<long>(&remote), 1, 0);
  return read > 0 ? static_cast<size_t>(read) : 0;
}

}  // namespace

bool VtableTest::Prepare(ScanArena& arena) {
  cache_ = arena.Array<uint64_t>(kCache);
  pages_ = arena.Array<uint64_t>(kPages);
  return cache_ != nullptr && pages_ != nullptr;
}

bool VtableTest::CanLoad(uintptr_t begin, size_t bytes) {
  for (uintptr_t page = Down(begin, kPage); page < begin + bytes; page += kPage) {
    uint64_t& known = pages_[page / kPage % kPages];
    if (known == page) continue;
    // Not by process_vm_readv, which filters of containers refuse.
    if (!unwind::ProbeWord(page)) return false;
    known = page;
  }
  return true;
}

bool VtableTest::ReadsAsVtable(uint64_t value) {
  if (value % kWord != 0 || value < kPage) return false;
  const ScanMapping* const mapping = mappings_.Find(value);
  if (mapping == nullptr || !mapping->file || (mapping->protection & PROT_READ) == 0) return false;
  constexpr size_t kMost = 20;
  uint64_t read[kMost];
  size_t bytes = sizeof(read);
  if (mapping->end - value < bytes) bytes = mapping->end - value;
  const uint64_t* words = read;
  if (in_copy_ && CanLoad(value, bytes)) {
    words = reinterpret_cast<const uint64_t*>(value);
  } else {
    bytes = ReadMapped(value, read, bytes);
  }
  int functions = 0;
  for (size_t i = 0; i < bytes / kWord; ++i) {
    if (words[i] == 0) continue;
    const ScanMapping* const code = mappings_.Find(words[i]);
    if (code == nullptr || !code->file || (code->protection & PROT_EXEC) == 0) return false;
    if (++functions == 2) return true;
  }
  return false;
}

bool VtableTest::LooksLikeVtable(uint64_t value) {
  if (value % kWord != 0) return false;
  uint64_t& cached = cache_[(value / kWord * 0x9e3779b97f4a7c15u) >> 52];
  if ((cached & ~uint64_t{1}) != value) cached = value | ReadsAsVtable(value);
  return cached & 1;
}

}  // namespace memtrace
