#include "symbolizer/symbolizer_process.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "symbolizer/answer_bytes.h"
#include "symbolizer/ask_child.h"
#include "symbolizer/module_answer.h"
#include "symbolizer/module_file.h"

namespace memtrace::symbolizer {
namespace {

using std::chrono::milliseconds;

enum Works : size_t { kSymbols, kNames };

// The question of this process is believed.
std::string EncodeQuestion(const Module& module, std::span<const Address> addresses) {
  std::string bytes;
  Put(module.path, &bytes);
  Put(module.build_id, &bytes);
  Put64(static_cast<uint64_t>(module.loaded_ns), &bytes);
  Put(static_cast<uint32_t>(addresses.size()), &bytes);
  for (const Address& address : addresses) {
    Put64(address.offset, &bytes);
    Put((address.is_return_address ? 1 : 0) | (address.called ? 2 : 0), &bytes);
  }
  return bytes;
}

void DecodeQuestion(std::string_view bytes, Module* module, std::vector<Address>* addresses) {
  AnswerReader in(bytes);
  module->path = in.Text();
  module->build_id = in.Text();
  module->loaded_ns = static_cast<int64_t>(in.Number64());
  addresses->resize(in.Count(sizeof(uint64_t) + sizeof(uint32_t)));
  for (Address& address : *addresses) {
    address.offset = in.Number64();
    const uint32_t flags = in.Number();
    address.is_return_address = (flags & 1) != 0;
    address.called = (flags & 2) != 0;
  }
}

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
      fork_server_({[this](std::string_view question) { return AnswerSymbols(question); },
             [](std::string_view question) { return AnswerNames(question); }}),
      limits_(limits) {}

ModuleResult SymbolizerProcess::Symbolize(const Module& module,
                                          std::span<const Address> addresses) {
  return cache_.Symbolize(options_, module, addresses,
                          [this](const Module& asked, std::span<const Address> unknown) {
                            return AskProcess(asked, unknown);
                          });
}

std::string SymbolizerProcess::AnswerSymbols(std::string_view question) const {
  Module module;
  std::vector<Address> addresses;
  DecodeQuestion(question, &module, &addresses);
  return EncodeAnswer(work_(module, addresses));
}

ModuleNames SymbolizerProcess::FindNames(const Module& module,
                                         std::span<const std::string_view> names,
                                         std::span<const std::string_view> texts) {
  return symbolizer::FindNames(
      [this](std::string_view question, milliseconds time, size_t most_bytes) {
        return fork_server_.Ask(kNames, question, time, most_bytes);
      },
      module, options_.sysroot, names, texts);
}

ModuleResult SymbolizerProcess::AskProcess(const Module& module,
                                           std::span<const Address> addresses) {
  // A trace from another machine may be of modules whose files are all missing here, and a
  // process costs milliseconds.
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
  const ChildAnswer answer =
      fork_server_.Ask(kSymbols, EncodeQuestion(module, addresses), time, limits_.answer_bytes);
  spent_ += std::chrono::ceil<milliseconds>(std::chrono::steady_clock::now() - begin);
  ModuleResult result;
  if (answer.given && DecodeAnswer(answer.bytes, addresses.size(), &result)) return result;
  return Failed(module, addresses.size(), answer.why_not);
}

}  // namespace memtrace::symbolizer
