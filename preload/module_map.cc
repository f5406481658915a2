#include "preload/module_map.h"

#include <link.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <string_view>

#include "format/records.h"
#include "preload/allowed_calls.h"
#include "preload/append_records.h"
#include "preload/clock.h"
#include "preload/coverage_notes.h"
#include "preload/kept_records.h"
#include "preload/module_view.h"
#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/recorder.h"
#include "preload/recording_switch.h"
#include "preload/sys.h"
#include "preload/text.h"
#include "preload/unwind/module_epoch.h"

namespace memtrace {

namespace {

constexpr size_t kMaxPermanent = 4096;
constexpr size_t kMaxInstances = 16384;  // of modules loaded later, over the process's life

struct Instance {
  uint16_t id = 0;
  AddressRange range;
  const link_map* map = nullptr;
  uint64_t path_hash = 0;
};

ModuleView* g_permanent = nullptr;  // unordered: asked on rule misses only
size_t g_permanent_count = 0;
size_t g_permanent_told = 0;  // in the trace, by numbers from 1 on: more, where there is no room
Instance* g_instances = nullptr;
constinit std::atomic<uint32_t> g_instance_count{0};
constinit std::atomic<bool> g_full_told{false};
// Instances that are loaded, a bit each: few of all that ever were, in a program that loads
// plugins again and again.
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

  void Permanent(const dl_phdr_info& info) {
    const ModuleView view = ViewOfPermanent(info, /*executable=*/count_ == 0);
    ++count_;
    g_permanent_told = count_;
    if (g_permanent_count < kMaxPermanent) g_permanent[g_permanent_count++] = view;
    Write(static_cast<uint32_t>(count_), view);
  }

  void Write(uint32_t id, const ModuleView& view) {
    if (buffer_ == nullptr) return;
    if (encoder().size() >= kUsualBlock) Flush();
    PutModule(encoder(), id, view);
  }

 private:
  // Much less than a quarter of the smallest segment of a flight recorder: KeptRecords::TellAgain()
  // passes over longer ones.
  static constexpr size_t kUsualBlock = 8 << 10;
  static constexpr size_t kBuffer = kUsualBlock + kModuleRecordBytes;

  format::RecordEncoder& encoder() {
    if (!begun_) {
      new (&storage_) format::RecordEncoder(buffer_, kBuffer);
      begun_ = true;
    }
    return *reinterpret_cast<format::RecordEncoder*>(&storage_);
  }
  void Flush() {
    if (buffer_ == nullptr || !begun_ || encoder().size() == 0) return;
    g_kept_records.Append(g_process.file, buffer_, encoder().size(), /*module=*/0);
    encoder().Clear();
  }

  bool begun_ = false;
  size_t count_ = 0;
  uint8_t* buffer_ = nullptr;
  alignas(format::RecordEncoder) char storage_[sizeof(format::RecordEncoder)];
};

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
  g_kept_records.Drop(instance.id);
  BuildRecords<64>(
      [&](format::RecordEncoder& out) {
        out.Begin(format::RecordTag::kModuleUnload);
        out.Number(instance.id);
        out.Number(g_clock.Now());
        out.End();
      },
      AppendOnceBlock{});
}

