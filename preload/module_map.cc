#include "preload/module_map.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstring>
#include <new>
#include <string_view>

#include "format/records.h"
#include "preload/allowed_calls.h"
#include "preload/arch/arch.h"
#include "preload/clock.h"
#include "preload/coverage_notes.h"
#include "preload/descriptor_table.h"
#include "preload/own_memory.h"
#include "preload/own_proc.h"
#include "preload/process.h"
#include "preload/recorder.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"
#include "preload/unwind/module_epoch.h"

namespace memtrace {

namespace {

// PROCMAP_QUERY of linux/fs.h, Linux 6.11: what the kernel knows of one mapping, without the text of all.
struct MappingQuery {
  uint64_t size = sizeof(MappingQuery);
  uint64_t flags = 0;  // the mapping that has the address
  uint64_t address = 0;
  uint64_t start = 0, end = 0, mapping_flags = 0, page_size = 0, offset = 0, inode = 0;
  uint32_t device_major = 0, device_minor = 0;
  uint32_t name_bytes = 0, build_id_bytes = 0;  // room, then what there is; of the name with its zero
  uint64_t name = 0, build_id = 0;              // where they go
};
constexpr unsigned long kProcmapQuery = _IOWR('f', 17, MappingQuery);
constinit std::atomic<bool> g_no_mapping_query{false};  // the kernel has none

// False: not told.
bool Query(MappingQuery* query) {
  if (g_no_mapping_query.load(std::memory_order_relaxed)) return false;
  const uint64_t start = query->address;
  const long told = ReadOwnProc("maps", [&](const char* file) -> long {
    const long fd = sys::Open(file, O_RDONLY);
    if (sys::Failed(fd)) return fd;
    const long result = sys::Call(SYS_ioctl, fd, kProcmapQuery, reinterpret_cast<long>(query));
    sys::Close(fd);
    if (result == -ENOTTY) g_no_mapping_query.store(true, std::memory_order_relaxed);
    return sys::Failed(result) ? result : 1;
  });
  return told > 0 && query->start == start;
}

// False: not told. The name is followed by a zero in `memory`, of so many bytes.
bool QueryNameOfMapping(uintptr_t start, char* memory, size_t bytes, Text<8192>& path) {
  MappingQuery query;
  query.address = start;
  query.name = reinterpret_cast<uintptr_t>(memory);
  query.name_bytes = static_cast<uint32_t>(bytes);
  if (!Query(&query) || query.name_bytes < 2 || query.name_bytes > bytes || memory[0] != '/') {
    return false;
  }
  path << std::string_view(memory, query.name_bytes - 1);
  return !path.cut();
}

// Of the file that is mapped at `start`. Linux 6.12 finds it wherever the program headers are, 6.11 where they are
// in the file's first page. Empty: not told.
std::string_view QueryBuildId(uintptr_t start, char* memory, size_t bytes) {
  const SignalsBlocked calls;
  if (!calls) return {};
  MappingQuery query;
  query.address = start;
  query.build_id = reinterpret_cast<uintptr_t>(memory);
  query.build_id_bytes = static_cast<uint32_t>(bytes);
  if (!Query(&query) || query.build_id_bytes > bytes) return {};
  return {memory, query.build_id_bytes};
}

}  // namespace

bool NameOfMapping(uintptr_t start, Text<8192>& path) {
  constexpr size_t kMost = 4 << 20;  // of which is touched what there is
  const SignalsBlocked calls;
  auto* const maps = calls ? static_cast<char*>(OwnMap(kMost, /*touch=*/false)) : nullptr;
  if (maps == nullptr) return false;
  if (QueryNameOfMapping(start, maps, 4096, path)) {
    OwnUnmap(maps, kMost);
    return true;
  }
  const long bytes = ReadOwnProc("maps", [&](const char* file) { return ReadFile(file, maps, kMost); });
  std::string_view rest(maps, bytes > 0 ? static_cast<size_t>(bytes) : 0);
  bool found = false;
  while (!rest.empty() && !found) {
    const size_t end = rest.find('\n');
    if (end == rest.npos) break;
    const std::string_view line = First(rest, end);
    rest = From(rest, end + 1);
    if (HexAfter(line, "") != start) continue;
    const size_t slash = line.find('/');
    if (slash == line.npos) break;
    path << From(line, slash);
    found = !path.cut();
  }
  OwnUnmap(maps, kMost);
  return found;
}

namespace {

constexpr size_t kMaxPermanent = 4096;
constexpr size_t kMaxInstances = 16384;  // of modules loaded later, over the process's life
constexpr size_t kRecordBytes = 16 << 10;

struct Range {
  uintptr_t start = 0;
  uintptr_t end = 0;
};

// What a module's own memory tells of it.
struct ModuleView {
  Range range;
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

struct Instance {
  uint16_t id = 0;
  Range range;
  const link_map* map = nullptr;
  uint64_t path_hash = 0;
};

ModuleView* g_permanent = nullptr;  // unordered: asked on rule misses only
size_t g_permanent_count = 0;
size_t g_permanent_told = 0;  // in the trace, by numbers from 1 on: more, where there is no room
Instance* g_instances = nullptr;
constinit std::atomic<uint32_t> g_instance_count{0};
constinit std::atomic<bool> g_full_told{false};
// Instances that are loaded, a bit each: few of all that ever were, in a program that loads plugins again
// and again.
constinit std::atomic<uint64_t> g_loaded[kMaxInstances / 64] = {};

constexpr uint64_t BitOf(size_t instance) { return uint64_t{1} << (instance % 64); }

// visit(index) of each that is loaded; true ends the search.
template <typename Visit>
void FindLoaded(Visit visit) {
  const uint32_t count = g_instance_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < kMaxInstances / 64 && i * 64 < count; ++i) {
    for (uint64_t word = g_loaded[i].load(std::memory_order_acquire); word != 0; word &= word - 1) {
      if (visit(i * 64 + static_cast<size_t>(__builtin_ctzll(word)))) return;
    }
  }
}

uint64_t HashOf(const char* text) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (; *text != 0; ++text) hash = (hash ^ static_cast<uint8_t>(*text)) * 1099511628211u;
  return hash;
}

// What no PT_LOAD has is not in memory.
bool IsLoaded(const ElfW(Phdr)* headers, size_t count, const ElfW(Phdr)& part) {
  for (size_t i = 0; i < count; ++i) {
    const ElfW(Phdr)& header = headers[i];
    if (header.p_type == PT_LOAD && part.p_vaddr >= header.p_vaddr &&
        part.p_vaddr - header.p_vaddr <= header.p_memsz &&
        part.p_memsz <= header.p_memsz - (part.p_vaddr - header.p_vaddr)) {
      return true;
    }
  }
  return false;
}

void ReadProgramHeaders(const ElfW(Phdr)* headers, size_t count, uintptr_t bias, ModuleView* view) {
  view->bias = bias;
  view->range = {UINTPTR_MAX, 0};
  for (size_t i = 0; i < count; ++i) {
    const ElfW(Phdr)& header = headers[i];
    if (header.p_type == PT_LOAD) {
      const uintptr_t start = (bias + header.p_vaddr) & ~uintptr_t{4095};
      const uintptr_t end = (bias + header.p_vaddr + header.p_memsz + 4095) & ~uintptr_t{4095};
      if (start < view->range.start) view->range.start = start;
      if (end > view->range.end) view->range.end = end;
    } else if (header.p_type == PT_NOTE && view->build_id.empty() &&
               IsLoaded(headers, count, header)) {
      const char* p = reinterpret_cast<const char*>(bias + header.p_vaddr);
      const char* const end = p + header.p_memsz;
      const size_t align = header.p_align == 8 ? 8 : 4;
      const auto round = [align](size_t n) { return (n + align - 1) & ~(align - 1); };
      while (p + sizeof(ElfW(Nhdr)) <= end) {
        const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(p);
        const char* name = p + sizeof(*note);
        const char* data = p + round(sizeof(*note) + note->n_namesz);
        if (data + note->n_descsz > end || note->n_descsz > 64) break;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
          view->build_id = {data, note->n_descsz};
        }
        p += round(static_cast<size_t>(data - p) + note->n_descsz);
      }
    }
  }
  if (view->range.start == UINTPTR_MAX) view->range = {};
}

