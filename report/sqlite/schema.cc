#include "report/sqlite/schema.h"

namespace memtrace::report::sqlite {

// SQLite keeps this text in the file, with its comments: `.schema` shows them.
const char kTables[] = R"sql(
CREATE TABLE meta (  -- what this file is of
  key TEXT PRIMARY KEY,  -- schema, trace, match, from_ns, to_ns
  value
) WITHOUT ROWID;

CREATE TABLE process (  -- one row
  pid INTEGER NOT NULL,
  ppid INTEGER,
  executable TEXT,
  build_id TEXT,
  command TEXT,           -- the arguments, with blanks between them
  working_directory TEXT,
  host TEXT,
  kernel TEXT,
  started_unix_ns INTEGER,
  duration_ns INTEGER NOT NULL,
  end TEXT,               -- exit, exec, signal, cut: no end is in the trace; NULL: of an imported log
  exit_status INTEGER,    -- of exit
  end_signal INTEGER,     -- of signal
  forked INTEGER NOT NULL,
  sample_bytes INTEGER    -- sampled: all sizes and counts of the heap are estimates; else NULL
);

CREATE TABLE totals (  -- one row, of the blocks that were chosen (meta): of all sites here
  allocations INTEGER NOT NULL,  -- a realloc is one, and one free
  frees INTEGER NOT NULL,
  bytes_allocated INTEGER NOT NULL,
  live_bytes INTEGER NOT NULL,   -- at the end
  live_blocks INTEGER NOT NULL,
  peak_live_bytes INTEGER NOT NULL,
  peak_live_blocks INTEGER NOT NULL,  -- at the instant of peak_live_bytes
  peak_time_ns INTEGER NOT NULL,
  wasted_bytes INTEGER,               -- usable minus requested, over all allocations; NULL: another allocator
  temporary INTEGER,                  -- freed before the thread's next allocation; NULL: a sample
  reallocations INTEGER,              -- NULL: a sample
  failed_allocations INTEGER NOT NULL
);

CREATE TABLE coverage (  -- what the trace has and lacks; all_recorded 1: it lacks nothing
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE notes (text TEXT NOT NULL);  -- sentences about that, and about names

CREATE TABLE modules (  -- files that were mapped
  id INTEGER PRIMARY KEY,
  path TEXT,
  build_id TEXT,
  start INTEGER NOT NULL,
  end INTEGER NOT NULL,
  bias INTEGER NOT NULL,      -- address in memory minus address in the file
  executable INTEGER NOT NULL,  -- 1: the program itself
  tracer INTEGER NOT NULL,      -- 1: libmemtrace.so
  loaded_ns INTEGER NOT NULL,
  unloaded_ns INTEGER           -- NULL: never
);

CREATE TABLE threads (
  id INTEGER PRIMARY KEY,
  tid INTEGER,
  name TEXT,
  in_signal_handlers INTEGER NOT NULL,  -- 1: what its signal handlers did that interrupted the tracer
  allocations INTEGER NOT NULL,
  frees INTEGER NOT NULL,
  bytes_allocated INTEGER NOT NULL,
  live_bytes INTEGER NOT NULL,   -- allocated by this thread and live at the end
  live_blocks INTEGER NOT NULL,
  temporary INTEGER,            -- as in totals
  first_ns INTEGER NOT NULL,
  last_ns INTEGER NOT NULL
);

CREATE TABLE frames (  -- steps of stacks, with names
  id INTEGER PRIMARY KEY,
  function TEXT,        -- demangled; NULL: not known
  linkage_name TEXT,    -- mangled, where that is another
  module TEXT,          -- path; NULL: code outside of every file
  offset INTEGER NOT NULL,  -- in the module, of the return address
  file TEXT,
  line INTEGER,
  inlined INTEGER NOT NULL, -- 1: into the next frame of the stack
  role TEXT NOT NULL,   -- project, system, allocator, start, invoker, marker: why a stack ends
  name TEXT NOT NULL    -- function, or, where that is not known, "libx.so+0x1a2b"
);

CREATE TABLE stacks (
  id INTEGER PRIMARY KEY,
  depth INTEGER NOT NULL,  -- frames
  caller INTEGER REFERENCES frames  -- the frame that tables name for it: the first of the project
);

CREATE TABLE stack_frames (
  stack INTEGER NOT NULL REFERENCES stacks,
  position INTEGER NOT NULL,  -- 0 the innermost
  frame INTEGER NOT NULL REFERENCES frames,
  PRIMARY KEY (stack, position)
) WITHOUT ROWID;

CREATE TABLE sites (  -- a distinct stack together with the function it called
  id INTEGER PRIMARY KEY,
  stack INTEGER REFERENCES stacks,  -- NULL: none was recorded
  function TEXT NOT NULL,           -- malloc, calloc, ...
  fingerprint TEXT NOT NULL,        -- the same in every build
  allocations INTEGER NOT NULL,
  frees INTEGER NOT NULL,
  bytes_allocated INTEGER NOT NULL,
  live_bytes INTEGER NOT NULL,
  live_blocks INTEGER NOT NULL,
  peak_bytes INTEGER NOT NULL,      -- the most this site ever held
  bytes_at_peak INTEGER NOT NULL,   -- held at the peak of the program
  blocks_at_peak INTEGER NOT NULL,
  wasted_bytes INTEGER,             -- as in totals, and the two that follow
  live_wasted_bytes INTEGER,
  temporary INTEGER,
  freed_by_other_thread INTEGER NOT NULL,
  largest_bytes INTEGER NOT NULL,
  first_ns INTEGER NOT NULL,        -- of any allocation
  last_ns INTEGER NOT NULL,
  live_first_ns INTEGER,            -- of the blocks that are live at the end
  live_last_ns INTEGER,
  freed_lifetime_ns REAL NOT NULL,  -- from allocation to free, added up over freed blocks
  growth TEXT,                      -- bounded, growing, burst, sawtooth, held; NULL: not judged
  held_until_exit INTEGER,          -- 1: nearly all was freed at the end; of held sites nothing before
  growth_bytes_per_s REAL,          -- of what grows, and the three that follow
  growth_bytes_per_s_low REAL,      -- a 95 % interval
  growth_bytes_per_s_high REAL,
  growth_confidence REAL
);

CREATE TABLE leak_scans (  -- looks through the memory of the program
  number INTEGER PRIMARY KEY,
  time_ns INTEGER NOT NULL,
  reason TEXT NOT NULL,  -- exit-late, exit-early, request, outside
  state TEXT NOT NULL,  -- done, cut_short, failed
  label TEXT,
  failure TEXT
);

CREATE TABLE leaks (  -- loss records of the finished scans; without one, what was not freed
  id INTEGER PRIMARY KEY,
  scan INTEGER REFERENCES leak_scans,  -- NULL: there was none
  kind TEXT NOT NULL,  -- definite, indirect, possible, reachable; unfreed without a scan
  stack INTEGER REFERENCES stacks,
  function TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  bytes INTEGER NOT NULL,            -- direct
  blocks INTEGER NOT NULL,
  indirect_bytes INTEGER NOT NULL,   -- only these lead to them
  indirect_blocks INTEGER NOT NULL,
  first_ns INTEGER NOT NULL,
  last_ns INTEGER NOT NULL
);

CREATE TABLE timeline (
  time_ns INTEGER PRIMARY KEY,       -- end of the interval
  live_bytes INTEGER NOT NULL,       -- then
  live_blocks INTEGER NOT NULL,
  max_live_bytes INTEGER NOT NULL,   -- within the interval
  allocations INTEGER NOT NULL,
  frees INTEGER NOT NULL,
  bytes_allocated INTEGER NOT NULL,
  rss_bytes INTEGER,                 -- last known
  minor_faults INTEGER,              -- NULL: none were counted, as in a log that was imported
  major_faults INTEGER
);

CREATE TABLE usage_samples (  -- of the kernel's accounts of the process
  time_ns INTEGER NOT NULL,
  minor_faults INTEGER NOT NULL,     -- so far, the tracer's own included
  major_faults INTEGER NOT NULL,
  tool_minor_faults INTEGER NOT NULL,
  rss_bytes INTEGER,
  peak_rss_bytes INTEGER,
  live_bytes INTEGER NOT NULL,
  bytes_allocated INTEGER NOT NULL
);

CREATE TABLE phases (  -- stretches that the program named (memtrace.h)
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  times INTEGER NOT NULL,
  open INTEGER NOT NULL,             -- of these, not ended
  total_ns INTEGER NOT NULL,
  allocations INTEGER NOT NULL,
  frees INTEGER NOT NULL,
  bytes_allocated INTEGER NOT NULL,
  growth_bytes INTEGER NOT NULL,     -- live at the end minus at the begin
  growth_blocks INTEGER NOT NULL,
  first_begin_ns INTEGER NOT NULL,
  last_end_ns INTEGER NOT NULL
);

CREATE TABLE marks (
  name TEXT NOT NULL,
  time_ns INTEGER NOT NULL,
  live_bytes INTEGER NOT NULL,
  live_blocks INTEGER NOT NULL
);

CREATE TABLE pools (
  id INTEGER PRIMARY KEY,
  name TEXT,
  stack INTEGER REFERENCES stacks,   -- of their creation
  created INTEGER NOT NULL,
  destroyed INTEGER NOT NULL,
  allocations INTEGER NOT NULL,
  frees INTEGER NOT NULL,
  bytes_allocated INTEGER NOT NULL,
  live_bytes INTEGER NOT NULL,
  live_blocks INTEGER NOT NULL,
  peak_bytes INTEGER NOT NULL
);

CREATE TABLE mappings (  -- memory from the kernel, by stack
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,    -- mmap, brk, shm, heap_growth, arena_growth, mapped_block
  stack INTEGER REFERENCES stacks,
  file TEXT,
  calls INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  live_bytes INTEGER NOT NULL
);

CREATE TABLE block_ends (  -- where a realloc of another site took blocks of a site over (one of the same
                           -- site is in totals.reallocations alone), and where they were freed, if
                           -- the trace has the stacks of frees
  site INTEGER NOT NULL REFERENCES sites,
  ended_by TEXT NOT NULL,           -- realloc, free; what a mismatched one was: operator delete
  stack INTEGER REFERENCES stacks,  -- of that call; NULL: none was recorded
  times INTEGER NOT NULL,
  mismatched INTEGER NOT NULL       -- 1: not by what ends such a block
);

CREATE TABLE invalid_frees (  -- of what was no live block, those of the same stacks together; times and addresses of the first
  kind TEXT NOT NULL,               -- double_free, inside_live_block, inside_freed_block
  times INTEGER NOT NULL,
  address INTEGER NOT NULL,
  offset INTEGER NOT NULL,          -- of the address in the block
  block_bytes INTEGER NOT NULL,
  allocated_ns INTEGER NOT NULL,
  allocated_stack INTEGER REFERENCES stacks,
  freed_ns INTEGER,                 -- NULL: the block was live
  freed_stack INTEGER REFERENCES stacks,  -- NULL: none was recorded, as of the next
  again_ns INTEGER NOT NULL,
  again_stack INTEGER REFERENCES stacks
);

CREATE TABLE fault_sites (  -- page faults on the blocks of a site, where single faults were seen
  id INTEGER PRIMARY KEY,
  stack INTEGER REFERENCES stacks,  -- that allocated the blocks
  function TEXT NOT NULL,
  minor INTEGER NOT NULL,
  major INTEGER NOT NULL,
  by_allocator INTEGER NOT NULL,    -- of these, before the block was given out
  blocks INTEGER NOT NULL,          -- that had any
  first_ns INTEGER NOT NULL,
  last_ns INTEGER NOT NULL,
  touched_by TEXT,                  -- the function whose access took most
  touched_by_faults INTEGER         -- how many
);

CREATE TABLE size_classes (
  from_bytes INTEGER PRIMARY KEY,
  to_bytes INTEGER NOT NULL,
  allocations INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  live_blocks INTEGER NOT NULL,
  live_bytes INTEGER NOT NULL
);

CREATE TABLE live_blocks (  -- at the end
  address INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  site INTEGER REFERENCES sites,  -- (what was allocated while the recording was stopped is not here)
  time_ns INTEGER NOT NULL,       -- of its allocation
  ignored INTEGER NOT NULL,       -- 1: the program said that it is no leak
  holds_blocks INTEGER NOT NULL,  -- 1: blocks of a pool or of memtrace_block_alloc() lie in it
  pool INTEGER REFERENCES pools
);
)sql";

const char kIndices[] = R"sql(
CREATE INDEX frames_by_function ON frames (function);
CREATE INDEX frames_by_file ON frames (file, line);
CREATE INDEX stack_frames_by_frame ON stack_frames (frame);
CREATE INDEX sites_by_stack ON sites (stack);
CREATE INDEX sites_by_fingerprint ON sites (fingerprint);
CREATE INDEX block_ends_by_site ON block_ends (site);
CREATE INDEX leaks_by_stack ON leaks (stack);
CREATE INDEX live_blocks_by_address ON live_blocks (address);
CREATE INDEX live_blocks_by_site ON live_blocks (site);
)sql";

