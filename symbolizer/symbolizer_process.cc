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
#include "symbolizer/module_question.h"

namespace memtrace::symbolizer {
namespace {

using std::chrono::milliseconds;

// In the order in which the fork server has them.
enum Works : size_t { kSymbols, kNames, kVariables, kFunctions, kFootprint };

std::string EncodeQuestion(const Module& module, std::span<const Address> addresses) {
  std::string bytes;
  PutModule(module, &bytes);
  Put(static_cast<uint32_t>(addresses.size()), &bytes);
  for (const Address& address : addresses) {
    Put64(address.offset, &bytes);
    Put((address.is_return_address ? 1 : 0) | (address.called ? 2 : 0), &bytes);
  }
  return bytes;
}

void DecodeQuestion(std::string_view bytes, Module* module, std::vector<Address>* addresses) {
  AnswerReader in(bytes);
  *module = TakeModule(&in);
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
      work_([this](const Module& module, std::span<const Address> addresses) {
        return Symbolizer(options_).Symbolize(module, addresses);
      }),
      fork_server_({[this](std::string_view question) { return AnswerSymbols(question); },
                    [](std::string_view question) { return AnswerNames(question); },
                    [this](std::string_view question) {
                      return AnswerVariables(options_, question);
                    },
                    [this](std::string_view question) {
                      return AnswerNamedFunctions(options_, question);
                    },
                    [this](std::string_view question) {
                      return AnswerFootprint(options_, question);
                    }}),
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

AskReader SymbolizerProcess::ReaderFor(size_t work) {
  return [this, work](std::string_view question) {
    return fork_server_.Ask(work, question, limits_.module, limits_.answer_bytes);
  };
}

VariablesResult SymbolizerProcess::FindVariables(const Module& module,
                                                 std::span<const VariableQuery> queries) {
  return symbolizer::FindVariables(ReaderFor(kVariables), module, queries);
}

std::vector<NamedRange> SymbolizerProcess::FindNamedFunctions(
    const Module& module, std::span<const std::string_view> prefixes) {
  return symbolizer::FindNamedFunctions(ReaderFor(kFunctions), module, prefixes);
}

StaticFootprint SymbolizerProcess::FindFootprint(const Module& module) {
  return symbolizer::FindFootprint(ReaderFor(kFootprint), module);
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
