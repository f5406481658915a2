#include "symbolizer/symbolizer_process.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "symbolizer/ask_child.h"
#include "symbolizer/module_answer.h"
#include "symbolizer/module_file.h"

namespace memtrace::symbolizer {
namespace {

using std::chrono::milliseconds;

ModuleResult Failed(const Module& module, size_t addresses, std::string_view why) {
  ModuleResult result;
  result.state = ModuleState::kUnreadable;
  result.message = absl::StrCat(module.path, ": ", absl::string_view(why.data(), why.size()));
  result.frames.resize(addresses);
  return result;
}

}  // namespace

SymbolizerProcess::Limits SymbolizerProcess::LimitsFor(const Options& options) {
  Limits limits;
  if (options.debuginfod) limits.module = limits.all = milliseconds(3'600'000);
  return limits;
}

SymbolizerProcess::SymbolizerProcess(Options options, const Limits& limits)
    : options_(std::move(options)),
      cache_(options_.cache_dir),
      work_([this](const Module& module,
                                           std::span<const Address> addresses) {
        return Symbolizer(options_).Symbolize(module, addresses);
      }),
      limits_(limits) {}

ModuleResult SymbolizerProcess::Symbolize(const Module& module,
                                          std::span<const Address> addresses) {
  return cache_.Symbolize(options_, module, addresses,
                          [this](const Module& asked, std::span<const Address> unknown) {
                            return AskProcess(asked, unknown);
                          });
}

ModuleResult SymbolizerProcess::AskProcess(const Module& module,
                                           std::span<const Address> addresses) {
  // Of a trace from another machine that may be all of them, and a process costs milliseconds.
  if (std::optional<ModuleResult> none = AnswerWithoutFiles(options_, module, addresses.size())) {
    return *std::move(none);
  }
  const milliseconds time = std::min(limits_.module, limits_.all - spent_);
  if (time.count() <= 0) {
    return Failed(module, addresses.size(), "the modules before it took too long");
  }
  if (++asked_ > limits_.modules) {
    return Failed(module, addresses.size(), "too many modules came before it");
  }
  const auto begin = std::chrono::steady_clock::now();
  const ChildAnswer answer = AskChild(time, limits_.answer_bytes, [&] {
    return EncodeAnswer(work_(module, addresses));
  });
  spent_ += std::chrono::ceil<milliseconds>(std::chrono::steady_clock::now() - begin);
  ModuleResult result;
  if (answer.given && DecodeAnswer(answer.bytes, addresses.size(), &result)) return result;
  return Failed(module, addresses.size(),
                answer.given ? "no answer from the process that reads it" : answer.why_not);
}

}  // namespace memtrace::symbolizer
