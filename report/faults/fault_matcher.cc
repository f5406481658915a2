#include "report/faults/fault_matcher.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {
namespace {

// By how often a process may have more names of places than a report should list.
constexpr size_t kMostPlaces = 10000;

bool More(const FaultSums& a, const FaultSums& b) { return a.all() > b.all(); }

FaultSums Minus(const FaultSums& whole, const FaultSums& part) {
  return {whole.minor - std::min(whole.minor, part.minor),
          whole.major - std::min(whole.major, part.major)};
}

}  // namespace

FaultMatcher::FaultMatcher(TraceReader* reader, StackTable* stacks, const Range& range)
    : page_bits_(63 - std::countl_zero(reader->metadata().process.page_bytes)),
      stacks_(stacks), range_(range), stream_(reader), space_(reader->metadata()),
      modules_(ModulesAndMappedFiles(*reader)), finder_(modules_),
      main_tid_(reader->header().pid) {
  for (const auto& [serial, thread] : reader->metadata().threads) {
    if (thread.tid != 0) threads_[thread.tid] = thread.name;
  }
  if (!stream_.done()) next_ns_ = stream_.front().time_ns;
}

void FaultMatcher::TakeBefore(uint64_t time_ns, HeapModel& model,
                              const MappingModel& mappings) {
  while (!stream_.done() && stream_.front().time_ns < time_ns) {
    const Fault& fault = stream_.front();
    if (fault.time_ns >= range_.from_ns && fault.time_ns <= range_.to_ns) {
      Take(fault, stream_.FrontIsOwn(), model, mappings);
    } else if (fault.time_ns < range_.from_ns) {
      CodeOf(fault);  // so that stacks have the same ids wherever the range begins
    }
    stream_.Pop();
  }
  next_ns_ = stream_.done() ? UINT64_MAX : stream_.front().time_ns;
}

// The instruction as a stack of one frame, as if it were a return address.
uint32_t FaultMatcher::CodeOf(const Fault& fault) {
  if (fault.in_kernel || fault.pc == 0) return 0;
  return stacks_->Intern({}, fault.pc + 1, finder_.InstanceAt(fault.pc + 1, fault.time_ns)).value;
}

const HeldBlock* FaultMatcher::FindBlock(uint64_t address, HeapModel& model) {
  const auto covers = [address](const HeldBlock* block) {
    return block != nullptr && address + kHeader >= block->address() &&
           address < block->address() + std::max<uint64_t>(block->size() + block->waste(), 1);
  };
  // The block that the address is in, rather than the one whose header it is in.
  const uint64_t step = Step(), highest = (address + kHeader) & ~(step - 1);
  for (uint64_t begin = address & ~(step - 1); begin + kSmall > address; begin -= step) {
    const HeldBlock* block = begin != 0 ? model.FindLive(begin) : nullptr;
    if (block == nullptr) continue;
    if (covers(block)) return block;
    break;  // what lies before it ends before it
  }
  for (uint64_t begin = highest; begin > address; begin -= step) {
    const HeldBlock* block = model.FindLive(begin);
    if (covers(block)) return block;
  }
  SortIn(model);
  for (auto at = large_.upper_bound(highest); at != large_.begin();) {
    --at;
    const HeldBlock* block = model.FindLive(*at);
    if (block == nullptr) {
      ForgetAside(*at);
      at = large_.erase(at);
      continue;
    }
    return covers(block) ? block : nullptr;
  }
  return nullptr;
}

void FaultMatcher::SortIn(const HeapModel& model) {
  for (const uint64_t address : aside_) {
    if (model.IsLive(address)) {
      large_.insert(address);
    } else {
      ForgetAside(address);
    }
  }
  aside_.clear();
  if (large_.size() < clean_at_) return;
  absl::erase_if(large_, [&](uint64_t each) {
    if (model.IsLive(each)) return false;
    ForgetAside(each);
    return true;
  });
  clean_at_ = std::max<size_t>(1024, large_.size() * 2);
}

