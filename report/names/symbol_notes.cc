#include "report/names/symbol_notes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "format/trace_format.h"
#include "report/words/escape.h"

namespace memtrace::report {

void SymbolNotes::Add(const ModuleInfo& module, const symbolizer::ModuleResult& result) {
  using symbolizer::ModuleState;
  const absl::string_view why = result.message;
  const std::string path = words::EscapeControls(module.path);
  std::string note;
  if (result.from_before || result.state == ModuleState::kBuildIdDiffers ||
      result.state == ModuleState::kWrittenSince || result.state == ModuleState::kNotFound) {
    replaced_.insert(module.path);
  }
  switch (result.state) {
    case ModuleState::kDebugInfo:
    case ModuleState::kSymbolsOnly:
      if (result.missed.empty()) return;
      note = words::EscapeControls(result.missed);
      break;
    case ModuleState::kBuildIdDiffers:
      note = absl::StrCat(path, " is not the file that ran (its build-id differs): "
                          "its frames are shown as module+offset");
      break;
    case ModuleState::kWrittenSince:
      note = absl::StrCat(
          path,
          " was written again after it was loaded, and has no build-id that tells whether "
          "it is still the file that ran: its frames are shown as module+offset");
      break;
    case ModuleState::kNotFound:
      // Never files: of an imported log also "[kernel]", whose names are in the log.
      if ((module.flags & format::kModuleVdso) || (!module.path.empty() && module.path[0] == '['))
        return;
      unnamed_
          [{"was not found: its frames are shown as module+offset; --sysroot names a copy of the "
            "machine's files",
            "were not found: their frames are shown as module+offset; --sysroot names a copy of "
            "the "
            "machine's files"}]
              .insert(path);
      return;
    case ModuleState::kUnreadable: {
      absl::string_view reason = why;
      absl::ConsumePrefix(&reason, absl::StrCat(module.path, ": "));
      const std::string text = absl::StrCat("cannot be read for names", reason.empty() ? "" : ": ",
                                            words::EscapeControls(reason));
      unnamed_[{text, text}].insert(path);
      return;
    }
  }
  AddText(std::move(note));
}

// A plugin loaded twice is one file.
void SymbolNotes::AddText(std::string note) {
  if (noted_.insert(note).second && texts_.size() < kMostTexts) texts_.push_back(std::move(note));
}

// If many modules have no names for one reason, the reason is said once: wine's
// libraries are no ELF files.
void SymbolNotes::Finish() {
  constexpr size_t kNamed = 3;
  for (const auto& [what, paths] : unnamed_) {
    if (paths.size() <= kNamed) {
      for (const std::string& path : paths) AddText(absl::StrCat(path, " ", what.first));
      continue;
    }
    std::string note;
    auto path = paths.begin();
    for (size_t i = 0; i < kNamed; ++i, ++path) absl::StrAppend(&note, i == 0 ? "" : ", ", *path);
    AddText(absl::StrCat(note, " and ", paths.size() - kNamed, " more ", what.second));
  }
  if (noted_.size() > texts_.size()) {
    texts_.push_back(absl::StrCat(noted_.size() - texts_.size(),
                                  " more modules have no names for similar reasons"));
  }
}

}  // namespace memtrace::report
