#include "report/analysis/unseen_allocators.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "format/notes.h"
#include "report/base/path.h"
#include "report/names/site_symbols.h"
#include "report/words/units.h"

namespace memtrace::report {
namespace {

enum class Kind {
  kMalloc,
  kMark,
  kEntry,
  kFree,
  kOperatorNew,
  kOperatorDelete,
  kLoad,
  kLibc,
  kPython,
};

struct Name {
  std::string_view name;
  Kind kind;
  const char* allocator = "";  // of a kMark and a kEntry
};

// A mark tells whose code it is. An entry is a mark that programs call to allocate. What is called
// to free blocks of malloc past free() is no mark: jemalloc has these names, and tcmalloc one of
// them.
constexpr Name kAllocatorNames[] = {
    {"malloc", Kind::kMalloc},
    {"_Znwm", Kind::kOperatorNew},
    {"_Znam", Kind::kOperatorNew},
    {"_ZdlPv", Kind::kOperatorDelete},
    {"_ZdlPvm", Kind::kOperatorDelete},
    {"_ZdaPv", Kind::kOperatorDelete},
    {"dlopen", Kind::kLoad},
    {"dlmopen", Kind::kLoad},
    {"__libc_start_main", Kind::kLibc},
    {"PyMem_SetAllocator", Kind::kPython},
    {"mallocx", Kind::kEntry, "jemalloc"},
    {"rallocx", Kind::kEntry, "jemalloc"},
    {"je_malloc", Kind::kEntry, "jemalloc"},
    {"je_mallocx", Kind::kEntry, "jemalloc"},
    {"_rjem_malloc", Kind::kEntry, "jemalloc"},
    {"_rjem_mallocx", Kind::kEntry, "jemalloc"},
    {"je_arena_new", Kind::kMark, "jemalloc"},
    {"dallocx", Kind::kFree},
    {"sdallocx", Kind::kFree},
    {"tc_malloc", Kind::kEntry, "tcmalloc"},
    {"tc_calloc", Kind::kEntry, "tcmalloc"},
    {"tc_memalign", Kind::kEntry, "tcmalloc"},
    {"tc_new", Kind::kEntry, "tcmalloc"},
    {"TCMallocInternalMalloc", Kind::kEntry, "tcmalloc"},
    {"mi_malloc", Kind::kEntry, "mimalloc"},
    {"mi_calloc", Kind::kEntry, "mimalloc"},
    {"mi_zalloc", Kind::kEntry, "mimalloc"},
    {"mi_malloc_aligned", Kind::kEntry, "mimalloc"},
    {"mi_realloc", Kind::kEntry, "mimalloc"},
    {"mi_heap_malloc", Kind::kEntry, "mimalloc"},
    {"mi_new", Kind::kEntry, "mimalloc"},
    {"rpmalloc", Kind::kEntry, "rpmalloc"},
    {"scalable_malloc", Kind::kEntry, "TBB's allocator"},
    {"scalable_calloc", Kind::kEntry, "TBB's allocator"},
    {"scalable_aligned_malloc", Kind::kEntry, "TBB's allocator"},
    {"__TBB_malloc_proxy", Kind::kMark, "TBB's allocator"},
    {"GC_malloc", Kind::kEntry, "Boehm's collector"},
    {"GC_malloc_atomic", Kind::kEntry, "Boehm's collector"},
    {"runtime.mallocgc", Kind::kEntry, "Go's collector"},
};
constexpr size_t kNameCount = std::size(kAllocatorNames);
constexpr size_t kMallocName = 0;  // in these

constexpr char kOperatorNewName[] = "operator new";  // as it is told
constexpr char kLibstdcxx[] = "libstdc++.so.6";
constexpr char kPutsItFirst[] = " (with libstdc++.so.6 first in LD_PRELOAD it is)";

constexpr char kAllocatorNotHere[] = "the allocator that the program has in place of glibc's";

// Texts that allocators have in them: they are known by these where the names were stripped.
struct Text {
  std::string_view text;
  const char* allocator = "";  // empty: it is CPython's
};
constexpr Text kTexts[] = {
    {"<jemalloc>: ", "jemalloc"},
    {"mimalloc: ", "mimalloc"},
    {"TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD", "tcmalloc"},
    {"PYTHONMALLOC"},
};

bool MayHaveAllocatorLinkedIn(const ModuleInfo& module) {
  const std::string_view path = module.path;
  return (module.flags & format::kModuleExecutable) != 0 ||
         path.substr(path.rfind('/') + 1).starts_with("libpython");
}

// Also loaded at another time.
bool IsAmong(const std::vector<ModuleId>& mappers, const ModuleInfo& module,
             const Analysis& analysis) {
  return std::ranges::any_of(analysis.modules, [&](const ModuleInfo& one) {
    return one.path == module.path && std::ranges::find(mappers, one.id) != mappers.end();
  });
}

// Whether mimalloc was at work in a CPython, which has had it in every build since 3.13 and gets
// objects from it with PYTHONMALLOC=mimalloc alone, or where it is built without the global lock.
enum class MimallocUse : char { kNone, kSome, kNotKnown };

// It gets memory by mmap: 1 GiB, of which it gives out segments, or where there is no room for that
// each segment by itself. What `python` does else maps less, but for a module `mmap` that is
// linked in.
MimallocUse MimallocUseIn(const ModuleInfo& python, const Analysis& analysis) {
  bool all_known = analysis.process.has_record && !analysis.process.imported() &&
                   !analysis.coverage.events_missing && analysis.coverage.window_begin_ns == 0;
  if (IsAmong(analysis.large_mappers, python, analysis)) return MimallocUse::kSome;
  const std::vector<ModuleId>& mappers = analysis.large_mappers;
  all_known &= std::ranges::find(mappers, ModuleId{}) == mappers.end();
  return all_known ? MimallocUse::kNone : MimallocUse::kNotKnown;
}

// With PYTHONMALLOC=malloc it maps nothing of that size, but for a module `mmap` that is linked in.
bool UsesPymalloc(const ModuleInfo& python, const Analysis& analysis) {
  return IsAmong(analysis.arena_mappers, python, analysis);
}

struct Examined {
  const ModuleInfo* module;
  symbolizer::ModuleNames names;