void FaultMatcher::Take(const Fault& fault, bool own, HeapModel& model,
                        const MappingModel& mappings) {
  const Waiting waiting{fault.time_ns, fault.tid, CodeOf(fault), fault.major, fault.in_kernel, {}};
  told_.Add(fault.major);
  thrash_.Add(fault.time_ns, fault.address >> page_bits_, fault.major);
  if (fault.in_kernel) in_kernel_.Add(fault.major);
  touchers_[waiting.code].Add(fault.major);
  if (own || (!fault.in_kernel && space_.IsTool(fault.pc))) {
    by_kind_[static_cast<size_t>(MemoryKind::kTool)].Add(fault.major);
    places_[{static_cast<uint8_t>(MemoryKind::kTool), ""}].Add(fault.major);
    return;
  }
  marks_.Add(fault.time_ns, fault.major);
  if (const HeldBlock* block = FindBlock(fault.address, model)) {
    AddToSite(ClaimantOf(*block, model, 1), waiting, /*by_allocator=*/false);
    return;
  }
  const MappingSite* mapping = mappings.Find(fault.address);
  using Kind = MappingSite::Kind;
  if (mapping != nullptr && (mapping->kind == Kind::kMmap || mapping->kind == Kind::kShm ||
                             mapping->kind == Kind::kBrk)) {
    by_kind_[static_cast<size_t>(MemoryKind::kProgramMap)].Add(fault.major);
    SiteState& state = mappings_[{mapping->stack.value, mapping->file}];
    state.faults.Add(fault.major);
    state.touchers[waiting.code].Add(fault.major);
    return;
  }
  const AddressSpace::Region* region = space_.Find(fault.address);
  const bool may_be_heap = mapping != nullptr || region == nullptr ||
                           region->kind == MemoryKind::kAllocator ||
                           region->kind == MemoryKind::kUnknown;
  if (!may_be_heap) {
    AddToPlace(fault.address, waiting);
    return;
  }
  if (waiting_.size() >= kMostWaiting) {
    Attribute(waiting_.begin()->first, waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
  }
  waiting_.emplace(fault.address, waiting);
  AddToFilter(fault.address);
  ++filtered_;
}

void FaultMatcher::Claim(const HeldBlock& block, const HeapModel& model) {
  const uint64_t in_page = (uint64_t{1} << page_bits_) - 1;
  const uint64_t end = block.address() + std::max<uint64_t>(block.size() + block.waste(), 1);
  auto at = waiting_.lower_bound(block.address() - kHeader);
  while (at != waiting_.end() && at->first < end) {
    const auto [address, fault] = *at;
    at = waiting_.erase(at);
    const uint64_t page_end = (address | in_page) + 1, here = std::min(end, page_end) - address;
    // Within the block it was the allocator's work for it, calloc's for instance; but where
    // it has been handed on.
    const bool within = address >= block.address() && fault.largest.page_bytes == 0;
    Waiting rest = fault;
    if (within || here >= rest.largest.page_bytes) rest.largest = ClaimantOf(block, model, here);
    const uint64_t next = end + kHeader / 2;  // that of the next one, or its header
    // Nobody who comes can have more.
    if (within || next >= page_end || rest.largest.page_bytes >= page_end - next) {
      AddToSite(rest.largest, rest, /*by_allocator=*/true);
    } else {
      waiting_.emplace(next, rest);
    }
  }
  if (!waiting_.empty() && filtered_ <= waiting_.size() + waiting_.size() / 8 + 64) return;
  filter_.fill(0);
  filtered_ = waiting_.size();
  for (const auto& [address, fault] : waiting_) AddToFilter(address);
}

FaultMatcher::Claimant FaultMatcher::ClaimantOf(const HeldBlock& block, const HeapModel& model,
                                                uint64_t page_bytes) {
  return {model.SiteStack(block.site).value, static_cast<uint8_t>(model.SiteFunction(block.site)),
          block.address() ^ block.time_ns << 16, page_bytes};
}

void FaultMatcher::Attribute(uint64_t address, const Waiting& fault) {
  if (fault.largest.page_bytes != 0) {
    AddToSite(fault.largest, fault, /*by_allocator=*/true);
  } else {
    AddToPlace(address, fault);
  }
}

void FaultMatcher::AddToSite(const Claimant& owner, const Waiting& fault, bool by_allocator) {
  by_kind_[static_cast<size_t>(MemoryKind::kBlock)].Add(fault.major);
  SiteState& site = sites_[{owner.stack, owner.function}];
  site.faults.Add(fault.major);
  site.by_allocator += by_allocator;
  // Faults of a block mostly follow each other.
  site.blocks += site.last_block != owner.block;
  site.last_block = owner.block;
  site.first_time_ns = std::min(site.first_time_ns, fault.time_ns);
  site.last_time_ns = std::max(site.last_time_ns, fault.time_ns);
  site.touchers[fault.code].Add(fault.major);
}

void FaultMatcher::AddToPlace(uint64_t address, const Waiting& fault) {
  const AddressSpace::Region* region = space_.Find(address);
  const MemoryKind kind = region != nullptr ? region->kind : MemoryKind::kUnknown;
  std::string name;
  if (kind == MemoryKind::kStack) {
    const auto thread = threads_.find(fault.tid);
    name = fault.tid == main_tid_ ? "main thread"
           : absl::StrCat("thread ", fault.tid,
                          thread == threads_.end() || thread->second.empty()
                              ? "" : absl::StrCat(" ", thread->second));
  } else if (region != nullptr && kind != MemoryKind::kAllocator && kind != MemoryKind::kTool) {
    name = region->name;
  }
  by_kind_[static_cast<size_t>(kind)].Add(fault.major);
  if (places_.size() >= kMostPlaces) name.clear();
  places_[{static_cast<uint8_t>(kind), std::move(name)}].Add(fault.major);
}

std::vector<FaultToucher> FaultMatcher::Sorted(const Touchers& touchers, size_t most) const {
  std::vector<FaultToucher> sorted;
  for (const auto& [code, faults] : touchers) sorted.push_back({StackId{code}, faults});
  std::sort(sorted.begin(), sorted.end(), [](const FaultToucher& a, const FaultToucher& b) {
    return a.faults.all() != b.faults.all() ? a.faults.all() > b.faults.all()
                                            : a.code.value < b.code.value;
  });
  if (sorted.size() > most) sorted.resize(most);
  return sorted;
}

void FaultMatcher::Finish(HeapModel& model, const MappingModel& mappings, uint64_t minor,
                          uint64_t major, std::span<const UsageSample> samples,
                          FaultDetails* details) {
  Advance(UINT64_MAX, model, mappings);
  for (const auto& [address, fault] : waiting_) Attribute(address, fault);
  waiting_.clear();
  const FaultLog& log = stream_.log();
  details->known = log.known;
  details->source = log.source;
  details->why = log.why;
  details->rings = log.rings;
  details->ring_bytes = log.ring_bytes;
  details->ns_per_fault = log.ns_per_fault;
  details->last_lost_ns = log.last_lost_ns;
  details->told = told_;
  details->refaults = thrash_.refaults();
  details->thrash = thrash_.Stretches(samples);
  details->in_kernel = in_kernel_;
  // Where none was seen it is not known whether the range ends before the first look.
  if (range_.whole() || (range_.from_ns == 0 && told_.all() != 0)) {
    details->before = {log.at_start.minor, log.at_start.major};
  }
  if (range_.whole()) {
    details->lost = log.lost;
    const FaultSums all{std::max(minor, log.latest.minor), std::max(major, log.latest.major)};
    details->counted = all;
    details->not_told = Minus(Minus(Minus(all, details->before), told_), {log.lost, 0});
  }
  details->by_kind = by_kind_;
  for (const auto& [key, state] : sites_) {
    FaultSite site;
    site.stack = StackId{key.first};
    site.function = static_cast<format::AllocFunction>(key.second);
    site.faults = state.faults;
    site.by_allocator = state.by_allocator;
    site.blocks = state.blocks;
    site.first_time_ns = state.first_time_ns;
    site.last_time_ns = state.last_time_ns;
    site.touchers = Sorted(state.touchers, kMostTouchers);
    details->sites.push_back(std::move(site));
  }
  std::sort(
      details->sites.begin(), details->sites.end(), [](const FaultSite& a, const FaultSite& b) {
        return a.faults.all() != b.faults.all()
                   ? More(a.faults, b.faults)
                   : std::pair(a.stack.value, a.function) < std::pair(b.stack.value, b.function);
      });
  for (const auto& [key, state] : mappings_) {
    details->mappings.push_back(
        {StackId{key.first}, key.second, state.faults, Sorted(state.touchers, kMostTouchers)});
  }
  std::sort(details->mappings.begin(), details->mappings.end(),
            [](const FaultMapping& a, const FaultMapping& b) {
              return a.faults.all() != b.faults.all()
                         ? More(a.faults, b.faults)
                         : std::pair(a.stack.value, a.file) < std::pair(b.stack.value, b.file);
            });
  for (const auto& [key, faults] : places_) {
    details->places.push_back({static_cast<MemoryKind>(key.first), key.second, faults});
  }
  std::sort(details->places.begin(), details->places.end(),
            [](const FaultPlace& a, const FaultPlace& b) {
              return a.faults.all() != b.faults.all()
                         ? More(a.faults, b.faults)
                         : std::pair(a.kind, a.name) < std::pair(b.kind, b.name);
            });
  details->touchers = Sorted(touchers_, 1000);
}

}  // namespace memtrace::report
