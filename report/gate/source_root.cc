#include "report/gate/source_root.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "report/words/escape.h"

namespace memtrace::report::gate {
namespace {

// A file of this machine below a root whose name is `path`, or what is left of it without its first
// directories; empty: there is none. Files of one bare name (main.c) are of many projects: that all
// directories may go, the map has to be to "." and they have to be one below the root, as where the
// compiler ran in ./build.
std::string FoundBelow(const std::string& root, const std::string& path) {
  if (root.empty()) return "";
  const bool has_dot = absl::StartsWith(path, "./");
  absl::string_view rest = path;
  for (bool is_whole = true;; is_whole = false) {
    while (absl::ConsumePrefix(&rest, "./") || absl::ConsumePrefix(&rest, "../") ||
           absl::ConsumePrefix(&rest, "/")) {
    }
    const size_t slash = rest.find('/');
    std::error_code ignored;
    if (slash == rest.npos && !is_whole) {
      const std::string dropped = path.substr(0, path.size() - rest.size());
      if (!has_dot || !std::filesystem::is_directory(absl::StrCat(root, "/", dropped), ignored)) {
        return "";
      }
    }
    if (std::filesystem::is_regular_file(absl::StrCat(root, "/", rest), ignored)) {
      return std::string(rest);
    }
    if (slash == rest.npos) return "";
    rest.remove_prefix(slash + 1);
  }
}

// By the name of the working directory that a shell has in $PWD, which may lead through symbolic
// links, and which CMake gives to the compiler. Empty: `given` has no such name.
std::string ByTheShellsName(const std::string& given) {
  const char* const pwd = std::getenv("PWD");
  if (pwd == nullptr || pwd[0] != '/') return "";
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::equivalent(pwd, ".", error)) return "";  // of whoever started us, and gone elsewhere
  std::string name;
  if (given.front() != '/') {
    name = (fs::path(pwd) / given).lexically_normal().string();
  } else {
    const std::string real = fs::canonical(given, error).string();
    const std::string here = fs::canonical(".", error).string();
    if (error || real.empty()) return "";
    const std::string below = BelowRoot(here, real);
    if (below.empty() && real != here) return "";
    name = (fs::path(pwd) / below).lexically_normal().string();
  }
  // The ".." of a link is another directory by its name than it is.
  return fs::equivalent(name, given, error) || !fs::exists(given, error) ? name : "";
}

// Where a directory of this machine is without symbolic links; empty: there is none. The frames of
// a report have few directories, each many times.
const std::string& RealDirectory(const std::string& directory) {
  static auto& known = *new std::map<std::string, std::string>;
  const auto [at, is_new] = known.try_emplace(directory);
  std::error_code error;
  if (is_new) at->second = std::filesystem::canonical(directory, error).string();
  return at->second;
}

}  // namespace

std::vector<std::string> SourceRoots(const std::string& given) {
  if (given.empty()) return {};
  std::error_code error;
  const std::string whole = std::filesystem::absolute(given, error).lexically_normal().string();
  std::vector<std::string> roots = {error ? given : whole};
  const auto add = [&roots](const std::string& name) {
    if (!name.empty() && std::ranges::find(roots, name) == roots.end()) roots.push_back(name);
  };
  add(ByTheShellsName(given));
  add(std::filesystem::canonical(given, error).string());
  return roots;
}

std::string WhyNothingIsBelow(const GateReport& report, const std::string& given) {
  std::error_code ignored;
  const bool is_there = !given.empty() && std::filesystem::is_directory(given, ignored);
  std::string elsewhere, root;
  const auto is_below = [&](StackId stack, const std::string& working_directory) {
    const std::vector<std::string> roots = RootsOf(report, working_directory);
    for (const Frame* frame : report.names->Frames(stack)) {
      if (frame->role != FrameRole::kProject || frame->file.empty()) continue;
      if (!BelowRoots(roots, *frame).empty()) return true;
      // A relative name may be right all the same where the sources are not here to be looked for.
      if (frame->file.front() != '/' && !is_there) continue;
      if (elsewhere.empty()) elsewhere = frame->file;
      root = roots.back();
    }
    return false;
  };
  for (const GateLeak& leak : report.result->leaks) {
    if (given.empty() && !IsGated(leak.verdict)) continue;  // no result has its place
    if (is_below(leak.stack, leak.working_directory)) return "";
  }
  for (const GateExcess& excess : report.result->excesses) {
    for (const StackId stack : excess.stacks) {
      if (is_below(stack, excess.working_directory)) return "";
    }
  }
  if (elsewhere.empty() || root.empty()) return "";
  if (given.empty()) {
    return words::EscapeControls(absl::StrCat("no source of a leak or wrong free was below ", root,
                                              ", where the program ran; one was ", elsewhere,
                                              ": --source-root DIR says where they are"));
  }
  return words::EscapeControls(
      absl::StrCat("--source-root: no source of a leak or wrong free was below ", root,
                   is_there ? "" : ", which is no directory here",
                   ", when it was compiled; one was ", elsewhere));
}

std::string BelowRoots(const std::vector<std::string>& roots, const std::string& path) {
  for (const std::string& root : roots) {
    std::string below = BelowRoot(root, path);
    if (!below.empty()) return below;
  }
  return "";
}

std::string BelowRoots(const std::vector<std::string>& roots, const Frame& frame) {
  if (absl::StartsWith(frame.file, "/")) {
    std::string below = BelowRoots(roots, frame.file);
    if (!below.empty()) return below;
    const size_t slash = frame.file.rfind('/');
    const std::string& real = RealDirectory(frame.file.substr(0, slash + 1));
    return real.empty() ? "" : BelowRoots(roots, absl::StrCat(real, frame.file.substr(slash)));
  }
  if (frame.role != FrameRole::kProject || frame.file.empty()) return "";
  for (const std::string& root : roots) {
    std::string below = FoundBelow(root, frame.file);
    if (!below.empty()) return below;
  }
  return "";
}

std::string BelowRoot(const std::string& root, const std::string& path) {
  absl::string_view rest = path;
  absl::string_view prefix = root;
  while (absl::ConsumeSuffix(&prefix, "/") || absl::ConsumeSuffix(&prefix, "/.")) {
  }
  if (root.empty() || !absl::ConsumePrefix(&rest, prefix) || !absl::ConsumePrefix(&rest, "/")) {
    return "";
  }
  while (absl::ConsumePrefix(&rest, "/") || absl::ConsumePrefix(&rest, "./")) {
  }
  // Above the root again: a compiler that was called with -I../include.
  if (absl::StrContains(absl::StrCat("/", rest, "/"), "/../")) return "";
  return std::string(rest);
}

std::vector<std::string> RootsOf(const GateReport& report, const std::string& working_directory) {
  return report.source_roots.empty() ? std::vector<std::string>{working_directory}
                                     : report.source_roots;
}

}  // namespace memtrace::report::gate