  const symbolizer::NameUse& use(size_t name) const { return names.uses[name]; }
  bool Exports(Kind kind) const {
    for (size_t i = 0; i < kNameCount; ++i) {
      if (kAllocatorNames[i].kind == kind && use(i).exported) return true;
    }
    return false;
  }
};

class Survey {
 public:
  Survey(const FindModuleNames& find, Analysis* analysis) : analysis_(*analysis) {
    std::array<std::string_view, kNameCount> names;
    for (size_t i = 0; i < kNameCount; ++i) names[i] = kAllocatorNames[i].name;
    std::array<std::string_view, std::size(kTexts)> texts;
    for (size_t i = 0; i < texts.size(); ++i) texts[i] = kTexts[i].text;
    for (const ModuleInfo& module : analysis_.modules) {
      // A name in brackets is no file.
      if ((module.flags & (format::kModuleTracer | format::kModuleVdso)) != 0 ||
          absl::StartsWith(module.path, "[")) {
        if (module.flags & format::kModuleTracer) tracer_ = all_.size();
        continue;
      }
      const std::span<const std::string_view> none;
      Examined examined = {&module, find({module.path, module.build_id, LoadedNs(module)}, names,
                                         MayHaveAllocatorLinkedIn(module) ? texts : none)};
      if (examined.names.state != symbolizer::ModuleState::kSymbolsOnly &&
          examined.names.state != symbolizer::ModuleState::kDebugInfo) {
        ++analysis_.coverage.modules_not_examined;
        continue;
      }
      if (!examined.Exports(Kind::kLibc)) all_.push_back(std::move(examined));
    }
  }

