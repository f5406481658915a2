#include "report/valgrind/difference_reasons.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/leak/leak_kinds.h"
#include "report/names/frames_filter.h"
#include "report/names/runtime_functions.h"
#include "report/names/site_symbols.h"
#include "report/valgrind/glib_under_valgrind.h"
#include "report/words/units.h"

namespace memtrace::report::valgrind {
namespace {

using render::LossFrame;

// Whose memory it is, by a function of the stack that no program calls by itself.
enum class Owner { kProgram, kLibc, kCxx, kDtv, kTls, kLoader };

constexpr std::pair<absl::string_view, Owner> kOwners[] = {
    {"allocate_dtv", Owner::kDtv},
    {"_dl_allocate_tls", Owner::kDtv},
    {"_dl_resize_dtv", Owner::kDtv},
    {"__tls_get_addr", Owner::kTls},
    {"tls_get_addr_tail", Owner::kTls},
    {"allocate_and_init", Owner::kTls},
    {"_dl_open_worker", Owner::kLoader},
    {"dl_open_worker", Owner::kLoader},
    {"dl_open_worker_begin", Owner::kLoader},
    {"_dl_new_object", Owner::kLoader},
    {"_dl_map_object_deps", Owner::kLoader},
    {"_dl_find_object_update", Owner::kLoader},
    {"_IO_file_doallocate", Owner::kLibc},
    {"_IO_wfile_doallocate", Owner::kLibc},
    {"_nl_load_locale_from_archive", Owner::kLibc},
    {"_nl_find_locale", Owner::kLibc},
    {"_nl_make_l10nflist", Owner::kLibc},
    {"__gconv_open", Owner::kLibc},
    {"__gconv_read_conf", Owner::kLibc},
    {"__gconv_find_transform", Owner::kLibc},
    {"tzset_internal", Owner::kLibc},
    {"__tzfile_read", Owner::kLibc},
    {"__nss_module_allocate", Owner::kLibc},
    {"__nss_database_get", Owner::kLibc},
    {"nss_action_parse", Owner::kLibc},
    {"__new_exitfn", Owner::kLibc},
    {"__add_to_environ", Owner::kLibc},
    {"set_binding_values", Owner::kLibc},
    {"__check_pf", Owner::kLibc},
    {"__resolv_conf_load", Owner::kLibc},
    {"nss_database_reload", Owner::kLibc},
};

// These programs call by themselves, and may have functions of their own by such names, or by those
// of runtime_functions.h.
constexpr absl::string_view kOfLibcItself[] = {"setenv",     "putenv",         "setlocale",
                                               "textdomain", "bindtextdomain", "getmntent"};

bool KeepsInLibc(absl::string_view function) {
  const auto is_it = [&](const RuntimeFunction& known) { return known.name == function; };
  return std::find(std::begin(kOfLibcItself), std::end(kOfLibcItself), function) !=
             std::end(kOfLibcItself) ||
         std::any_of(std::begin(kRuntimeFunctions), std::end(kRuntimeFunctions), is_it) ||
         std::any_of(std::begin(kRuntimeBuffers), std::end(kRuntimeBuffers), is_it);
}

bool AnyProjectFrame(const std::vector<LossFrame>& stack) {
  return std::any_of(stack.begin() + (stack.empty() ? 0 : 1), stack.end(), IsProjectFrame);
}

// Frame `owner` is of the runtime. dlopen() and thread-local storage run the constructors of
// plugins, and what these allocate is theirs; in a static program all is of one object.
bool RunsOthersCode(const std::vector<LossFrame>& stack, size_t owner) {
  return std::any_of(stack.begin() + 1, stack.begin() + static_cast<ptrdiff_t>(owner),
                     [&](const LossFrame& frame) {
                       return names::RunsConstructors(BareFunction(frame.function)) ||
                              (frame.object != stack[owner].object && IsProjectFrame(frame));
                     });
}

Owner OwnerOf(const std::vector<LossFrame>& stack) {
  for (size_t i = 1; i < stack.size(); ++i) {
    const std::string name = BareFunction(stack[i].function);
    Owner found = Owner::kProgram;
    for (const auto& [known, owner] : kOwners) {
      if (name == known) found = owner;
    }
    if (names::IsLibc(stack[i].object) && KeepsInLibc(name)) found = Owner::kLibc;
    if (found != Owner::kProgram) return RunsOthersCode(stack, i) ? Owner::kProgram : found;
  }
  // The emergency pool for exceptions: allocated by a constructor of libstdc++.
  const bool in_cxx = stack.size() > 1 &&
                      (absl::StrContains(stack[1].object, "/libstdc++.") ||
                       absl::StrContains(stack[1].object, "/libc++abi."));
  return in_cxx && !AnyProjectFrame(stack) ? Owner::kCxx : Owner::kProgram;
}

bool IsAlignedNew(const std::vector<LossFrame>& stack) {
  return std::any_of(stack.begin(), stack.begin() + std::min<ptrdiff_t>(std::ssize(stack), 3),
                     [](const LossFrame& frame) {
                       return absl::StartsWith(frame.function, "operator new") &&
                              absl::StrContains(frame.function, "align_val_t");
                     });
}

// The program's own, which stands for itself here, with the malloc that it calls.
bool IsOwnNew(const std::vector<LossFrame>& stack) {
  if (stack.empty() || !absl::StartsWith(stack.front().function, "operator new")) return false;
  if (stack.front().file.empty()) return false;  // perhaps libstdc++'s, within the program
  const std::string& object = stack.front().object;
  return !object.empty() && !names::IsSystemModule(object) && !SiteSymbols::IsCxxRuntime(object) &&
         !absl::StrContains(object, "/vgpreload_");
}

uint64_t Blocks(const LostOnASide& side, LeakKind kind) {
  return side.kinds[static_cast<size_t>(kind)].blocks;
}
bool HasLost(const LostOnASide& side) {
  return Blocks(side, LeakKind::kDefinite) + Blocks(side, LeakKind::kIndirect) > 0;
}
bool HasFound(const LostOnASide& side) {
  return Blocks(side, LeakKind::kReachable) + Blocks(side, LeakKind::kPossible) > 0;
}

// Here than there.
bool HasMoreLost(const ComparedLeak& leak) {
  return Blocks(leak.here, LeakKind::kDefinite) + Blocks(leak.here, LeakKind::kIndirect) >
         Blocks(leak.there, LeakKind::kDefinite) + Blocks(leak.there, LeakKind::kIndirect);
}
bool HasSameKinds(const ComparedLeak& leak) {
  for (size_t kind = 0; kind < kLeakKinds; ++kind) {
    if (leak.here.kinds[kind].blocks != leak.there.kinds[kind].blocks) return false;
  }
  return true;
}

bool OnlyKindsOutside(const LostOnASide& side, LeakKindSet shown) {
  for (size_t kind = 0; kind < kLeakKinds; ++kind) {
    const bool is_shown = shown.Has(static_cast<LeakKind>(kind)) ||
                          static_cast<LeakKind>(kind) == LeakKind::kUnfreed;
    if (side.kinds[kind].blocks > 0 && is_shown) return false;
  }
  return true;
}

// The same blocks are lost on both sides, and not the same of them are definitely lost.
bool IsOfACircle(const ComparedLeak& leak) {
  const auto at = [](const LostOnASide& side, LeakKind kind) {
    return side.kinds[static_cast<size_t>(kind)];
  };
  const auto lost = [&](const LostOnASide& side) {
    const LeakAmount definite = at(side, LeakKind::kDefinite),
                     indirect = at(side, LeakKind::kIndirect);
    return std::pair(definite.bytes + indirect.bytes, definite.blocks + indirect.blocks);
  };
  const auto same = [&](LeakKind kind) {
    return at(leak.here, kind).blocks == at(leak.there, kind).blocks &&
           at(leak.here, kind).bytes == at(leak.there, kind).bytes;
  };
  return leak.verdict == Verdict::kKindDiffers && lost(leak.here) == lost(leak.there) &&
         same(LeakKind::kPossible) && same(LeakKind::kReachable) && same(LeakKind::kUnfreed);
}

bool IsOnlyHere(const ComparedLeak& leak) { return leak.verdict == Verdict::kOnlyHere; }
bool IsOnlyThere(const ComparedLeak& leak) { return leak.verdict == Verdict::kOnlyThere; }

// A reason that explains the difference fully.
void Expect(ComparedLeak* leak, std::string reason) {
  leak->reasons.push_back(std::move(reason));
  leak->expected = true;
}

void ExplainKinds(const render::LossList& here, const StackFacts& facts, bool is_glibs,
                  ComparedLeak* leak) {
  const LostOnASide &a = leak->here, &b = leak->there;
  if (a.total().blocks == 0 || b.total().blocks == 0) return;
  const auto less = [&](LeakKind kind) { return Blocks(a, kind) < Blocks(b, kind); };
  const auto more = [&](LeakKind kind) { return Blocks(a, kind) > Blocks(b, kind); };
  std::vector<std::string>& reasons = leak->reasons;
  if (HasFound(a) && HasLost(b) && (less(LeakKind::kDefinite) || less(LeakKind::kIndirect)) &&
      (more(LeakKind::kReachable) || more(LeakKind::kPossible))) {
    reasons.push_back(absl::StrCat(
        "something here still leads to it, and memtrace report --why shows what: a word that "
        "memcheck does "
        "not follow, for it was never initialised or is a stale one on a stack; the kernel, which "
        "has a "
        "signal stack; or a pointer of the C library that Valgrind has cleared",
        facts.kept_by_mapping
            ? "; or memory that the program mapped: what it mapped or unmapped by the order of "
              "addresses differs, for Valgrind maps upwards and Linux downwards (setarch -L "
              "memtrace run makes the runs alike)"
            : ""));
  }
  if (HasLost(a) && HasFound(b) && (more(LeakKind::kDefinite) || more(LeakKind::kIndirect)) &&
      (less(LeakKind::kReachable) || less(LeakKind::kPossible))) {
    const bool partly = here.scan != nullptr && !here.scan->notes.empty();
    reasons.push_back(partly
                          ? absl::StrCat("memory that points at it was perhaps not scanned here: ",
                                         absl::StrJoin(here.scan->notes, "; "))
                          : "what pointed at it there was gone when the memory was scanned here");
  }
  if (more(LeakKind::kDefinite) && less(LeakKind::kPossible)) {
    reasons.push_back(
        "perhaps a number looks like an address of it there, where memory lies low: a "
        "larger block is hit more often; valgrind --aspace-minaddr=0x100000000 puts it "
        "where no number of 32 bits is");
  }
  if (!IsOfACircle(*leak) && ((more(LeakKind::kDefinite) && less(LeakKind::kIndirect)) ||
                              (less(LeakKind::kDefinite) && more(LeakKind::kIndirect)))) {
    reasons.push_back("who leads to whom among the lost blocks differs: pointers, or addresses");
  }
  if ((more(LeakKind::kReachable) && less(LeakKind::kPossible)) ||
      (less(LeakKind::kReachable) && more(LeakKind::kPossible))) {
    if (!is_glibs) {
      reasons.push_back(
          "only one of the two saw a pointer to the start of it, not into it: stale words, "
          "or the C library's own pointers to free memory beside it");
    }
  }
}

// Memory of a runtime, which the program did not ask for.
void ExplainOwner(const ValgrindRun& there, ComparedLeak* leak) {
  switch (OwnerOf(leak->stack)) {
    case Owner::kProgram:
      break;
    case Owner::kCxx:
      if (IsOnlyHere(*leak) && there.frees_cxx) {
        Expect(leak, "memory of the C++ runtime's own, which Valgrind has freed before it searches "
                     "(--run-cxx-freeres)");
      } else {
        Expect(leak, "memory of the C++ runtime's own");
      }
      break;
    case Owner::kLibc:
      if (IsOnlyHere(*leak) && there.frees_libc) {
        Expect(leak, "memory of the C library's own, which Valgrind has freed before it searches "
                     "(--run-libc-freeres)");
      } else if (!IsOnlyThere(*leak)) {
        Expect(leak,
               "memory of the C library's own: the two runs have different files and streams open");
      }
      break;
    case Owner::kDtv:
      Expect(
          leak,
          "a thread's table of TLS blocks: its size depends on the libraries that are loaded, and "
          "each tool brings its own; only a pointer into it exists");
      break;
    case Owner::kTls:
      Expect(leak,
             "a library's TLS block of a thread, allocated when it was first used: only a pointer "
             "into it exists");
      break;
    case Owner::kLoader:
      Expect(leak, "of the dynamic loader: each tool brings libraries of its own");
      break;
  }
}

// memcheck stands in for operator new, and here it is malloc that is seen.
void ExplainOperatorNew(ComparedLeak* leak) {
  if (leak->verdict == Verdict::kAmountDiffers &&
      leak->here.total().blocks == leak->there.total().blocks &&
      leak->here.total().bytes > leak->there.total().bytes && IsAlignedNew(leak->stack)) {
    Expect(
        leak,
        "another size, from aligned operator new: libstdc++ rounds up to the alignment before it "
        "allocates, which is what is seen here, and memcheck stands in for operator new itself");
  }
  if (IsOwnNew(leak->stack)) {
    const std::string why =
        "from an operator new of the program's own: what that takes from malloc is seen here, with "
        "what it puts in "
        "front, so that pointers to the objects point into it; memcheck stands in for it and has "
        "the objects";
    const bool same_blocks = leak->here.total().blocks == leak->there.total().blocks;
    const bool interior =
        Blocks(leak->here, LeakKind::kPossible) > Blocks(leak->there, LeakKind::kPossible) &&
        !HasMoreLost(*leak);
    if (same_blocks && leak->here.total().bytes >= leak->there.total().bytes &&
        (interior || HasSameKinds(*leak))) {
      Expect(leak, why);
    } else {
      leak->reasons.push_back(why);
    }
  }
}

// What one of the two did not look for, or does not show.
void ExplainWhatWasAsked(const render::LossList& here, const ValgrindRun& there,
                         ComparedLeak* leak) {
  if (IsOnlyHere(*leak) && OnlyKindsOutside(leak->here, there.shown)) {
    Expect(leak, "leaks of this kind are not in the file: Valgrind was not asked for them "
                 "(--show-leak-kinds=all)");
  }
  if (here.scan == nullptr && there.shown != LeakKindSet::OfScans() && !IsOnlyThere(*leak)) {
    Expect(leak, "the memory was not scanned here, and Valgrind was not asked for all kinds "
                 "(--show-leak-kinds=all)");
  }
  if (!IsOnlyThere(*leak) && !there.suppressions.empty() && !leak->expected) {
    std::vector<std::string> names;
    for (const auto& [name, count] : there.suppressions) {
      if (names.size() < 3) names.push_back(absl::StrCat(name, " (", count, ")"));
    }
    leak->reasons.push_back(absl::StrCat("perhaps suppressed there, where these were used: ",
                                         absl::StrJoin(names, ", ")));
  }
}

// Under Valgrind the stack is of malloc in any case.
bool IsOfSlabsHere(const ComparedLeak& leak, const StackFacts& facts) {
  return IsOfASlice(leak.stack) && !(IsOnlyThere(leak) ? facts.slices_of_malloc
                                                       : IsASliceOfMalloc(leak.stack));
}

// What the program, or its GLib, does for one of the tools only.
void ExplainWhatTheProgramDid(const Analysis& analysis, const render::LossList& here,
                              const StackFacts& facts, ComparedLeak* leak) {
  std::vector<std::string>& reasons = leak->reasons;
  if (IsOnlyThere(*leak) && here.scan != nullptr && here.scan->ignored.blocks != 0) {
    reasons.push_back(absl::StrCat(
        "perhaps of the ", words::Plural(here.scan->ignored.blocks, "block"), " (",
        words::ExactBytes(here.scan->ignored.bytes),
        ") that the program declared to be no leaks (memtrace.h), which Valgrind does not know"));
  }
  if (IsOnlyThere(*leak) && analysis.coverage.stopped_allocations != 0) {
    reasons.push_back(
        "perhaps allocated while the program had stopped the recording (memtrace_stop())");
  }
  if (IsOfSlabsHere(*leak, facts)) {
    reasons.push_back(
        "GLib takes each of its slices from malloc under Valgrind, and slabs of them here; with "
        "G_SLICE=always-malloc it does so here too");
  }
}

// A fork child's trace begins with the fork. True: that is why.
bool ExplainFork(const StackFacts& facts, ComparedLeak* leak) {
  if (!IsOnlyThere(*leak) || !facts.inherited || !leak->reasons.empty() ||
      IsOfASlice(leak->stack)) {
    return false;
  }
  Expect(leak, "allocated before the fork, by the process that forked this one: no allocation here "
               "has this stack, and the trace of a fork child has no blocks of its parent's");
  return true;
}

// Stacks that are not whole, or have no names.
void ExplainStacks(const ValgrindRun& there, const StackFacts& facts, ComparedLeak* leak) {
  std::vector<std::string>& reasons = leak->reasons;
  if (facts.there_cut && IsOnlyThere(*leak)) {
    reasons.push_back(leak->stack.size() >= there.callers
                          ? absl::StrCat("the stack there ends after ", there.callers,
                                         " callers; --num-callers=500 has all of it")
                          : "the stack there is not complete");
  }
  if (facts.here_cut) reasons.push_back("the stack here is not complete");
  if (facts.same_shape) {
    reasons.push_back(absl::StrCat(
        "a leak only ", IsOnlyHere(*leak) ? "there" : "here",
        " has a stack that differs in nothing but where its calls lie in code without names: other "
        "calls, or the same ones in another build"));
  }
  if (IsOnlyThere(*leak) &&
      std::any_of(leak->stack.begin(), leak->stack.end(), [](const LossFrame& frame) {
        return frame.object.empty() && frame.function.empty();
      })) {
    reasons.push_back(
        "a library that was unloaded has no names there: valgrind --keep-debuginfo=yes keeps them");
  }
}

// What makes the runs or their files differ as a whole.
void ExplainRuns(const Analysis& analysis, const ValgrindRun& there, ComparedLeak* leak) {
  std::vector<std::string>& reasons = leak->reasons;
  if (leak->verdict == Verdict::kAmountDiffers || IsOnlyHere(*leak) || IsOnlyThere(*leak)) {
    // Of a fork child, Valgrind counts what its parent allocated too.
    if (there.heap.has_value() && there.heap->allocations != analysis.totals.allocations &&
        !analysis.process.forked) {
      reasons.push_back(
          absl::StrCat("the runs were not the same: ", words::Count(analysis.totals.allocations),
                       " allocations here, ", words::Count(there.heap->allocations), " there"));
    }
    if (analysis.process.end != ProcessInfo::End::kExit) {
      reasons.push_back("the program did not end by itself here");
    }
    if (!there.damage.empty()) {
      reasons.push_back(absl::StrCat("the file of Valgrind's is not whole: ", there.damage));
    }
    if (analysis.coverage.dropped_events > 0) {
      reasons.push_back(absl::StrCat(words::Count(analysis.coverage.dropped_events),
                                     " events are missing in the trace"));
    }
    if (analysis.process.sample_bytes != 0) {
      reasons.push_back("the trace is of a sample: its figures are estimates");
    }
  }
}

}  // namespace

bool IsOfARuntime(const std::vector<LossFrame>& stack) {
  return OwnerOf(stack) != Owner::kProgram;
}

bool HasEveryAllocation(const Analysis& analysis) {
  const Coverage& coverage = analysis.coverage;
  return analysis.process.end == ProcessInfo::End::kExit && analysis.process.sample_bytes == 0 &&
         !coverage.events_missing && coverage.stops == 0 && coverage.stopped_allocations == 0 &&
         coverage.window_begin_ns == 0 && !coverage.recording_end_ns.has_value() &&
         !coverage.interrupted && coverage.unseen_allocators.empty();
}

void Explain(const Analysis& analysis, const render::LossList& here, const ValgrindRun& there,
             const StackFacts& facts, ComparedLeak* leak) {
  if (leak->verdict == Verdict::kAgree) {
    if (here.scan != nullptr && leak->here.indirect_bytes != leak->there.indirect_bytes) {
      leak->reasons.push_back("what it leads to is counted with another leak that leads there too");
    }
    return;
  }
  ExplainOwner(there, leak);
  ExplainOperatorNew(leak);
  ExplainWhatWasAsked(here, there, leak);
  GLibReason glib = GLibsReason(*leak, facts.declared_by_glib);
  ExplainKinds(here, facts, !glib.text.empty(), leak);
  if (!glib.text.empty()) {
    leak->expected |= glib.is_all;
    leak->reasons.push_back(std::move(glib.text));
  }
  if (ExplainFork(facts, leak)) return;
  ExplainWhatTheProgramDid(analysis, here, facts, leak);
  ExplainStacks(there, facts, leak);
  ExplainRuns(analysis, there, leak);
}

void ExplainCircles(std::vector<ComparedLeak>* leaks) {
  int64_t more_definite = 0;  // here than there
  for (const ComparedLeak& leak : *leaks) {
    if (!IsOfACircle(leak)) continue;
    more_definite += static_cast<int64_t>(Blocks(leak.here, LeakKind::kDefinite)) -
                     static_cast<int64_t>(Blocks(leak.there, LeakKind::kDefinite));
  }
  for (ComparedLeak& leak : *leaks) {
    if (!IsOfACircle(leak)) continue;
    leak.reasons.push_back(
        "of lost blocks that lead to one another, perhaps in a circle, the one with the lowest "
        "address is "
        "taken for the first, and addresses differ");
    leak.expected |= more_definite == 0;
  }
}

}  // namespace memtrace::report::valgrind
