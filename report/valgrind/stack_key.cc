#include "report/valgrind/stack_key.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "report/base/page.h"
#include "report/base/path.h"
#include "report/names/fingerprint.h"
#include "report/names/frames_filter.h"
#include "report/names/function_name.h"
#include "symbolizer/demangle.h"

namespace memtrace::report::valgrind {
namespace {

using render::LossFrame;

bool HasNoName(const LossFrame& frame) { return frame.function.empty() || frame.function == "???"; }

// Where the kernel starts the loader, whose code there calls the constructors of libraries:
// Valgrind has no name for it.
bool IsStartOfLoader(const LossFrame& frame) {
  if (frame.function == "_dl_start_user") return true;
  const absl::string_view file = FileNameOf(frame.object);
  return HasNoName(frame) && (absl::StartsWith(file, "ld-") || absl::StartsWith(file, "ld.so"));
}

bool IsOuterEnd(const LossFrame& frame, const std::string& bare) {
  return frame.function == "(below main)" || names::IsStartOf(frame.function, frame.object) ||
         names::IsStartOf(bare, frame.object);
}

std::string NameOf(const LossFrame& frame) {
  if (!HasNoName(frame)) return BareFunction(frame.function);
  // The loader's name for a library and that of its file differ behind ".so".
  absl::string_view object = FileNameOf(frame.object);
  if (const size_t version = object.find(".so."); version != object.npos) {
    object = object.substr(0, version + 3);
  }
  return absl::StrCat("in ", object);
}

// Whether two calls in the file of a frame without a name are told apart. Code that is in no file
// lies anywhere.
bool TellsPlaces(const LossFrame& frame, MatchStage stage) {
  if (frame.object.empty() || frame.ip == 0 || stage == MatchStage::kShape) return false;
  return stage != MatchStage::kFiles || IsProjectFrame(frame);
}

// glibc's code for it, to which Valgrind gives no name.
bool IsReturnFromSignal(const LossFrame& frame) {
  if (frame.function == "__restore_rt") return true;
  return HasNoName(frame) && (frame.object.empty() || names::IsLibc(frame.object));
}

bool IsMemchecks(const LossFrame& frame) {
  return absl::StrContains(FileNameOf(frame.object), "vgpreload_");
}

// The name without what compilers of other languages put around it and debug information
// does not have: gfortran's module, GNAT's library procedure, and the number of a
// function within another one.
absl::string_view WithoutDecoration(absl::string_view name) {
  if (absl::StartsWith(name, "__")) {
    if (const size_t module = name.find("_MOD_"); module != name.npos && module + 5 < name.size()) {
      name = name.substr(module + 5);
    }
  }
  if (name.size() > 5) absl::ConsumePrefix(&name, "_ada_");
  const size_t dot = name.rfind('.');
  const bool numbered = dot != name.npos && dot > 0 && dot + 1 < name.size() &&
                        name.find_first_not_of("0123456789", dot + 1) == name.npos;
  return numbered ? name.substr(0, dot) : name;
}

}  // namespace

std::string BareFunction(absl::string_view function) {
  std::string demangled;
  if (const std::string_view name(function.data(), function.size()); symbolizer::IsMangled(name)) {
    demangled = symbolizer::Demangle(name);
    function = demangled;
  }
  if (const size_t version = function.find('@'); version != function.npos && version > 0) {
    function = function.substr(0, version);
  }
  const std::string identity = names::WithoutTemplates(FunctionIdentity(function));
  const absl::string_view bare = names::LastName(names::QualifiedName(identity));
  // A pointer to a lambda leads to this function of GCC's, which calls the lambda.
  if (bare == "_FUN") return "operator()";
  return std::string(WithoutDecoration(bare.empty() ? function : bare));
}

bool IsProjectFrame(const LossFrame& frame) {
  if (names::IsSystemModule(frame.object) || frame.object.empty()) return false;
  if (IsMemchecks(frame)) return false;
  if (frame.function.empty()) return true;
  return !names::IsAllocatorFunction(frame.function) && !IsOuterEnd(frame, "");
}

namespace {

// The innermost frame is the allocator's: not of blocks that the program's own allocator told of
// (memtrace.h, Valgrind's client requests), which memcheck has without one.
bool Allocates(const LossFrame& frame) {
  static constexpr absl::string_view kNames[] = {
      "malloc",   "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc",
      "memalign", "valloc", "pvalloc", "pool_alloc",   "block_alloc"};
  return IsMemchecks(frame) || absl::StartsWith(frame.function, "operator new") ||
         std::find(std::begin(kNames), std::end(kNames), BareFunction(frame.function)) !=
             std::end(kNames);
}

// By these the program tells memtrace of a block; Valgrind it tells by a client request, which is
// no call and lies beside it.
bool IsOwnAllocators(const LossFrame& frame) {
  return frame.function == "pool_alloc" || frame.function == "block_alloc";
}

}  // namespace

StackWords WordsOf(const render::Loss& loss, MatchStage stage) {
  StackWords out;
  out.cut = loss.cut;
  // The function that allocated, whose file differs; memcheck's posix_memalign calls its memalign.
  size_t first = loss.stack.empty() || !Allocates(loss.stack.front()) ? 0 : 1;
  // Whether the next frame is at a call.
  bool calls = first == 1 && !IsOwnAllocators(loss.stack.front());
  while (first < loss.stack.size() && IsMemchecks(loss.stack[first])) ++first;
  for (size_t i = first; i < loss.stack.size(); ++i) {
    const LossFrame& innermost = loss.stack[i];
    const bool by_call = stage == MatchStage::kCalls || stage == MatchStage::kPlaces;
    if (by_call && innermost.ip != 0) {
      while (i + 1 < loss.stack.size() && loss.stack[i + 1].ip == innermost.ip) ++i;
    }
    const LossFrame& frame = loss.stack[i];
    if (IsMemchecks(frame)) continue;  // around libc's setenv() and putenv()
    if (IsReturnFromSignal(frame)) {
      // From another stack Valgrind finds no way on.
      if (i + 1 == loss.stack.size()) out.cut = true;
      calls = false;  // the signal came anywhere
      continue;
    }
    const std::string name = NameOf(frame);
    const std::string word = HasNoName(frame) && TellsPlaces(frame, stage) && calls
                                 ? absl::StrFormat("%s+0x%03x", name, frame.ip % kPageBytes)
                                 : name;
    calls = true;
    // Valgrind's replacement of operator new calls no malloc; a library's own does.
    const bool allocates = out.words.empty() && absl::StartsWith(name, "operator new");
    const bool ends =
        IsOuterEnd(frame, name) || (i + 1 == loss.stack.size() && IsStartOfLoader(frame));
    if (ends) {
      out.cut = false;
      break;
    }
    if (!allocates) {
      switch (stage) {
        case MatchStage::kNone:
          break;
        case MatchStage::kLines:
        case MatchStage::kCalls:
          out.words.push_back(
              absl::StrCat(word, "\t", FileNameOf(innermost.file), "\t", innermost.line));
          break;
        case MatchStage::kPlaces:
          out.words.push_back(
              innermost.file.empty() || innermost.line == 0
                  ? word
                  : absl::StrCat("\t", FileNameOf(innermost.file), "\t", innermost.line));
          break;
        case MatchStage::kFunctions:
        case MatchStage::kFiles:
        case MatchStage::kShape:
          out.words.push_back(word);
          break;
        case MatchStage::kProject:
          if (IsProjectFrame(frame)) out.words.push_back(word);
          break;
      }
    }
    if (name == "main") {
      out.cut = false;
      break;
    }
  }
  return out;
}

}  // namespace memtrace::report::valgrind