  // Returns who may have given out blocks that end by free() and are in the trace with nothing but
  // that; empty: nobody.
  std::string Run() {
    for (size_t i = 0; i < all_.size(); ++i) Judge(i);
    if (shares_free_.empty() && AllocatorIsNotHere()) shares_free_ = kAllocatorNotHere;
    // The one that all call is that of the module which comes first. Where the C++ runtime is
    // linked in it is not told from a program's own.
    const auto runtime = std::ranges::find_if(all_, [](const Examined& one) {
      return (one.module->flags & format::kModulePermanent) &&
             SiteSymbols::IsCxxRuntime(one.module->path);
    });
    analysis_.coverage.own_operator_delete =
        runtime != all_.end() && std::any_of(all_.begin(), runtime, [](const Examined& one) {
          return (one.module->flags & format::kModulePermanent) &&
                 one.Exports(Kind::kOperatorDelete);
        });
    analysis_.coverage.pymalloc = std::ranges::any_of(all_, [this](const Examined& one) {
      return IsPython(one) && UsesPymalloc(*one.module, analysis_);
    });
    return shares_free_;
  }

 private:
  // A file without a build-id may be another one by now. One that only a memory map tells of was
  // there by the end.
  int64_t LoadedNs(const ModuleInfo& module) const {
    ModuleInfo by_the_end = module;
    if (module.load_time_ns == 0 && (module.flags & format::kModulePermanent) == 0)
      by_the_end.load_time_ns = analysis_.process.duration_ns;
    return SiteSymbols::LoadedNs(analysis_.process.start_realtime_ns, by_the_end);
  }

  // The modules of the start lie in the order in which names are looked up in them.
  bool ComesBeforeUs(size_t at) const {
    return at < tracer_ && (all_[at].module->flags & format::kModulePermanent);
  }

  static bool IsPython(const Examined& one) {
    for (size_t i = 0; i < kNameCount; ++i) {
      if (kAllocatorNames[i].kind == Kind::kPython && (one.use(i).exported || one.use(i).hidden))
        return true;
    }
    for (size_t i = 0; i < one.names.contains.size(); ++i) {
      if (one.names.contains[i] && kTexts[i].allocator[0] == 0) return true;
    }
    return false;
  }

  // Whose code it is. What a CPython has of mimalloc and does not use is nothing.
  std::string_view AllocatorOf(const Examined& one) const {
    const bool idle_mimalloc =
        IsPython(one) && MimallocUseIn(*one.module, analysis_) == MimallocUse::kNone;
    const auto counts = [=](std::string_view allocator) {
      return !allocator.empty() && !(idle_mimalloc && allocator == "mimalloc");
    };
    for (size_t i = 0; i < kNameCount; ++i) {
      if (counts(kAllocatorNames[i].allocator) && (one.use(i).exported || one.use(i).hidden))
        return kAllocatorNames[i].allocator;
    }
    for (size_t i = 0; i < one.names.contains.size(); ++i) {
      if (one.names.contains[i] && counts(kTexts[i].allocator)) return kTexts[i].allocator;
    }
    return "";
  }

  // Does a module before `at` define this name, so that it is not this one's that is called?
  bool DefinedBefore(size_t name, size_t at) const {
    for (size_t i = 0; i < at; ++i) {
      if (all_[i].use(name).exported && (all_[i].module->flags & format::kModulePermanent)) {
        return true;
      }
    }
    return false;
  }

  // It is another one than glibc's, which the library could tell, and nobody can look at it.
  bool AllocatorIsNotHere() const {
    const ProcessInfo& process = analysis_.process;
    return process.allocator == format::AllocatorKind::kOther && !process.imported() &&
           analysis_.coverage.modules_not_examined != 0 &&
           std::ranges::none_of(all_,
                                [](const Examined& one) { return one.Exports(Kind::kMalloc); });
  }

  // What calls an allocator from a malloc of its own gives out blocks that are in the trace, and
  // its free() takes them back.
  bool IsWanted(size_t name) const {
    const Kind kind = kAllocatorNames[name].kind;
    const bool is_own = kind == Kind::kEntry || kind == Kind::kFree;
    return std::ranges::any_of(all_, [=](const Examined& one) {
      return one.use(name).wanted && !(is_own && one.Exports(Kind::kMalloc));
    });
  }