void ReadSoname(const ElfW(Dyn)* dynamic, ModuleView* view) {
  const char* strings = nullptr;
  uintptr_t soname = 0;
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_SONAME) soname = dynamic->d_un.d_val;
  }
  // ld.so relocates DT_STRTAB in place, except in the vDSO.
  if (soname != 0 && reinterpret_cast<uintptr_t>(strings) > view->range.start) {
    view->soname = strings + soname;
  }
}

// Of its own frame, and its buffer in memory of ours: modules are met on stacks of any size.
[[gnu::noinline]] void PutPathOfMapping(format::RecordEncoder& out, const ModuleView& view) {
  using Path = Text<8192>;
  void* const memory = OwnMap(sizeof(Path), /*touch=*/false);
  if (memory == nullptr) {
    out.Bytes(view.path);
    return;
  }
  auto* const path = new (memory) Path;
  if (!NameOfMapping(view.range.start, *path)) {
    *path << g_process.working_directory.view() << "/" << view.path;
  }
  out.Bytes(path->view());
  OwnUnmap(memory, sizeof(Path));
}

void PutModule(format::RecordEncoder& out, uint32_t id, const ModuleView& view) {
  out.Begin(format::RecordTag::kModule);
  out.Number(id);
  out.Number(view.flags);
  out.Number(view.range.start);
  out.Number(view.range.end);
  out.Number(view.bias);
  if (view.path[0] == '/' || view.path[0] == 0 || (view.flags & format::kModuleVdso)) {
    out.Bytes(view.path);
  } else {
    PutPathOfMapping(out, view);
  }
  out.Bytes(view.build_id);
  out.Number(g_clock.Now());
  out.Bytes(view.soname);
  out.Number(view.below_thread_pointer);
  out.Number(view.thread_local_bytes);
  out.End();
}