Instance* Lookup(uintptr_t pc, const link_map* map, uintptr_t start, uint64_t path_hash) {
  Instance* found = nullptr;
  FindLoaded([&](size_t i) {
    Instance& instance = g_instances[i];
    if (!instance.range.contains(pc)) return false;
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
      AddCoverageNote(
          "16,384 modules were loaded after the start, all that there is room for: calls from "
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
  const ModuleView view = ViewOfLoaded(instance.range, *instance.map, &room);
  BuildBigRecords(
      kModuleRecordBytes, [&](format::RecordEncoder& out) { PutModule(out, instance.id, view); },
      AppendKeptBlock{instance.id});
  g_loaded[index / 64].fetch_or(BitOf(index), std::memory_order_release);
  return &instance;
}

// Is it still where it was? No lock of the loader is asked for: its holder may wait for us, as does
// a callback of the program's dl_iterate_phdr(). And nothing of the module or of its link_map is
// read, which another thread may be unloading. The same file, loaded again just there meanwhile,
// passes for what it was.
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

// The same in a fork child, where nobody unloads meanwhile. Nothing of an instance that was
// unloaded unseen may be read: what glibc loads for a character set it also unloads.
bool IsStillLoaded(const Instance& instance) {
  dl_find_object found;
  if (_dl_find_object(reinterpret_cast<void*>(instance.range.start), &found) != 0) return false;
  const link_map* const map = found.dlfo_link_map;
  if (map == nullptr) return false;
  return IsSame(instance, map, reinterpret_cast<uintptr_t>(found.dlfo_map_start),
                HashOf(map->l_name != nullptr ? map->l_name : ""));
}

std::string_view FileNameOf(std::string_view path) {
  return From(path, path.rfind('/') + 1);  // npos + 1 is 0
}

// As the loader does: a name without a directory is compared with those that modules have, a path
// with theirs, and then the files.
bool IsPermanent(std::string_view file, const struct stat* status) {
  const bool has_directory = file.find('/') != std::string_view::npos;
  for (size_t i = 0; i < g_permanent_count; ++i) {
    const ModuleView& module = g_permanent[i];
    if (file == module.path) return true;
    if (!has_directory) {
      if (file == module.soname || file == FileNameOf(module.path)) return true;
      continue;
    }
    struct stat its;
    if (status != nullptr && !sys::Failed(sys::Stat(module.path, &its)) &&
        its.st_dev == status->st_dev && its.st_ino == status->st_ino) {
      return true;
    }
  }
  return false;
}

int VisitPermanent(dl_phdr_info* info, size_t, void* data) {
  static_cast<ModuleWriter*>(data)->Permanent(*info);
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

void WriteModulesAgain() {
  if (g_permanent == nullptr || g_instances == nullptr) return;
  ModuleWriter writer;
  for (size_t i = 0; i < g_permanent_count; ++i) {
    writer.Write(static_cast<uint32_t>(i + 1), g_permanent[i]);
  }
  FindLoaded([&](size_t i) {
    const Instance& instance = g_instances[i];
    if (!IsStillLoaded(instance)) {
      if (Forget(i)) unwind::RetireTag(instance.id);
      return false;
    }
    BuildIdRoom room;
    writer.Write(instance.id, ViewOfLoaded(instance.range, *instance.map, &room));
    return false;
  });
}

uint16_t InstanceOf(const dl_find_object* object, uintptr_t pc, bool* cacheable) {
  const auto start = reinterpret_cast<uintptr_t>(object->dlfo_map_start);
  for (size_t i = 0; i < g_permanent_count; ++i) {
    if (g_permanent[i].range.contains(pc)) return unwind::kPermanentTag;
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

// Between BeginClose() and EndClose(), whose argument it gives. The records of what is gone are
// this process's: a fork child that has not begun yet begins first.
bool RetireWhatIsGone() {
  // What has no instance any more, for want of room, may be gone as well.
  if (!AnyIsGone()) return g_full_told.load(std::memory_order_relaxed);
  if (const Section section; !section && g_switch.recording.load(std::memory_order_relaxed) == 0)
    return true;
  FindLoaded([](size_t i) {
    if (!IsStillThere(g_instances[i])) Retire(i);
    return false;
  });
  return true;
}

}  // namespace

bool WouldBeLoaded(const char* file) {
  // Of a module that came later only those are known which a stack went through, by their path.
  bool is_there = false;
  if (g_instances != nullptr) {
    const uint64_t path_hash = HashOf(file);
    FindLoaded([&](size_t i) {
      return is_there = g_instances[i].path_hash == path_hash && IsStillThere(g_instances[i]);
    });
  }
  if (is_there) return false;
  const Section section;  // first: a fork child counts its calls anew in it
  const OtherCalls calls;
  const std::string_view name = file;
  struct stat status;
  const bool may_ask = section && calls && name.find('/') != std::string_view::npos &&
                       name.find('$') == std::string_view::npos;  // $ORIGIN, which ld.so replaces
  const long found = may_ask ? sys::Stat(file, &status) : -ENOSYS;
  if (found == -ENOENT || found == -ENOTDIR) return false;
  return !IsPermanent(name, sys::Failed(found) ? nullptr : &status);
}

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
