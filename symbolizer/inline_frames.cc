// InlineFrames. See inline_frames.h.

#include "symbolizer/inline_frames.h"

#include <dwarf.h>

#include <utility>

#include "symbolizer/demangle.h"
#include "symbolizer/dwarf_attributes.h"

namespace memtrace::symbolizer {
namespace {

// Deeper nesting than any compiler makes; bounds the work on damaged files.
constexpr size_t kMaxChain = 1024;

}  // namespace

InlineFrames::InlineFrames(Dwarf* dwarf, Dwarf_Die unit, ScannedFunctions functions,
                           FunctionNames* names, SourcePaths* paths)
    : dwarf_(dwarf),
      names_(names),
      paths_(paths),
      functions_(std::move(functions.functions)) {
  for (const FunctionRange& range : functions.ranges) {
    by_address_.Add(range.begin, range.end, range.function);
  }
  by_address_.Build();
  if (dwarf_getsrcfiles(&unit, &files_, &file_count_) != 0) file_count_ = 0;
}

const std::vector<Frame>& InlineFrames::Find(uint64_t address) {
  static const std::vector<Frame>& nothing = *new std::vector<Frame>;
  const uint32_t* function = by_address_.Find(address);
  if (function == nullptr) return nothing;
  const auto [it, inserted] = chains_.try_emplace(*function);
  if (inserted) it->second = ChainOf(*function);
  return it->second;
}

std::vector<Frame> InlineFrames::ChainOf(uint32_t function) {
  std::vector<Frame> chain;
  Frame caller;  // carries file and line of the call outwards
  while (function != ScannedFunction::kNone && chain.size() < kMaxChain) {
    const ScannedFunction& scanned = functions_[function];
    Dwarf_Die die;
    if (dwarf_offdie(dwarf_, scanned.offset, &die) == nullptr) break;
    const FunctionNames::Name& name = names_->Of(&die);
    Frame frame = std::move(caller);
    caller = Frame();
    frame.function = name.function;
    frame.linkage_name = name.linkage_name;
    frame.inlined = scanned.parent != ScannedFunction::kNone;
    // One that is not inlined has a symbol, whose name is the whole name.
    if (frame.inlined && !IsMangled(frame.linkage_name)) {
      if (const std::string& whole = names_->QualifiedName(&die); !whole.empty()) {
        frame.function = whole;
      }
    }
    chain.push_back(std::move(frame));
    Dwarf_Word number;
    if (NumberOf(&die, DW_AT_call_line, &number)) caller.line = static_cast<uint32_t>(number);
    if (NumberOf(&die, DW_AT_call_file, &number) && number < file_count_) {
      const char* file = dwarf_filesrc(files_, number, nullptr, nullptr);
      if (file != nullptr) caller.file = paths_->Of(file);
    }
    function = scanned.parent;
  }
  return chain;
}

}  // namespace memtrace::symbolizer
