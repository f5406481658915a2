// ProcFile: a file of /proc in a mapping of its own, for as long as the object lives. And what a
// link there says.

#ifndef MEMTRACE_PRELOAD_PROC_FILE_H_
#define MEMTRACE_PRELOAD_PROC_FILE_H_

#include <errno.h>

#include <cstddef>
#include <string_view>

#include "preload/descriptor_table.h"
#include "preload/own_memory.h"
#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {

class ProcFile {
 public:
  ProcFile(const char* path, size_t capacity) : capacity_(capacity) {
    data_ = static_cast<char*>(OwnMap(capacity, /*touch=*/false));
    const long bytes = data_ != nullptr ? ReadFile(path, data_, capacity) : -ENOMEM;
    size_ = bytes > 0 ? static_cast<size_t>(bytes) : 0;
    error_ = bytes < 0 ? bytes : 0;
  }
  ~ProcFile() {
    if (data_ != nullptr) OwnUnmap(data_, capacity_);
  }
  ProcFile(const ProcFile&) = delete;
  ProcFile& operator=(const ProcFile&) = delete;
  std::string_view text() const { return {data_, size_}; }
  long error() const { return error_; }  // 0, or -errno

 private:
  const size_t capacity_;
  char* data_ = nullptr;
  size_t size_ = 0;
  long error_ = 0;
};

// Empty: there is no such link.
template <size_t kCapacity>
void ReadProcLink(const char* link, Text<kCapacity>& out) {
  char buffer[2048];
  out.Clear();
  const long bytes = sys::Readlink(link, buffer, sizeof(buffer));
  if (bytes > 0) out << std::string_view(buffer, static_cast<size_t>(bytes));
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_PROC_FILE_H_