// Of a module that was there when the first thread's block was made: then all have them in the
// same place.
void ReadThreadLocals(const dl_phdr_info& info, ModuleView* view) {
  const auto thread = arch::ThreadPointer();
  const auto data = reinterpret_cast<uintptr_t>(info.dlpi_tls_data);
  if (data == 0 || data >= thread) return;
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type != PT_TLS) continue;
    view->below_thread_pointer = thread - data;
    view->thread_local_bytes = info.dlpi_phdr[i].p_memsz;
  }
}

// Records of many modules, in as few blocks as their size allows.
class ModuleWriter {
 public:
  ModuleWriter() {
    buffer_ = static_cast<uint8_t*>(OwnMap(kBuffer, /*touch=*/false));
  }
  ~ModuleWriter() {
    Flush();
    if (buffer_ != nullptr) OwnUnmap(buffer_, kBuffer);
  }

  void Permanent(dl_phdr_info* info) {
    ModuleView view;
    ReadProgramHeaders(info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr, &view);
    view.path = info->dlpi_name != nullptr ? info->dlpi_name : "";
    view.flags = format::kModulePermanent;
    if (count_ == 0) {
      view.flags |= format::kModuleExecutable;
      view.path = g_process.executable.c_str();
    }
    const uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    if (vdso != 0 && view.range.start <= vdso && vdso < view.range.end) {
      view.flags |= format::kModuleVdso;
      view.path = "[vdso]";
    }
    const auto own = reinterpret_cast<uintptr_t>(&ReadPermanentModules);
    if (view.range.start <= own && own < view.range.end) view.flags |= format::kModuleTracer;
    for (size_t i = 0; i < info->dlpi_phnum; ++i) {
      if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
        ReadSoname(reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                   &view);
      }
    }
    ReadThreadLocals(*info, &view);
    ++count_;
    g_permanent_told = count_;
    if (g_permanent_count < kMaxPermanent) g_permanent[g_permanent_count++] = view;
    Write(static_cast<uint32_t>(count_), view);
  }

  void Write(uint32_t id, const ModuleView& view) {
    if (buffer_ == nullptr) return;
    if (kBuffer - encoder().size() < kRecordBytes) Flush();
    PutModule(encoder(), id, view);
  }

 private:
  static constexpr size_t kBuffer = 64 << 10;

  format::RecordEncoder& encoder() {
    if (!begun_) {
      new (&storage_) format::RecordEncoder(buffer_, kBuffer);
      begun_ = true;
    }
    return *reinterpret_cast<format::RecordEncoder*>(&storage_);
  }
  void Flush() {
    if (buffer_ == nullptr || !begun_ || encoder().size() == 0) return;
    format::BlockHeader header = {};
    header.kind = format::BlockKind::kMetadata;
    header.payload_bytes = header.content_bytes = static_cast<uint32_t>(encoder().size());
    g_process.file.Append(header, buffer_);
    encoder().Clear();
  }

  bool begun_ = false;
  size_t count_ = 0;
  uint8_t* buffer_ = nullptr;
  alignas(format::RecordEncoder) char storage_[sizeof(format::RecordEncoder)];
};

struct BuildIdRoom {
  char bytes[64];
};

