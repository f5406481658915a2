#include "report/import/imported_trace.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "format/records.h"
#include "format/trace_format.h"
#include "report/base/page.h"

namespace memtrace::report::import {
namespace {

using format::RecordEncoder;
using format::RecordTag;

constexpr int kZstdLevel = 3;
constexpr size_t kLongestRecord = 1 << 16;  // a name of a log's line is shorter
constexpr size_t kRecordBlock = 1 << 20;
constexpr uint32_t kMostModules = 0xfff0;   // an instance has 16 bits, the last are taken

std::string_view View(absl::string_view text) { return {text.data(), text.size()}; }

}  // namespace

ImportedTrace::ImportedTrace(std::unique_ptr<OutputFile> file, std::string path)
    : file_(std::move(file)), writer_(file_->fd(), std::move(path), kZstdLevel),
      record_buffer_(kLongestRecord) {
  site_words_.push_back(0);
}

absl::StatusOr<std::unique_ptr<ImportedTrace>> ImportedTrace::Create(const std::string& path) {
  auto file = OutputFile::Create(path, OutputFile::kPrivate);
  if (!file.ok()) return file.status();
  std::unique_ptr<ImportedTrace> trace(new ImportedTrace(*std::move(file), path));
  format::FileHeader header = {};
  memcpy(header.magic, format::kFileMagic, sizeof(header.magic));
  header.version = format::kFormatVersion;
  header.header_bytes = sizeof(header);
  std::random_device random;
  header.trace_id = random() | uint64_t{random()} << 32;
  header.flags = format::kFilePacked;
  trace->status_ = trace->writer_.WriteFileHeader(header);
  return trace;
}

void ImportedTrace::SetProcess(std::vector<std::string> command, std::string executable) {
  command_ = std::move(command);
  executable_ = std::move(executable);
}

void ImportedTrace::Record(const std::function<void(RecordEncoder&)>& fill) {
  RecordEncoder encoder(record_buffer_.data(), record_buffer_.size());
  fill(encoder);
  records_.insert(records_.end(), encoder.data(), encoder.data() + encoder.size());
  if (records_.size() >= kRecordBlock) FlushRecords();
}

void ImportedTrace::FlushRecords() {
  if (records_.empty() || !status_.ok()) return;
  format::BlockHeader header = {};
  header.kind = format::BlockKind::kMetadata;
  header.clock_ticks = header.monotonic_ns = now_;
  status_ = writer_.Write(header, records_);
  records_.clear();
}

uint32_t ImportedTrace::Module(absl::string_view path, uint64_t bias) {
  std::pair<std::string, uint64_t> key{std::string(path), bias};
  const auto known = modules_.find(key);
  if (known != modules_.end()) return known->second;
  // Beyond what the format can number, functions are one.
  const uint32_t id = std::min<uint32_t>(static_cast<uint32_t>(modules_.size()) + 1, kMostModules);
  modules_.emplace(std::move(key), id);
  Record([&](RecordEncoder& record) {
    record.Begin(RecordTag::kModule);
    record.Number(id);
    record.Number(format::kModulePermanent);
    record.Number(0);  // nothing is known of its range: every node names its instance
    record.Number(0);
    record.Number(bias & format::kAddressMask);
    record.Bytes(View(path));
    record.Bytes("");
    record.Number(kStartNs);
    record.Bytes("");
    record.End();
  });
  return id;
}

uint32_t ImportedTrace::CallSite(uint32_t module, uint64_t pc) {
  const uint64_t word = format::NodeWord(pc, module);
  const auto [at, is_new] = sites_.try_emplace(word, static_cast<uint32_t>(site_words_.size()));
  if (!is_new) return at->second;
  if (site_words_.size() > format::kMaxSlot) {
    sites_.erase(at);
    return format::kNoSlot;
  }
  site_words_.push_back(word);
  return at->second;
}

void ImportedTrace::Passed(uint64_t time_ns) {
  if (first_ns_ == UINT64_MAX) first_ns_ = time_ns;
  passed_ns_ = std::max(passed_ns_, time_ns);
}

ImportedTrace::Thread& ImportedTrace::Begin(uint32_t tid, absl::string_view name,
                                            uint64_t time_ns) {
  if (first_ns_ == UINT64_MAX) first_ns_ = time_ns;
  const uint64_t since = time_ns - std::min(time_ns, first_ns_);
  now_ = std::max(now_ + 1, kStartNs + since);
  Thread& thread = threads_[tid];
  const bool is_new = thread.serial == 0;
  if (is_new) thread.serial = static_cast<uint32_t>(threads_.size());
  // "<...>": ftrace had forgotten it.
  if (is_new || (thread.name != name && name != "<...>")) {
    thread.name = std::string(name);
    Record([&](RecordEncoder& record) {
      record.Begin(RecordTag::kThread);
      record.Number(thread.serial);
      record.Number(tid);
      record.Number(is_new ? now_ : 0);
      record.Bytes(View(name));
      record.End();
    });
  }
  thread.words.push_back(format::TimeWord(now_));
  return thread;
}

void ImportedTrace::End(Thread* thread, size_t words_before) {
  pending_words_ += thread->words.size() - words_before;
  if (thread->words.size() >= kBlockWords) FlushThread(thread);
  if (pending_words_ < kMostPendingWords) return;
  for (auto& [tid, one] : threads_) FlushThread(&one);
}

void ImportedTrace::FlushThread(Thread* thread) {
  if (thread->words.empty()) return;
  pending_words_ -= thread->words.size();
  format::BlockHeader header = {};
  header.kind = format::BlockKind::kEvents;
  header.thread = thread->serial;
  header.sequence = ++thread->sequence;
  header.clock_ticks = header.monotonic_ns = now_;
  if (status_.ok()) {
    status_ = writer_.Write(header, {reinterpret_cast<const uint8_t*>(thread->words.data()),
                                     thread->words.size() * sizeof(uint64_t)});
  }
  std::vector<uint64_t>().swap(thread->words);
}

void ImportedTrace::Alloc(uint32_t tid, absl::string_view name, uint64_t time_ns,
                          format::AllocFunction function, uint64_t address, uint64_t requested,
                          uint64_t usable, uint32_t call_site) {
  Thread& thread = Begin(tid, name, time_ns);
  const size_t before = thread.words.size() - 1;
  if (call_site != format::kNoSlot && thread.defined.insert(call_site).second) {
    thread.words.push_back(format::PathHead(format::kNoSlot, call_site, 1));
    thread.words.push_back(site_words_[call_site]);
  }
  thread.words.push_back(format::Head(format::EventKind::kWideAlloc, address,
                                      static_cast<uint32_t>(function)));
  thread.words.push_back(call_site);
  thread.words.push_back(requested);
  thread.words.push_back(usable);
  End(&thread, before);
}

void ImportedTrace::Free(uint32_t tid, absl::string_view name, uint64_t time_ns,
                         uint64_t address) {
  Thread& thread = Begin(tid, name, time_ns);
  const size_t before = thread.words.size() - 1;
  thread.words.push_back(format::Head(format::EventKind::kFree, address));
  End(&thread, before);
}

void ImportedTrace::Note(absl::string_view text) {
  Record([&](RecordEncoder& record) {
    record.Begin(RecordTag::kNote);
    record.Bytes(View(text));
    record.End();
  });
}

void ImportedTrace::Counter(absl::string_view name, uint64_t value) {
  Record([&](RecordEncoder& record) { record.Counter(View(name), value); });
}

void ImportedTrace::WriteProcess() {
  Record([&](RecordEncoder& record) {
    record.Begin(RecordTag::kProcess);
    record.Bytes("");  // no library
    record.Bytes(executable_);
    record.Bytes("");
    record.Number(command_.size());
    for (const std::string& word : command_) record.Bytes(word);
    record.Number(0);  // CLOCK_REALTIME is not known
    record.Number(kStartNs);
    record.Number(kStartNs);
    record.Number(static_cast<uint64_t>(format::ClockKind::kMonotonicNs));
    record.Number(1'000'000'000);
    record.Number(kPageBytes);
    record.Number(0);
    record.Number(0);
    record.Bytes("");
    record.Bytes("");
    record.Bytes("");
    record.Number(static_cast<uint64_t>(format::AllocatorKind::kOther));
    record.Number(static_cast<uint64_t>(format::StackMode::kAll));
    record.Number(0);
    record.Number(static_cast<uint64_t>(format::StampRule::kChangeOfOwner));
    record.End();
  });
  Record([&](RecordEncoder& record) {
    record.Begin(RecordTag::kEnd);
    record.Number(static_cast<uint64_t>(format::EndReason::kExit));
    record.Number(0);
    record.Number(now_);
    record.Number(now_);
    record.Number(0);
    record.Number(0);
    record.Number(0);
    record.End();
  });
}

absl::Status ImportedTrace::Finish() {
  for (auto& [tid, thread] : threads_) FlushThread(&thread);
  if (passed_ns_ > first_ns_) now_ = std::max(now_, kStartNs + passed_ns_ - first_ns_);
  WriteProcess();
  FlushRecords();
  return status_.ok() ? file_->Commit() : status_;
}

}  // namespace memtrace::report::import