const char kViews[] = R"sql(
CREATE VIEW stack_text AS  -- a stack on one line, the innermost frame first
  SELECT stack, group_concat(step, ' < ') AS text FROM (
    SELECT stack, f.name ||
           coalesce(' ' || f.file || ':' || f.line, '') AS step
    FROM stack_frames JOIN frames AS f ON f.id = frame ORDER BY stack, position)
  GROUP BY stack;

CREATE VIEW site_list AS  -- sites with the function, file and line of their caller
  SELECT s.*, f.name AS caller, f.file AS caller_file, f.line AS caller_line,
         f.module AS caller_module
  FROM sites AS s LEFT JOIN stacks AS k ON k.id = s.stack LEFT JOIN frames AS f ON f.id = k.caller;

CREATE VIEW by_caller AS
  SELECT coalesce(caller, '[unknown]') AS caller, caller_file AS file, caller_module AS module,
         sum(allocations) AS allocations, sum(frees) AS frees,
         sum(bytes_allocated) AS bytes_allocated, sum(live_bytes) AS live_bytes,
         sum(live_blocks) AS live_blocks, sum(bytes_at_peak) AS bytes_at_peak,
         sum(wasted_bytes) AS wasted_bytes, sum(temporary) AS temporary
  FROM site_list GROUP BY caller, caller_file, caller_module;