// A view of a module that was loaded later, from its headers in memory. Those that a tool has moved out of the first
// page (patchelf) may lie anywhere; then the kernel is asked, and `room` has what it says.
void ViewOf(const Range& range, const link_map* map, BuildIdRoom* room, ModuleView* view) {
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(range.start);
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) > 4096) {
    view->range = {range.start, (range.end + 4095) & ~uintptr_t{4095}};
    view->bias = map->l_addr;
    view->build_id = QueryBuildId(range.start, room->bytes, sizeof(room->bytes));
  } else {
    ReadProgramHeaders(reinterpret_cast<const ElfW(Phdr)*>(range.start + header->e_phoff),
                       header->e_phnum, map->l_addr, view);
  }
  ReadSoname(map->l_ld, view);
  view->path = map->l_name != nullptr ? map->l_name : "";
}

// Is this a module that glibc loads and unloads by itself, past any dlclose we could see?
bool IsCharacterSet(std::string_view path) {
  if (path.find("/gconv/") != std::string_view::npos) return true;
  std::string_view directories = g_process.config.gconv_path.view();
  while (!directories.empty()) {
    const size_t end = directories.find(':');
    const std::string_view directory = First(directories, end);
    if (!directory.empty() && path.find(directory) != std::string_view::npos) return true;
    directories = end == std::string_view::npos ? std::string_view() : From(directories, end + 1);
  }
  return false;
}

bool IsSame(const Instance& instance, const link_map* map, uintptr_t start, uint64_t path_hash) {
  return instance.map == map && instance.range.start == start && instance.path_hash == path_hash;
}

// True: it was there until now.
bool Forget(size_t instance) {
  return (g_loaded[instance / 64].fetch_and(~BitOf(instance), std::memory_order_acq_rel) &
          BitOf(instance)) != 0;
}

void Retire(size_t index) {
  if (!Forget(index)) return;
  const Instance& instance = g_instances[index];
  unwind::RetireTag(instance.id);
  AppendRecords<64>([&](format::RecordEncoder& out) {
    out.Begin(format::RecordTag::kModuleUnload);
    out.Number(instance.id);
    out.Number(g_clock.Now());
    out.End();
  });
}

Instance* Lookup(uintptr_t pc, const link_map* map, uintptr_t start, uint64_t path_hash) {
  Instance* found = nullptr;
  FindLoaded([&](size_t i) {
    Instance& instance = g_instances[i];
    if (pc < instance.range.start || pc >= instance.range.end) return false;
    if (IsSame(instance, map, start, path_hash)) {
      found = &instance;
    } else {
      Retire(i);  // something else lies there now: it was unloaded unseen
    }
    return found != nullptr;
  });
  return found;
}

Instance* AddInstance(const dl_find_object& object, uintptr_t start, uint64_t path_hash) {
  const uint32_t index = g_instance_count.fetch_add(1, std::memory_order_acq_rel);
  if (index >= kMaxInstances) {
    g_instance_count.store(kMaxInstances, std::memory_order_release);
    if (!g_full_told.exchange(true)) {
      AddCoverageNote("16,384 modules were loaded after the start, all that there is room for: calls from "
                      "those loaded after them have an address and no name.");
    }
    return nullptr;
  }
  Instance& instance = g_instances[index];
  instance.id = static_cast<uint16_t>(g_permanent_told + 1 + index);
  instance.range = {start, reinterpret_cast<uintptr_t>(object.dlfo_map_end)};
  instance.map = object.dlfo_link_map;
  instance.path_hash = path_hash;
  BuildIdRoom room;
  ModuleView view;
  ViewOf(instance.range, instance.map, &room, &view);
  AppendBigRecords(kRecordBytes, [&](format::RecordEncoder& out) {
    PutModule(out, instance.id, view);
  });
  g_loaded[index / 64].fetch_or(BitOf(index), std::memory_order_release);
  return &instance;
}

// Is it still where it was? No lock of the loader is asked for: its holder may wait for us, as does a callback of the
// program's dl_iterate_phdr(). And nothing of the module or of its link_map is read, which another thread may be
// unloading. The same file, loaded again just there meanwhile, passes for what it was.
bool IsStillThere(const Instance& instance) {
  dl_find_object found;
  return _dl_find_object(reinterpret_cast<void*>(instance.range.start), &found) == 0 &&
         found.dlfo_link_map == instance.map &&
         reinterpret_cast<uintptr_t>(found.dlfo_map_start) == instance.range.start &&
         reinterpret_cast<uintptr_t>(found.dlfo_map_end) == instance.range.end;
}

