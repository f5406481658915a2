#include "report/suppress/memcheck_stack.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "report/names/frames_filter.h"
#include "report/names/function_name.h"
#include "report/render/free_errors.h"
#include "report/render/view.h"
#include "symbolizer/demangle.h"

namespace memtrace::report::suppress {
namespace {

using format::AllocFunction;

constexpr absl::string_view kUnknown = "???";
// Where Debian has it; patterns for it begin with "*/vgpreload".
constexpr absl::string_view kMemcheckLibrary =
    "/usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so";
// The frames that Valgrind records unless --num-callers says more: a suppression with more
// frames would never match.
constexpr size_t kMostFrames = 12;

bool IsOperatorNew(const Frame& frame) {
  return absl::StartsWith(frame.linkage_name, "_Znw") ||
         absl::StartsWith(frame.linkage_name, "_Zna") ||
         absl::StartsWith(frame.function, "operator new");
}

// Makes the name of operator new[] from that of operator new, and the other way round.
std::string OtherNew(absl::string_view name) {
  if (absl::ConsumePrefix(&name, "operator new[]")) return absl::StrCat("operator new", name);
  if (absl::ConsumePrefix(&name, "operator new")) return absl::StrCat("operator new[]", name);
  std::string other(name);
  if (absl::StartsWith(name, "_Znw")) other[3] = 'a';
  if (absl::StartsWith(name, "_Zna")) other[3] = 'w';
  return other;
}

const std::string& LinkageName(const Frame& frame) {
  return frame.linkage_name.empty() ? frame.function : frame.linkage_name;
}

// Blocks of pools and of the program's own allocators: as with memcheck's client requests the
// innermost frame is who told of them.
bool IsCustom(AllocFunction function) {
  return function == AllocFunction::kPoolAlloc || function == AllocFunction::kBlockAlloc;
}

// memcheck's are its memalign by another name; that of posix_memalign calls it, and
// both are on the stack.
bool ByMemalign(AllocFunction function) {
  return function == AllocFunction::kPosixMemalign || function == AllocFunction::kAlignedAlloc ||
         function == AllocFunction::kMemalign || function == AllocFunction::kValloc ||
         function == AllocFunction::kPvalloc;
}

// Where the digit of a constructor or destructor is, which have two names for one code: _ZN1AC1Ev
// and _ZN1AC2Ev, of a template _ZN1AC1IiEET_. npos: it is none.
size_t StructorDigit(absl::string_view mangled) {
  if (!absl::StartsWith(mangled, "_Z")) return mangled.npos;
  const auto at = [&](size_t i) { return i < mangled.size() ? mangled[i] : '\0'; };
  const auto is_either = [](char c) { return c == '1' || c == '2'; };
  for (size_t i = 2; i < mangled.size();) {
    const char c = mangled[i];
    if (absl::ascii_isdigit(static_cast<unsigned char>(c))) {  // 3foo
      const size_t end = std::min(mangled.find_first_not_of("0123456789", i), mangled.size());
      size_t length = 0;
      if (!absl::SimpleAtoi(mangled.substr(i, end - i), &length) || length > mangled.size()) break;
      i = end + length;
    } else if (c == 'S' || c == 'T') {  // S_, S0_, T1_; St and others have two letters
      const size_t end = mangled.find('_', i);
      const absl::string_view digits = mangled.substr(i + 1, end == mangled.npos ? 0 : end - i - 1);
      const bool is_reference =
          end != mangled.npos && std::all_of(digits.begin(), digits.end(), [](char d) {
            return absl::ascii_isdigit(static_cast<unsigned char>(d)) ||
                   absl::ascii_isupper(static_cast<unsigned char>(d));
          });
      i = is_reference ? end + 1 : i + 2;
    } else if (c == 'L' && absl::ascii_islower(static_cast<unsigned char>(at(i + 1)))) {  // Li5E
      i = std::min(mangled.find('E', i), mangled.size() - 1) + 1;
    } else if (c == 'C' && at(i + 1) == 'I' && is_either(at(i + 2))) {  // inherited
      return i + 2;
    } else if ((c == 'C' || c == 'D') && is_either(at(i + 1)) &&
               (at(i + 2) == 'E' || at(i + 2) == 'I')) {
      return i + 1;
    } else {
      ++i;
    }
  }
  return mangled.npos;
}

// How many of the innermost frames are operator new calling operator new: memcheck has the
// outermost of them only.
size_t OperatorNewFrames(absl::Span<const Frame* const> frames) {
  size_t count = 0;
  while (count < frames.size() && IsOperatorNew(*frames[count])) ++count;
  return count;
}

// glibc's functions have a name for its own calls, __GI___strdup, where Valgrind shows the exported
// one. Empty: it is no such name.
absl::string_view WithoutInternalPrefix(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "__GI_")) return "";
  while (absl::ConsumePrefix(&name, "_")) {
  }
  return name;
}

