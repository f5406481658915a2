#include "preload/libunwind_oracle.h"

#include <dlfcn.h>

#include <cstring>

#include "preload/sys.h"
#include "preload/text.h"
#include "preload/unwind/stack_bounds.h"

namespace memtrace {
namespace {

using format::CrossCheckEnd;

// The part of libunwind.h that is needed here, so that building takes no libunwind (version
// 1.6; later ones of the same soname only add at the ends). A library for which this is
// wrong fails the trial in OpenLibunwind().
using Word = uint64_t;
struct AddressSpace;  // opaque
struct ProcInfo;      // passed on
struct Cursor {
  Word opaque[256];  // UNW_TDEP_CURSOR_LEN is 127 on x86-64
};
struct DynInfo {
  DynInfo* next = nullptr;
  DynInfo* previous = nullptr;
  Word start_ip = 0;
  Word end_ip = 0;
  Word gp = 0;
  int32_t format = 0;
  int32_t pad = 0;
  Word load_offset = 0;
  // unw_dyn_remote_table_info_t
  Word name = 0;
  Word segment_base = 0;
  Word table_words = 0;  // of 8 bytes: an entry is two offsets of 4
  Word table = 0;
  Word room_for_the_union[4] = {};
};
constexpr int32_t kRemoteTable = 2;  // UNW_INFO_FORMAT_REMOTE_TABLE
constexpr int kErrorUnspecified = -1, kErrorBadRegister = -3, kErrorReadOnly = -4,
              kErrorInvalid = -8, kErrorNoInfo = -10;
struct Accessors {
  int (*find_proc_info)(AddressSpace*, Word ip, ProcInfo*, int need_unwind_info, void*);
  void (*put_unwind_info)(AddressSpace*, ProcInfo*, void*);
  int (*get_dyn_info_list_addr)(AddressSpace*, Word*, void*);
  int (*access_mem)(AddressSpace*, Word address, Word*, int write, void*);
  int (*access_reg)(AddressSpace*, int reg, Word*, int write, void*);
  int (*access_fpreg)(AddressSpace*, int reg, void*, int write, void*);
  int (*resume)(AddressSpace*, Cursor*, void*);
  int (*get_proc_name)(AddressSpace*, Word, char*, size_t, Word*, void*);
  void* room_for_later_versions[8];
};

struct Library {
  AddressSpace* (*create_addr_space)(Accessors*, int byte_order);
  int (*set_caching_policy)(AddressSpace*, int policy);
  int (*init_remote)(Cursor*, AddressSpace*, void*);
  int (*step)(Cursor*);
  int (*get_reg)(Cursor*, int reg, Word*);
  int (*search_unwind_table)(AddressSpace*, Word ip, DynInfo*, ProcInfo*, int need_unwind_info,
                             void*);
  AddressSpace* space;
};
constinit Library g_library = {};
constexpr int kCacheNone = 0;  // UNW_CACHE_NONE

struct Walk {
  const unwind::KeptRegisters* registers;
  ProbedPages* pages;
  bool nothing_known = false;  // about a pc that was asked for
};

bool ReadBytes(Walk* walk, uintptr_t address, void* out, size_t bytes) {
  if (!walk->pages->Readable(address) || !walk->pages->Readable(address + bytes - 1)) return false;
  memcpy(out, reinterpret_cast<const void*>(address), bytes);
  return true;
}

// The header of a table that can be searched: version 1, offsets of 4 bytes relative to
// the header, as every linker writes it.
bool ReadTableHead(Walk* walk, uintptr_t hdr, DynInfo* info) {
  constexpr uint8_t kUdata4 = 0x03, kSdata4 = 0x0b, kDataRelative = 0x30, kFormat = 0x0f;
  struct Head {
    uint8_t version, pointer_encoding, count_encoding, table_encoding;
    int32_t eh_frame;
    uint32_t count;
  } head;
  if (hdr == 0 || !ReadBytes(walk, hdr, &head, sizeof(head)) || head.version != 1 ||
      head.count_encoding != kUdata4 || head.table_encoding != (kDataRelative | kSdata4) ||
      (head.pointer_encoding & kFormat) != kSdata4) {
    return false;
  }
  info->format = kRemoteTable;
  info->segment_base = hdr;
  info->table = hdr + sizeof(head);
  info->table_words = head.count;
  return true;
}

int FindProcInfo(AddressSpace* space, Word ip, ProcInfo* out, int need_unwind_info, void* data) {
  auto* walk = static_cast<Walk*>(data);
  dl_find_object object;
  DynInfo info;
  int result = kErrorNoInfo;
  if (_dl_find_object(reinterpret_cast<void*>(ip), &object) == 0 &&
      ReadTableHead(walk, reinterpret_cast<uintptr_t>(object.dlfo_eh_frame), &info)) {
    info.start_ip = reinterpret_cast<uintptr_t>(object.dlfo_map_start);
    info.end_ip = reinterpret_cast<uintptr_t>(object.dlfo_map_end);
    result = g_library.search_unwind_table(space, ip, &info, out, need_unwind_info, data);
  }
  walk->nothing_known |= result == kErrorNoInfo;
  return result;
}

int AccessMemory(AddressSpace*, Word address, Word* value, int write, void* data) {
  if (write) return kErrorInvalid;
  return ReadBytes(static_cast<Walk*>(data), address, value, sizeof(*value)) ? 0 : kErrorInvalid;
}

int AccessRegister(AddressSpace*, int reg, Word* value, int write, void* data) {
  if (write) return kErrorReadOnly;
  // The others' values are not known here, and a caller does not get them back.
  return unwind::KeptRegister(*static_cast<Walk*>(data)->registers, reg, value) ? 0
                                                                                : kErrorBadRegister;
}

constinit Accessors g_accessors = {
    .find_proc_info = FindProcInfo,
    .put_unwind_info = [](AddressSpace*, ProcInfo*, void*) {},
    .get_dyn_info_list_addr = [](AddressSpace*, Word*, void*) { return kErrorNoInfo; },
    .access_mem = AccessMemory,
    .access_reg = AccessRegister,
    .access_fpreg = [](AddressSpace*, int, void*, int, void*) { return kErrorBadRegister; },
    .resume = [](AddressSpace*, Cursor*, void*) { return kErrorInvalid; },
    .get_proc_name = [](AddressSpace*, Word, char*, size_t, Word*, void*) { return kErrorNoInfo; },
    .room_for_later_versions = {},
};

template <typename F>
bool Find(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  return function != nullptr;
}

bool IsTrampoline(Walk* walk, uintptr_t pc) {
  uint8_t code[unwind::kTrampolineBytes];
  return ReadBytes(walk, pc, code, sizeof(code)) && unwind::IsSignalTrampoline(code);
}

// Initialising itself libunwind makes a pipe that only its interface for the own process
// uses. No descriptor of ours stays open in the program: these are closed again.
class DescriptorsOfThePipe {
 public:
  DescriptorsOfThePipe() {
    for (long& fd : lowest_) fd = sys::Open("/", O_PATH);
    for (const long fd : lowest_) {
      if (!sys::Failed(fd)) sys::Close(fd);
    }
  }
  // Closes the descriptors of those two numbers, if they are the ends of one pipe now.
  void Close() const {
    struct stat ends[2];
    for (int i = 0; i < 2; ++i) {
      if (sys::Failed(lowest_[i]) || sys::Failed(sys::Fstat(lowest_[i], &ends[i])) ||
          !S_ISFIFO(ends[i].st_mode)) {
        return;
      }
    }
    if (ends[0].st_ino != ends[1].st_ino || ends[0].st_dev != ends[1].st_dev) return;
    for (const long fd : lowest_) sys::Close(fd);
  }

