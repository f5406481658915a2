// The page of one trace: what is above all views, the views, and which of them is shown.

import type { ReportDocument } from './data';
import { h, name } from './dom';
import { FilterBox } from './filter_box';
import type { Measure } from './measures';
import { Model, type View } from './model';
import { about, Shell } from './shell';
import type { State } from './state';
import { baseName, plural } from './text';
import type { ThemeChoice } from './theme';
import { verdictCards } from './verdicts';
import { CoverageView } from './views/coverage';
import { FaultsView } from './views/faults';
import { FlameView } from './views/flame';
import { GrowthView } from './views/growth';
import { LeaksView } from './views/leaks';
import { MappingsView } from './views/mappings';
import { PhasesView } from './views/phases';
import { PressureView } from './views/pressure';
import { ResidentView } from './views/resident';
import { SitesView } from './views/sites';
import { SourcesView } from './views/sources';
import { SummaryView } from './views/summary';
import { ThreadsView } from './views/threads';
import { Timeline } from './views/timeline';

export function showReport(root: HTMLElement, document_: ReportDocument, state: State, theme: ThemeChoice): void {
  const model = new Model(document_, state);
  const { process } = model.report;
  const program = baseName(process.command[0] ?? process.executable) || 'program';
  document.title = `${program} – memtrace report`;

  const views: View[] = [
    new SummaryView(model), new FlameView(model), new LeaksView(model),
    ...(model.report.sites.some((site) => typeof site.growth === 'string') ? [new GrowthView(model)] : []),
    new SitesView(model),
    new SourcesView(model), ...(PhasesView.has(model) ? [new PhasesView(model)] : []), new ThreadsView(model), new FaultsView(model, theme),
    ...((model.report.resident ?? []).length > 0 ? [new ResidentView(model)] : []),
    ...(model.report.pressure ? [new PressureView(model, theme)] : []),
    new MappingsView(model), new CoverageView(model),
  ];
  const timeline = new Timeline(model, theme);

  const measure = h('select', { id: 'measure', on: { change: () => state.set({ measure: measure.value }, true) } });
  const measureLabel = h('label', { for: 'measure' }, 'Measure');
  let offered: Measure[] = [];
  const filter = new FilterBox(state, { frame: '' });
  const tools = h('div', { class: 'tools', role: 'search' },
    filter.element, measureLabel, measure);

  const onPaper = h('p', { class: 'on-paper' });  // which has no tools
  const left = model.report.sites_total - model.report.sites.length;
  const shell = new Shell(views, state, {
    header: h('header', {}, h('h1', {}, name(program), h('small', {}, ' ', name(document_.file))), theme.button),
    above: [verdictCards(model), ...left > 0 ? [h('section', { 'aria-label': 'Sites that are not here' }, h('p', { class: 'notes' }, `${plural(left, 'site')} with fewer bytes are not in this page (memtrace report --full has ` +
      'them). The verdict, the timeline and the figures of the run are of all; what is told by site lacks them, and says so.'))] : [],
    timeline.element, tools, onPaper],
    below: about(document_.version),
  }, timeline);
  root.replaceChildren(shell.element);
  const update = () => {
    if (model.measures !== offered) {  // others in a range than of the whole run
      offered = model.measures;
      measure.hidden = measureLabel.hidden = offered.length === 0;  // nothing was allocated
      measure.replaceChildren(...offered.map((one) => h('option', { value: one.id }, one.title)));
    }
    if (measure.value !== model.measure?.id) measure.value = model.measure?.id ?? '';
    filter.update();
    onPaper.textContent = [`Time: ${model.intervals.text(model.chosen)}`, state.get('q') !== '' && `Filter: ${state.get('q')}`,
                           model.measure && `Measure: ${model.measure.title.toLowerCase()}`].filter((part) => part).join('. ');
    timeline.update();
    shell.update();
  };
  state.subscribe(update);
  update();
}