// The loader calls a file by the name by which it found it, and Valgrind by the one that it is
// mapped by: /lib/libx.so.1 is /usr/lib/libx.so.1.2. As far as the file is here.
const std::string& RealPath(const std::string& module) {
  static auto& known = *new std::map<std::string, std::string>;
  const auto [at, is_new] = known.try_emplace(module, module);
  if (is_new && absl::StartsWith(module, "/")) {
    if (char* const real = realpath(module.c_str(), nullptr)) {
      at->second = real;
      free(real);
    }
  }
  return at->second;
}

MemcheckFrame Seen(const Frame& frame) {
  MemcheckFrame seen;
  if (frame.function.empty() && frame.linkage_name.empty()) {
    seen.functions.emplace_back(kUnknown);
  } else {
    seen.functions.push_back(LinkageName(frame));
    if (frame.function != seen.functions.front()) seen.functions.push_back(frame.function);
    const absl::string_view qualified = names::QualifiedName(frame.function);
    if (!qualified.empty() && qualified != frame.function) {
      seen.functions.emplace_back(qualified);
    }
  }
  const std::string& linkage = LinkageName(frame);
  if (const absl::string_view exported = WithoutInternalPrefix(linkage); !exported.empty()) {
    seen.functions.emplace_back(exported);
  }
  if (const size_t digit = StructorDigit(linkage); digit != linkage.npos) {
    std::string other = linkage;
    other[digit] = other[digit] == '1' ? '2' : '1';
    seen.functions.push_back(std::move(other));
  }
  // An inlined function has no other name in the debug information, and Valgrind looks no further.
  if (frame.inlined) {
    const absl::string_view qualified = names::QualifiedName(frame.function);
    seen.bare = std::string(names::LastName(names::WithoutTemplates(qualified)));
    if (const absl::string_view last = names::LastName(qualified); last != qualified) {
      seen.functions.emplace_back(last);
    }
  }
  // Under Valgrind there is no clone3, and glibc takes the older call.
  if (linkage == "clone3" || linkage == "__clone3") seen.functions.emplace_back("clone");
  // Valgrind calls the outermost "(below main)", and the one that it calls by its name where that
  // calls constructors and not main.
  if (absl::StartsWith(linkage, "__libc_start_") ||
      absl::StartsWith(linkage, "generic_start_main")) {
    seen.below_main = true;
    seen.functions.emplace_back("__libc_start_main");
  }
  if (linkage == "_start") seen.below_main = true;
  seen.module = frame.module.empty() ? std::string(kUnknown) : frame.module;
  seen.real_module = RealPath(frame.module);
  seen.file = frame.file;
  seen.line = frame.line;
  seen.inlined = frame.inlined;
  return seen;
}

}  // namespace

MemcheckStack AsMemcheckSees(AllocFunction function, absl::Span<const Frame* const> frames) {
  MemcheckStack stack;
  const size_t news = OperatorNewFrames(frames);
  if (news > 0) {
    MemcheckFrame top = Seen(*frames[news - 1]);
    const std::vector<std::string> names = top.functions;
    for (const std::string& name : names) top.functions.push_back(OtherNew(name));
    top.module = std::string(kMemcheckLibrary);
    top.file.clear();
    top.inlined = false;
    stack.frames.push_back(std::move(top));
  } else if (!IsCustom(function)) {
    const auto allocator = [&](std::vector<std::string> names) {
      MemcheckFrame top;
      top.functions = std::move(names);
      top.module = std::string(kMemcheckLibrary);
      stack.frames.push_back(std::move(top));
    };
    if (function == AllocFunction::kRealloc) {
      allocator({"realloc", "malloc"});
    } else if (function == AllocFunction::kReallocarray) {  // libc's, which jumps to realloc
      allocator({"realloc", "malloc"});
      allocator({"reallocarray", "realloc", "malloc"});
      stack.also_begins = 1;
    } else if (function == AllocFunction::kPosixMemalign) {
      allocator({"memalign"});
      allocator({std::string(render::FunctionName(function))});
      stack.also_begins = 1;
    } else if (ByMemalign(function)) {
      allocator({"memalign", std::string(render::FunctionName(function))});
    } else {
      allocator({std::string(render::FunctionName(function))});
    }
  }
  for (size_t i = news; i < frames.size(); ++i) {
    if (frames[i]->role != FrameRole::kMarker) stack.frames.push_back(Seen(*frames[i]));
  }
  return stack;
}

