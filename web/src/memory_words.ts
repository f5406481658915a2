// What memory is called: the keys of the report as the sections of the text have them.

// `resident[].parts`
const PARTS: { [part: string]: string } = {
  live: 'requested bytes of live blocks', waste: 'waste and headers of live blocks', retained: 'free, kept by the allocator',
  program_mappings: 'mappings of the program', mapped_files: 'mapped files', shared: 'shared memory', stacks: 'stacks', code: 'code',
  data: 'data of modules', tool: 'memtrace itself', other: 'other mappings',
};

// `faults.by_memory` and `faults.places[].memory`
const KINDS: { [kind: string]: string } = {
  block: 'a block of malloc', mapping: 'a mapping of the program', allocator: 'the allocator’s own', stack: 'stack',
  data: 'data of a module', bss: '.bss of a module', text: 'code of a module', rodata: 'constants of a module', file: 'a file',
  shared: 'shared memory', tool: 'memtrace itself', kernel: 'the kernel’s page', unknown: 'in no map of the trace',
};

export const partWords = (part: string) => PARTS[part] ?? part.replaceAll('_', ' ');
export const memoryWords = (kind: string) => KINDS[kind] ?? kind.replaceAll('_', ' ');