  // Whether there may have been modules of which nothing is known: loaded after the start, met by
  // no stack, and in no memory map, since they were unloaded or the process was killed. Depends on
  // the program and not on what became of it, but for files that could not be looked at, so that its
  // runs do not differ in what is called a double free.
  bool MayHaveLoadedMore() const {
    if (analysis_.coverage.modules_not_examined != 0) return true;
    for (size_t name = 0; name < kNameCount; ++name) {
      if (kAllocatorNames[name].kind == Kind::kLoad && IsWanted(name)) return true;
    }
    return false;
  }

  // Whether others may call the operator new of `at`, and its operator delete free(). Those of
  // tcmalloc, mimalloc and TBB do not.
  bool MaySeeDeletesAlone(size_t at, std::string_view allocator) const {
    if (allocator == "tcmalloc" || allocator == "mimalloc" || allocator == "TBB's allocator")
      return false;
    for (size_t name = 0; name < kNameCount; ++name) {
      if (kAllocatorNames[name].kind == Kind::kOperatorNew && all_[at].use(name).exported &&
          !DefinedBefore(name, at) && (IsWanted(name) || MayHaveLoadedMore())) {
        return true;
      }
    }
    return false;
  }

  // The names of `at` besides malloc that other modules call to allocate.
  std::vector<std::string> CalledNames(size_t at) const {
    return CalledNames(at, {Kind::kEntry, Kind::kOperatorNew});
  }

  std::vector<std::string> CalledNames(size_t at, std::initializer_list<Kind> kinds) const {
    std::vector<std::string> called;
    for (size_t name = 0; name < kNameCount; ++name) {
      const Kind kind = kAllocatorNames[name].kind;
      if (std::ranges::find(kinds, kind) == kinds.end() || !all_[at].use(name).exported ||
          DefinedBefore(name, at) || !IsWanted(name)) {
        continue;
      }
      const std::string shown = kind == Kind::kOperatorNew
                                    ? std::string(kOperatorNewName)
                                    : std::string(kAllocatorNames[name].name);
      if (std::find(called.begin(), called.end(), shown) == called.end()) called.push_back(shown);
    }
    return called;
  }

  // What is not known because other modules free blocks of the malloc of `at` past free(), as the
  // end of a list of such things: nothing where none does.
  std::vector<std::string> UnseenFrees(size_t at) const {
    const std::vector<std::string> called = CalledNames(at, {Kind::kFree});
    if (called.empty()) return {};
    return {absl::StrCat("what is freed by its own ", absl::StrJoin(called, ", "),
                         " counts as live until its address is allocated again, so that what is "
                         "live, growth, lifetimes and leaks are not known")};
  }

  // Whether blocks of operator new are in the trace where libstdc++'s, which calls malloc, comes
  // before that of `at`. Said of jemalloc alone, beside whose cache
  // leaks are not found: tcmalloc's own blocks would look like leaks of the program.
  bool LibstdcxxsNewWouldDo(size_t at, std::string_view allocator,
                            const std::vector<std::string>& called) const {
    return allocator == "jemalloc" && called.size() == 1 && called[0] == kOperatorNewName &&
           (all_[at].module->flags & format::kModuleExecutable) == 0 &&
           std::ranges::any_of(all_, [](const Examined& one) {
             return absl::StartsWith(FileNameOf(one.module->path), kLibstdcxx) &&
                    one.Exports(Kind::kOperatorNew);
           });
  }