MemcheckStack AsMemcheckSeesFree(absl::string_view called, absl::Span<const Frame* const> frames) {
  MemcheckStack stack;
  MemcheckFrame& top = stack.frames.emplace_back();
  top.functions = {std::string(called), symbolizer::Demangle({called.data(), called.size()})};
  top.module = std::string(kMemcheckLibrary);
  for (size_t i = render::OperatorDeleteFrames(frames); i < frames.size(); ++i) {
    if (frames[i]->role != FrameRole::kMarker) stack.frames.push_back(Seen(*frames[i]));
  }
  return stack;
}

namespace {

class SuppressionWriter {
 public:
  void Elide() {
    if (lines_.empty() || lines_.back() != "...") lines_.emplace_back("...");
  }
  // A control character, or a name that begins with a blank, could not be read back.
  void Add(absl::string_view what, absl::string_view text) {
    lines_.push_back(absl::StrCat(what, ":", Safe(text)));
  }
  void AddCallers(absl::Span<const Frame* const> frames, size_t begin);
  // `kind`: "Memcheck:Leak", and what further lines follow it.
  std::string Text(absl::string_view name, absl::string_view kind);

 private:
  static std::string Safe(absl::string_view text) {
    std::string safe(text);
    std::replace_if(safe.begin(), safe.end(),
                    [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
    return safe;
  }

  std::vector<std::string> lines_;
};

void SuppressionWriter::AddCallers(absl::Span<const Frame* const> frames, size_t begin) {
  size_t used = 1;
  const size_t start = names::StartBegin(frames);
  for (size_t i = begin; i < start && used < kMostFrames; ++i) {
    const Frame& frame = *frames[i];
    if (frame.role == FrameRole::kMarker) break;
    if (frame.inlined) {
      Elide();
      continue;
    }
    ++used;
    if (!frame.function.empty()) {
      std::string name = LinkageName(frame);
      if (const absl::string_view exported = WithoutInternalPrefix(name); !exported.empty()) {
        name = absl::StrCat("*", exported);
      }
      if (const size_t digit = StructorDigit(name); digit != name.npos) name[digit] = '?';
      // To some names Valgrind adds their version: fclose@@GLIBC_2.2.5. And it takes names of
      // symbols, which have a suffix of LLVM's in Rust (_ZN...17h...E.llvm.89): debug information
      // has none.
      if (names::IsLibc(frame.module) || symbolizer::IsRust(name)) name += '*';
      Add("fun", name);
    } else if (!frame.module.empty()) {
      Add("obj", RealPath(frame.module));
    } else {
      Add("obj", "*");
    }
    if (frame.function == "main") break;
  }
}

std::string SuppressionWriter::Text(absl::string_view name, absl::string_view kind) {
  while (!lines_.empty() && lines_.back() == "...") lines_.pop_back();
  if (lines_.empty()) Add("obj", "*");
  // A line that begins with # is a comment, and the next one would be the name.
  const bool is_comment = absl::StartsWith(absl::StripLeadingAsciiWhitespace(name), "#");
  std::string text =
      absl::StrCat("{\n   ", is_comment ? "./" : "", Safe(name), "\n   ", kind, "\n");
  for (const std::string& line : lines_) absl::StrAppend(&text, "   ", line, "\n");
  return absl::StrCat(text, "}\n");
}

}  // namespace

std::string SuppressionFor(absl::string_view name, absl::string_view kind, AllocFunction function,
                           absl::Span<const Frame* const> frames) {
  SuppressionWriter writer;
  const size_t news = OperatorNewFrames(frames);
  if (news > 0) {
    std::string top = LinkageName(*frames[news - 1]);
    if (absl::StartsWith(top, "_Zn") && top.size() > 3) top[3] = '?';
    if (absl::StartsWith(top, "operator new")) top = "_Zn?*";
    writer.Add("fun", top);
  } else if (!IsCustom(function)) {
    const bool array = function == AllocFunction::kReallocarray;
    const bool re = array || function == AllocFunction::kRealloc;
    const bool aligned = ByMemalign(function);
    writer.Add("fun", re ? "*alloc" : aligned ? "*align*" : render::FunctionName(function));
    if (array || aligned) writer.Elide();  // its own frame
  }
  writer.AddCallers(frames, news);
  return writer.Text(name, kind.empty()
                               ? "Memcheck:Leak"
                               : absl::StrCat("Memcheck:Leak\n   match-leak-kinds: ", kind));
}

std::string SuppressionForFree(absl::string_view name, absl::string_view called,
                               absl::Span<const Frame* const> frames) {
  SuppressionWriter writer;
  writer.Add("fun", called);
  writer.AddCallers(frames, render::OperatorDeleteFrames(frames));
  return writer.Text(name, "Memcheck:Free");
}

}  // namespace memtrace::report::suppress
