// SortByAddress: live blocks in the order of their addresses.
//
// A trace may have millions of them, and they are asked for in this order by each snapshot of
// resident pages and by each leak scan. They lie close together, so most of an address says
// nothing: the blocks are dealt to at most 2048 parts of the range that they span, in place
// ("American flag sort", McIlroy, Bostic, McIlroy, Engineering Radix Sort, 1993), each part
// again, until it has no more places for blocks than 4096: then each is noted at its place, and
// taken from there in turn. A part with two blocks at one place is dealt once more; what is small
// is sorted by comparing.
//
// 1.5 million blocks, least of seven: 36 ms, without places 59, by comparing alone 103.
//
// Blocks at the same address, which pools may have, come in the same order every time, if they
// were given in the same order.

#ifndef MEMTRACE_REPORT_MODEL_BLOCKS_BY_ADDRESS_H_
#define MEMTRACE_REPORT_MODEL_BLOCKS_BY_ADDRESS_H_

#include <span>

#include "report/model/live_table.h"

namespace memtrace::report {

void SortByAddress(std::span<HeldBlock> blocks);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_BLOCKS_BY_ADDRESS_H_
