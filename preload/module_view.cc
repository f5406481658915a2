#include "preload/module_view.h"

#include <elf.h>
#include <sys/auxv.h>

#include <cstring>
#include <new>

#include "format/build_id_note.h"
#include "format/records.h"
#include "preload/arch/arch.h"
#include "preload/clock.h"
#include "preload/mapping_query.h"
#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/rounding.h"
#include "preload/text.h"

namespace memtrace {

namespace {

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
      const uintptr_t start = Down(bias + header.p_vaddr, arch::kPageBytes);
      const uintptr_t end = Up(bias + header.p_vaddr + header.p_memsz, arch::kPageBytes);
      if (start < view->range.start) view->range.start = start;
      if (end > view->range.end) view->range.end = end;
    } else if (header.p_type == PT_NOTE && view->build_id.empty() &&
               IsLoaded(headers, count, header)) {
      view->build_id =
          format::BuildIdIn({reinterpret_cast<const char*>(bias + header.p_vaddr), header.p_memsz},
                            header.p_align);
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

}  // namespace

ModuleView ViewOfPermanent(const dl_phdr_info& info, bool executable) {
  ModuleView view;
  ReadProgramHeaders(info.dlpi_phdr, info.dlpi_phnum, info.dlpi_addr, &view);
  view.path = info.dlpi_name != nullptr ? info.dlpi_name : "";
  view.flags = format::kModulePermanent;
  if (executable) {
    view.flags |= format::kModuleExecutable;
    view.path = g_process.executable.c_str();
  }
  if (view.range.contains(getauxval(AT_SYSINFO_EHDR))) {
    view.flags |= format::kModuleVdso;
    view.path = "[vdso]";
  }
  if (view.range.contains(reinterpret_cast<uintptr_t>(&ViewOfPermanent))) {
    view.flags |= format::kModuleTracer;
  }
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      ReadSoname(reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr),
                 &view);
    }
  }
  ReadThreadLocals(info, &view);
  return view;
}

ModuleView ViewOfLoaded(const AddressRange& range, const link_map& map, BuildIdRoom* room) {
  ModuleView view;
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(range.start);
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) > arch::kPageBytes) {
    view.range = {range.start, Up(range.end, arch::kPageBytes)};
    view.bias = map.l_addr;
    view.build_id = BuildIdOfMapping(range.start, room->bytes, sizeof(room->bytes));
  } else {
    ReadProgramHeaders(reinterpret_cast<const ElfW(Phdr)*>(range.start + header->e_phoff),
                       header->e_phnum, map.l_addr, &view);
  }
  ReadSoname(map.l_ld, &view);
  view.path = map.l_name != nullptr ? map.l_name : "";
  return view;
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

}  // namespace memtrace