  void Judge(size_t at) {
    const Examined& one = all_[at];
    const bool exports_malloc = one.Exports(Kind::kMalloc);
    const bool hides_malloc = one.use(kMallocName).hidden;
    const std::string allocator(AllocatorOf(one));
    if (allocator.empty() && !hides_malloc && !exports_malloc) return;
    const std::string& path = one.module->path;
    const std::string named = allocator.empty() ? "an allocator of its own" : allocator;
    if (exports_malloc && ComesBeforeUs(at)) {
      Add(path, allocator, UnseenAllocator::Way::kComesFirst, "");  // the library's own note
      return;
    }
    if (exports_malloc && shares_free_.empty() && MaySeeDeletesAlone(at, allocator))
      shares_free_ = path;
    if (exports_malloc && !allocator.empty()) {
      const std::vector<std::string> called = CalledNames(at);
      std::vector<std::string> missing = UnseenFrees(at);
      if (!called.empty()) {
        const bool has_cure = LibstdcxxsNewWouldDo(at, allocator, called);
        missing.insert(missing.begin(),
                       absl::StrCat("what is allocated by its own ", absl::StrJoin(called, ", "),
                                    " is not in this trace, only what is by malloc and its kin",
                                    has_cure ? kPutsItFirst : ""));
      }
      if (missing.empty()) return;
      Add(path, allocator, UnseenAllocator::Way::kOwnNames,
          absl::StrCat(path, " is ", allocator, ": ", absl::StrJoin(missing, "; ")));
      if (called.empty()) return;
      // What mallocx, tc_malloc and the like give out may end by free().
      const bool by_new_alone = called.size() == 1 && called[0] == kOperatorNewName;
      if (shares_free_.empty() && !by_new_alone) shares_free_ = path;
      return;
    }
    if (exports_malloc) {
      // Other modules' calls of it come through us; its own calls need not.
      if (one.names.symbolic) {
        Add(path, allocator, UnseenAllocator::Way::kHidden,
            absl::StrCat(path,
                         " has a malloc of its own and binds it to itself (-Bsymbolic): what it "
                         "allocates with that is not in this trace"));
        return;
      }
      std::string has = "a malloc";
      std::vector<std::string> missing = UnseenFrees(at);
      if (!one.use(kMallocName).by_name && !CalledNames(at).empty()) {
        absl::StrAppend(&has, " and an ", kOperatorNewName);
        missing.insert(missing.begin(),
                       absl::StrCat("what is allocated by that ", kOperatorNewName,
                                    " is not in this trace, only what is by malloc and its kin"));
      }
      if (missing.empty()) return;
      Add(path, allocator, UnseenAllocator::Way::kOwnNames,
          absl::StrCat(path, " has ", has, " of its own: ", absl::StrJoin(missing, "; ")));
      return;
    }
    if (hides_malloc || IsLinkedIn(one)) {
      const bool may_be_idle = allocator == "mimalloc" && IsPython(one) &&
                               MimallocUseIn(*one.module, analysis_) == MimallocUse::kNotKnown;
      Add(path, allocator, UnseenAllocator::Way::kHidden,
          absl::StrCat(path, " has ", named, " inside", hides_malloc ? ", with hidden names" : "",
                       may_be_idle ? ", and it is not known whether it used that" : "",
                       ": what it allocates with that is not in this trace, only its mappings"));
      return;
    }
    const std::vector<std::string> called = CalledNames(at);
    if (called.empty()) return;
    Add(path, allocator, UnseenAllocator::Way::kOwnNames,
        absl::StrCat(path, " is ", allocator, ": what is allocated by its ",
                     absl::StrJoin(called, ", "), " is not in this trace, only its mappings"));
  }

  // An allocator in the program, or with names that nobody else sees.
  bool IsLinkedIn(const Examined& one) const {
    if (MayHaveAllocatorLinkedIn(*one.module)) return true;
    for (size_t i = 0; i < kNameCount; ++i) {
      if (kAllocatorNames[i].allocator[0] != 0 && one.use(i).hidden) return true;
    }
    return false;
  }

  void Add(const std::string& module, const std::string& allocator, UnseenAllocator::Way way,
           const std::string& note) {
    for (const UnseenAllocator& known : analysis_.coverage.unseen_allocators) {
      if (known.module == module && known.way == way) return;  // loaded again
    }
    analysis_.coverage.unseen_allocators.push_back({module, allocator, way});
    if (!note.empty()) analysis_.coverage.notes.push_back({note});
  }