bool AnyIsGone() {
  bool any = false;
  FindLoaded([&any](size_t i) { return any = !IsStillThere(g_instances[i]); });
  return any;
}

// The same in a fork child, where nobody unloads meanwhile. Nothing of an instance that was unloaded unseen may be
// read: what glibc loads for a character set it also unloads.
bool IsStillLoaded(const Instance& instance) {
  dl_find_object found;
  if (_dl_find_object(reinterpret_cast<void*>(instance.range.start), &found) != 0) return false;
  const link_map* const map = found.dlfo_link_map;
  if (map == nullptr) return false;
  return IsSame(instance, map, reinterpret_cast<uintptr_t>(found.dlfo_map_start),
                HashOf(map->l_name != nullptr ? map->l_name : ""));
}

int VisitPermanent(dl_phdr_info* info, size_t, void* data) {
  static_cast<ModuleWriter*>(data)->Permanent(info);
  return 0;
}

}  // namespace

void ReadPermanentModules() {
  g_permanent =
      static_cast<ModuleView*>(OwnMap(kMaxPermanent * sizeof(ModuleView), /*touch=*/false));
  g_instances = static_cast<Instance*>(OwnMap(kMaxInstances * sizeof(Instance), /*touch=*/false));
  if (g_permanent == nullptr || g_instances == nullptr) return;
  ModuleWriter writer;
  dl_iterate_phdr(VisitPermanent, &writer);
  unwind::SetInstanceOf(&InstanceOf);
}

void WritePermanentModulesAgain() {
  if (g_permanent == nullptr) return;
  ModuleWriter writer;
  for (size_t i = 0; i < g_permanent_count; ++i) {
    writer.Write(static_cast<uint32_t>(i + 1), g_permanent[i]);
  }
}

void WriteModulesAgain() {
  if (g_permanent == nullptr || g_instances == nullptr) return;
  WritePermanentModulesAgain();
  ModuleWriter writer;
  FindLoaded([&](size_t i) {
    const Instance& instance = g_instances[i];
    if (!IsStillLoaded(instance)) {
      if (Forget(i)) unwind::RetireTag(instance.id);
      return false;
    }
    BuildIdRoom room;
    ModuleView view;
    ViewOf(instance.range, instance.map, &room, &view);
    writer.Write(instance.id, view);
    return false;
  });
}

uint16_t InstanceOf(const dl_find_object* object, uintptr_t pc, bool* cacheable) {
  const auto start = reinterpret_cast<uintptr_t>(object->dlfo_map_start);
  for (size_t i = 0; i < g_permanent_count; ++i) {
    if (pc >= g_permanent[i].range.start && pc < g_permanent[i].range.end) return unwind::kPermanentTag;
  }
  const link_map* map = object->dlfo_link_map;
  if (map == nullptr) return unwind::kNoTag;
  const char* path = map->l_name != nullptr ? map->l_name : "";
  if (IsCharacterSet(path)) *cacheable = false;
  const uint64_t path_hash = HashOf(path);
  Instance* instance = Lookup(pc, map, start, path_hash);
  if (instance == nullptr) instance = AddInstance(*object, start, path_hash);
  if (instance == nullptr) return unwind::kNoTag;
  // Two threads may have added the same module at once: the lower number is it.
  const Instance* first = Lookup(pc, map, start, path_hash);
  return first != nullptr ? first->id : instance->id;
}

namespace {

// Between BeginClose() and EndClose(), whose argument it gives. The records of what is gone are this
// process's: a fork child that has not begun yet begins first.
bool RetireWhatIsGone() {
  // What has no instance any more, for want of room, may be gone as well.
  if (!AnyIsGone()) return g_full_told.load(std::memory_order_relaxed);
  if (const Section section; !section && g_switch.recording.load(std::memory_order_relaxed) == 0) return true;
  FindLoaded([](size_t i) {
    if (!IsStillThere(g_instances[i])) Retire(i);
    return false;
  });
  return true;
}

}  // namespace

void NoticeUnseenCloses() {
  if (g_instances == nullptr || !AnyIsGone()) return;
  unwind::BeginClose();
  unwind::EndClose(RetireWhatIsGone());
}

int CloseModule(int (*real_dlclose)(void*), void* handle) {
  unwind::BeginClose();
  const int result = real_dlclose(handle);
  unwind::EndClose(g_instances != nullptr && RetireWhatIsGone());
  return result;
}

}  // namespace memtrace
