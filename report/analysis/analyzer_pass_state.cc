// The part of AnalyzerPass that hands its state in the midst of a pass to a PassKeeper, and begins
// from such a state (pass_state.h).

#include <utility>
#include <vector>

#include "report/analysis/analyzer_pass.h"
#include "report/state/state_archive.h"

namespace memtrace::report {

// The members; what the archive has of stacks and sites is in pieces of their own.
template <typename Archive>
void AnalyzerPass::Fold(Archive& archive) {
  uint64_t stacks = stacks_->size(), sites = model_.site_count();
  archive(stacks, sites);
  archive.Check(stacks <= stacks_->size() && sites == model_.site_count());
  archive(rss_bytes_, usage_, before_first_mapping_, mapped_at_start_, large_mmaps_, arena_mmaps_,
          stops_, stopped_ns_, stopped_at_ns_, names_, events_, from_rings_, latest_ns_);
  model_.Fold(archive);
  mappings_.Fold(archive);
  faults_.Fold(archive);
  fault_matcher_.Fold(archive);
  timeline_.Fold(archive);
  phases_.Fold(archive);
  uint64_t streams = streams_.size();
  archive(streams);
  archive.Check(streams <= reader_->streams().size());
  if (!archive.ok()) return;
  streams_.resize(streams);
  for (StreamState& stream : streams_) stream.Fold(archive);
  order_->Fold(archive);
  auto damages = reader_->event_damages();
  archive(damages);
  if constexpr (Archive::kReads) {
    archive.Check(archive.at_end());
    if (archive.ok()) reader_->NoteAgain(damages);
  }
}

void AnalyzerPass::Keep() {
  wants_keep_ = false;
  index::StateWriter piece, state;
  std::vector<StackNode> nodes;
  std::vector<std::pair<StackId, format::AllocFunction>> sites;
  while (kept_stacks_ < stacks_->size()) nodes.push_back(stacks_->node({++kept_stacks_}));
  for (; kept_sites_ + 1 < model_.site_count(); ++kept_sites_) {
    const auto site = static_cast<uint32_t>(kept_sites_ + 1);
    sites.emplace_back(model_.SiteStack(site), model_.SiteFunction(site));
  }
  piece(nodes, sites);
  Fold(state);
  options_.keeper->Keep(Point(), piece.Take(), state.Take());
}

// Stacks may be there already, of an earlier pass over this trace.
bool AnalyzerPass::TakeUpPieces(const PassState& state) {
  uint32_t stacks = 0;
  for (const std::string& bytes : state.pieces) {
    index::StateReader piece(bytes);
    piece.set_stacks(UINT32_MAX);
    std::vector<StackNode> nodes;
    std::vector<std::pair<StackId, format::AllocFunction>> sites;
    piece(nodes, sites);
    if (!piece.ok() || !piece.at_end()) return false;
    for (const StackNode& node : nodes) {
      if (node.parent.value > stacks) return false;
      if (stacks_->Intern(node.parent, node.pc, node.instance).value != ++stacks) return false;
    }
    for (const auto& [stack, function] : sites) {
      const size_t before = model_.site_count();
      if (stack.value > stacks) return false;
      model_.SiteOf(stack, function);
      if (model_.site_count() != before + 1) return false;
    }
  }
  return true;
}

bool AnalyzerPass::TakeUp(const PassState& state) {
  if (!TakeUpPieces(state)) return false;
  index::StateReader reader(state.state);
  reader.set_stacks(stacks_->size());
  Fold(reader);
  if (!reader.ok() || streams_.size() < model_.thread_count() || !order_->Resume()) return false;
  for (size_t i = 0; i < reader_->streams().size(); ++i) {
    if (order_->begun(i) && i >= model_.thread_count()) return false;
  }
  if (range_.from_ns > window_begin_ns_) {
    model_.ForgetFigures();
    mappings_.ForgetFigures();
    faults_.ForgetFigures();
    fault_matcher_.ForgetFigures();
    phases_.ForgetFigures();
    phases_.SetUsageBefore(usage_);
    timeline_ = Timeline(range_.from_ns);
    usage_.live_bytes = usage_.bytes_allocated = 0;
    events_ = from_rings_ = 0;
  }
  bytes_before_ = order_->content_bytes_read();
  return true;
}

}  // namespace memtrace::report