 private:
  long lowest_[2];
};

// A walk from here must come to the caller: then the interface is what we think it is.
[[gnu::noinline]] bool Trial() {
  const auto* frame = static_cast<const uintptr_t*>(__builtin_frame_address(0));
  const unwind::CallSite site = {frame[1], reinterpret_cast<uintptr_t>(frame) + 16, frame[0]};
  OracleFrame frames[2];
  OracleStack stack = {.frames = frames, .capacity = 2};
  ProbedPages pages;
  UnwindByLibunwind(unwind::CurrentRegisters(), site, &pages, &stack);
  return stack.count > 0 && frames[0].pc == site.pc && frames[0].sp == site.cfa;
}

}  // namespace

bool ProbedPages::Readable(uintptr_t address) {
  const uintptr_t page = address & ~(unwind::kPageBytes - 1);
  Entry& entry = entries_[page / unwind::kPageBytes % kEntries];
  if (entry.page == page && entry.walk == walk_ + 1) return true;
  if (!unwind::ProbePage(address)) return false;
  entry = {page, walk_ + 1};
  return true;
}

const char* OpenLibunwind() {
  void* library = dlopen(unwind::kLibunwindFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return "libunwind-x86_64.so.8 cannot be opened (Debian: libunwind8)";
  Library found = {};
  if (!Find(library, MEMTRACE_LIBUNWIND_NAME("create_addr_space"), found.create_addr_space) ||
      !Find(library, MEMTRACE_LIBUNWIND_NAME("set_caching_policy"), found.set_caching_policy) ||
      !Find(library, MEMTRACE_LIBUNWIND_NAME("init_remote"), found.init_remote) ||
      !Find(library, MEMTRACE_LIBUNWIND_NAME("step"), found.step) ||
      !Find(library, MEMTRACE_LIBUNWIND_NAME("get_reg"), found.get_reg) ||
      !Find(library, MEMTRACE_LIBUNWIND_NAME("dwarf_search_unwind_table"),
            found.search_unwind_table)) {
    return "libunwind lacks a function";
  }
  const DescriptorsOfThePipe pipe;
  found.space = found.create_addr_space(&g_accessors, 0);
  if (found.space == nullptr) return "libunwind has no memory";
  found.set_caching_policy(found.space, kCacheNone);  // a cached rule outlives its module
  g_library = found;
  const bool works = Trial();
  pipe.Close();
  return works ? nullptr : "libunwind's interface is not that of version 1.6";
}

void UnwindByLibunwind(const unwind::KeptRegisters& registers, const unwind::CallSite& site,
                       ProbedPages* pages, OracleStack* stack) {
  pages->Forget();
  Walk walk = {.registers = &registers, .pages = pages};
  Cursor cursor;
  stack->count = 0;
  stack->end = CrossCheckEnd::kSiteMissed;
  stack->error = g_library.init_remote(&cursor, g_library.space, &walk);
  if (stack->error < 0) return;
  bool inside = false, interrupted = false, guessed = false;
  for (size_t steps = 0; steps < stack->capacity + 64; ++steps) {
    Word pc = 0, sp = 0;
    if (g_library.get_reg(&cursor, unwind::kRip, &pc) < 0 ||
        g_library.get_reg(&cursor, unwind::kRsp, &sp) < 0) {
      stack->error = kErrorUnspecified;
      if (inside) stack->end = CrossCheckEnd::kGaveUp;
      return;
    }
    if (inside && pc == 0) {
      stack->end = CrossCheckEnd::kFirstFrame;
      return;
    }
    inside |= pc == site.pc && sp == site.cfa;
    const bool trampoline = IsTrampoline(&walk, pc);
    if (inside) {
      if (stack->count == stack->capacity) {
        stack->end = CrossCheckEnd::kLimit;
        return;
      }
      stack->frames[stack->count++] = {pc, sp, interrupted, trampoline, guessed};
    }
    walk.nothing_known = false;
    const int step = g_library.step(&cursor);
    if (step <= 0) {
      stack->error = step;
      if (inside) stack->end = step == 0 ? CrossCheckEnd::kFirstFrame : CrossCheckEnd::kGaveUp;
      return;
    }
    guessed |= walk.nothing_known && !trampoline;
    interrupted = trampoline;
  }
}

}  // namespace memtrace