CREATE VIEW by_file AS  -- by the source file of the caller
  SELECT caller_file AS file, sum(allocations) AS allocations,
         sum(bytes_allocated) AS bytes_allocated, sum(live_bytes) AS live_bytes,
         sum(live_blocks) AS live_blocks, sum(bytes_at_peak) AS bytes_at_peak,
         sum(wasted_bytes) AS wasted_bytes
  FROM site_list GROUP BY caller_file;

CREATE VIEW by_module AS  -- by the module of the caller
  SELECT caller_module AS module, sum(allocations) AS allocations,
         sum(bytes_allocated) AS bytes_allocated, sum(live_bytes) AS live_bytes,
         sum(live_blocks) AS live_blocks, sum(bytes_at_peak) AS bytes_at_peak,
         sum(wasted_bytes) AS wasted_bytes
  FROM site_list GROUP BY caller_module;

CREATE VIEW inclusive AS  -- by every function on the stack, each site once
  SELECT name AS function, sum(allocations) AS allocations, sum(bytes_allocated) AS bytes_allocated,
         sum(live_bytes) AS live_bytes, sum(live_blocks) AS live_blocks,
         sum(bytes_at_peak) AS bytes_at_peak
  FROM (SELECT DISTINCT f.name AS name, s.id, s.allocations, s.bytes_allocated,
               s.live_bytes, s.live_blocks, s.bytes_at_peak
        FROM sites AS s JOIN stack_frames AS sf ON sf.stack = s.stack
             JOIN frames AS f ON f.id = sf.frame)
  GROUP BY name;

CREATE VIEW leak_list AS  -- leaks of the last finished scan, or what was not freed, with stacks
  SELECT l.*, f.name AS caller, f.file AS caller_file, f.line AS caller_line,
         t.text AS stack_text
  FROM leaks AS l LEFT JOIN stacks AS k ON k.id = l.stack LEFT JOIN frames AS f ON f.id = k.caller
       LEFT JOIN stack_text AS t ON t.stack = l.stack
  WHERE l.scan IS (SELECT number FROM leak_scans WHERE state = 'done'
                   ORDER BY number DESC LIMIT 1);
)sql";

}  // namespace memtrace::report::sqlite
