// What a module's own memory tells of it, and the record of that in the trace.
//
// What views refer to is in the module: they are good for as long as it is mapped. Nothing here
// takes a lock of the loader or allocates.

#ifndef MEMTRACE_PRELOAD_MODULE_VIEW_H_
#define MEMTRACE_PRELOAD_MODULE_VIEW_H_

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "format/record_encoder.h"

namespace memtrace {

struct AddressRange {
  uintptr_t start = 0;
  uintptr_t end = 0;

  bool contains(uintptr_t address) const { return start <= address && address < end; }
};

// What a module's own memory tells of it.
struct ModuleView {
  AddressRange range;
  uintptr_t bias = 0;
  const char* path = "";
  std::string_view build_id;
  std::string_view soname;
  uint32_t flags = 0;
  // Thread-local variables begin so far below the thread pointer; 0: there are none, or each
  // thread has them somewhere else.
  uintptr_t below_thread_pointer = 0;
  size_t thread_local_bytes = 0;
};

// Of a module that was there before the program began; the executable's name is the kernel's.
ModuleView ViewOfPermanent(const dl_phdr_info& info, bool executable);

// Of a module that was loaded later, from its headers in memory. Those that a tool has moved out of
// the first page (patchelf) may lie anywhere; then the kernel is asked, and `room`, which has to
// live as long as the view, has what it says.
struct BuildIdRoom {
  char bytes[64];
};
ModuleView ViewOfLoaded(const AddressRange& range, const link_map& map, BuildIdRoom* room);

// The module's record, of at most so many bytes. A relative name is looked up at the kernel's.
constexpr size_t kModuleRecordBytes = 16 << 10;
void PutModule(format::RecordEncoder& out, uint32_t id, const ModuleView& view);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_MODULE_VIEW_H_
