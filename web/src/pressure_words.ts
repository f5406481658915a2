// What the columns of the samples from outside are called: docs/pressure.md tells what each is.

const WORDS: { [column: string]: string } = {
  rss_anon_bytes: 'resident, anonymous',
  rss_file_bytes: 'resident, of files',
  rss_shmem_bytes: 'resident, shared memory',
  swap_bytes: 'swapped out',
  peak_rss_bytes: 'most that was resident',
  page_tables_bytes: 'page tables',
  minor_faults: 'minor faults, with memtrace’s own',
  major_faults: 'major faults, with memtrace’s own',
  'rollup.rss_bytes': 'resident, by its page tables',
  'rollup.pss_bytes': 'its share of what is resident (PSS)',
  'rollup.private_clean_bytes': 'resident, its alone, not written to',
  'rollup.private_dirty_bytes': 'resident, its alone, written to',
  'rollup.shared_bytes': 'resident, shared with others',
  'rollup.anonymous_bytes': 'resident, anonymous, by its page tables',
  'rollup.anon_huge_bytes': 'in huge pages',
  'rollup.lazy_free_bytes': 'given back, to be taken when memory is short',
  'rollup.swap_pss_bytes': 'its share of what is swapped out',
  'rollup.locked_bytes': 'locked in memory',
  'tree.processes': 'processes, with all descendants',
  'tree.rss_bytes': 'resident, with all descendants',
  'system.available_bytes': 'available in the system',
  'system.swap_free_bytes': 'free swap of the system',
  'cgroup.current_bytes': 'control group',
  'cgroup.limit_bytes': 'control group, its limit',
  'cgroup.swap_bytes': 'control group, swapped out',
  'sampler.cpu_us': 'memtrace’s time for the samples',
};

const WHOSE: { [owner: string]: string } = { system: 'system', cgroup: 'control group' };

// Of a control group and of the system.
const COUNTS: { [column: string]: string } = {
  pgmajfault: 'major faults',
  pswpin: 'pages swapped in',
  pswpout: 'pages swapped out',
  workingset_refault_anon: 'refaults of anonymous memory',
  workingset_refault_file: 'refaults of files',
  pgscan_kswapd: 'pages looked at in the background',
  pgscan_direct: 'pages looked at by those who wanted memory',
  pgsteal_kswapd: 'pages taken back in the background',
  pgsteal_direct: 'pages taken back by those who wanted memory',
  high: 'times above its high mark',
  max: 'times at its limit',
  oom: 'times out of memory',
  oom_kill: 'processes killed for lack of memory',
  stall_some_us: 'some waited for memory',
  stall_full_us: 'all waited for memory',
};

export function pressureWords(column: string): string {
  const [owner, count] = column.split('.');
  if (column in WORDS) return WORDS[column];
  return owner in WHOSE && count in COUNTS ? `${WHOSE[owner]}: ${COUNTS[count]}`
    : column.replace(/[._]/g, ' ');
}