  Analysis& analysis_;
  std::vector<Examined> all_;
  size_t tracer_ = SIZE_MAX;
  std::string shares_free_;  // what Run() returns
};

// What jemalloc's operator delete ends comes to free(), what its operator new gives out does not
// come to us: each object at the address of a block that was freed looks like a double free. The
// program's own double frees look the same, and are not told apart. `allocator`: who may have given
// them out; empty: nobody.
void TakeBackSecondFrees(const std::string& allocator, Analysis* analysis) {
  if (allocator.empty()) return;
  InvalidFrees& frees = analysis->invalid_frees;
  uint64_t taken_back = 0;
  std::erase_if(frees.stories, [&taken_back](const InvalidFree& story) {
    if (story.kind == InvalidFree::Kind::kInsideLive) return false;
    taken_back += story.times;
    return true;
  });
  if (taken_back == 0) return;
  frees.told -= taken_back;
  frees.of_unseen_blocks += taken_back;
  analysis->coverage.notes.push_back({absl::StrCat(
      words::Plural(taken_back, "free"), " of blocks that were freed before ",
      taken_back == 1 ? "is" : "are", " not told as double frees: ", allocator,
      " may have given out other blocks there in between, which are not in this trace")});
}

// `shares_free`: what Survey::Run() returned.
void TakeBackWhatIsNotSure(const std::string& shares_free, Analysis* analysis) {
  const bool calls_itself =
      std::ranges::any_of(analysis->coverage.counters, [](const auto& counter) {
        return counter.first == format::kAllocatorCallsItself && counter.second != 0;
      });
  TakeBackSecondFrees(
      shares_free.empty() && calls_itself ? "the allocator, which calls itself by name," : shares_free,
      analysis);
}

}  // namespace

void FillUnseenAllocators(const FindModuleNames& find, Analysis* analysis) {
  TakeBackWhatIsNotSure(Survey(find, analysis).Run(), analysis);
}

void UnseenAllocatorsByProgram::Fill(Analysis* analysis) {
  Coverage& coverage = analysis->coverage;
  // A process with other modules, as a script with other extensions, is another one; and a CPython
  // that uses another allocator.
  std::string modules;
  for (const ModuleInfo& module : analysis->modules) {
    absl::StrAppend(&modules, module.path, "\n", module.build_id, "\n");
    if (MayHaveAllocatorLinkedIn(module))
      modules += static_cast<char>(MimallocUseIn(module, *analysis));
    modules += UsesPymalloc(module, *analysis) ? 'p' : '-';
  }
  const auto [at, is_new] = found_.try_emplace(std::move(modules));
  Found& found = at->second;
  if (!is_new) {
    coverage.modules_not_examined += found.modules_not_examined;
    coverage.own_operator_delete = found.own_operator_delete;
    coverage.pymalloc = found.pymalloc;
    coverage.unseen_allocators.insert(coverage.unseen_allocators.end(), found.allocators.begin(),
                                      found.allocators.end());
    coverage.notes.insert(coverage.notes.end(), found.notes.begin(), found.notes.end());
    TakeBackWhatIsNotSure(found.shares_free, analysis);
    return;
  }
  const size_t notes_before = coverage.notes.size();
  found.shares_free = Survey(find_, analysis).Run();
  found.modules_not_examined = coverage.modules_not_examined;
  found.own_operator_delete = coverage.own_operator_delete;
  found.pymalloc = coverage.pymalloc;
  found.allocators = coverage.unseen_allocators;
  found.notes.assign(coverage.notes.begin() + static_cast<ptrdiff_t>(notes_before),
                     coverage.notes.end());
  TakeBackWhatIsNotSure(found.shares_free, analysis);
}

FindModuleNames ModuleNamesBy(symbolizer::SymbolizerProcess* process) {
  // Each is a process. The largest programs have some hundred modules.
  constexpr size_t kMost = 500;
  constexpr std::chrono::seconds kTime{10};
  struct Spent {
    size_t asked = 0;
    std::chrono::steady_clock::time_point begin;
  };
  const auto spent = std::make_shared<Spent>();
  return [=](const symbolizer::Module& module, std::span<const std::string_view> names,
             std::span<const std::string_view> texts) {
    const auto now = std::chrono::steady_clock::now();
    if (spent->asked++ == 0) spent->begin = now;
    if (spent->asked > kMost || now - spent->begin > kTime) {
      symbolizer::ModuleNames unknown;
      unknown.state = symbolizer::ModuleState::kUnreadable;
      unknown.uses.resize(names.size());
      unknown.contains.resize(texts.size());
      return unknown;
    }
    return process->FindNames(module, names, texts);
  };
}

}  // namespace memtrace::report
