// One chart: uPlot with the report's axes, colours, tooltip, legend, zoom and keyboard.
'use strict';

// Means of service and response time, then their percentiles: told apart without colours.
bragg.dashes = [undefined, [7, 4], [2, 3], [9, 3, 2, 3]];
bragg.dashArrays = [undefined, '5 3', '2 2.5', '6 2 1.5 2'];
bragg.manyLines = 12;

// joined brings the tables of a chart onto one axis. A point that is missing only because another line has other times
// is undefined and bridged; a gap is null and stays a gap.
bragg.joined = function (chart) {
  const tables = chart.tables.map(t => [t.x, ...t.lines.map(l => l.y)]);
  return tables.length === 1 ? tables[0] : uPlot.join(tables);
};

bragg.options = function (chart, lines, log) {
  const axis = {
    stroke: () => bragg.color('--axis'), font: '12px system-ui, "DejaVu Sans", sans-serif',
    grid: { stroke: () => bragg.color('--grid'), width: 1 }, ticks: { show: false }, border: { show: false },
  };
  const many = lines.length > bragg.manyLines && !chart.spread;
  return {
    width: 600, height: 280, padding: [9 + chart.rows * bragg.markRow, 24, 0, 4], legend: { show: false },
    cursor: {
      sync: { key: 'bragg', setSeries: false, scales: ['x', null] }, drag: { x: true, y: false, setScale: false },
      bind: { dblclick: () => () => { bragg.zoom(null); } },
      points: { size: 7 }, focus: { prox: many ? 24 : -1 }, y: false,
    },
    focus: { alpha: many ? 0.18 : 1 },
    scales: {
      x: { time: false, range: (u, min, max) => [min, max] },
      y: { distr: log ? 3 : 1, range: (u, min, max) => bragg.range(chart, min, max, log) },
    },
    axes: [
      { ...axis, space: 70, size: 30, incrs: [0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400],
        values: (u, list) => list.map(v => v === null ? '' : bragg.clock(v, list.length > 1 && list[1] - list[0] < 1 ? 1 : 0)) },
      { ...axis, size: (u, list) => Math.max(72, ...(list || []).map(text => 18 + 7 * text.length)),
        values: (u, list) => log ? list.map(v => v === null ? '' : bragg.quantity(v, chart.unit)) : bragg.ticks(list, chart.unit) },
      ...(chart.full ? [{ ...axis, side: 1, size: 46, grid: { show: false },
        splits: (u, i, min, max) => bragg.percents(max / chart.full * 100).map(p => p * chart.full / 100),
        values: (u, list) => bragg.ticks(list.map(v => v / chart.full * 100), '%') }] : []),
    ],
    series: [{}, ...lines.map(l => ({
      label: l.name, stroke: () => bragg.color('--c' + l.color), width: many ? 1 : l.band === 'median' ? 2.2 : l.band ? 0.8 : 1.6, dash: bragg.dashes[l.dash || 0],
      points: { show: bragg.fewPoints(chart), size: 5 }, alpha: many ? 0.6 : 1,
    }))],
    bands: bragg.bandsOf(lines),
    hooks: { drawClear: [bragg.stretches(), bragg.bands(chart)], draw: [bragg.names(chart), bragg.events(chart)] },
  };
};

// percents are the marks of an axis from 0 to top percent.
bragg.percents = function (top) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200].find(s => top / s <= 6) || top / 5, list = [];
  for (let p = 0; p <= top; p += step) list.push(p);
  return list;
};

// addSpread adds, for each kind of line, the lowest, the median and the highest at each time: of many VMs these are drawn, and
// the single ones on demand.
bragg.addSpread = function (c) {
  const kinds = new Map();
  c.lines.forEach((line, i) => {
    const key = `${line.kind || ''} ${line.statistic || ''}`;
    kinds.set(key, [...(kinds.get(key) || []), i]);
  });
  let color = 0;
  for (const members of kinds.values()) {
    const first = c.lines[members[0]], of = ` of ${members.length}${first.kind ? `, ${first.kind} time` : ''}`;
    const rows = c.data[0].map((_, x) => members.map(i => c.data[i + 1][x]).filter(v => v !== null && v !== undefined).sort((a, b) => a - b));
    const middle = r => (r[(r.length - 1) >> 1] + r[r.length >> 1]) / 2;
    for (const [band, name, pick] of [['min', 'lowest', r => r[0]], ['median', 'median', middle], ['max', 'highest', r => r[r.length - 1]]]) {
      c.lines.push({ name: name + of, band, color, dash: first.dash, order: -10 + c.lines.length / 1e4, kind: first.kind });
      c.data = [...c.data, rows.map(r => r.length ? pick(r) : null)];
    }
    color++;
  }
};

// bandsOf fills what lies between the lowest and the highest.
bragg.bandsOf = function (lines) {
  const bands = [];
  lines.forEach((l, i) => {
    if (l.band === 'max') bands.push({ series: [i + 1, i - 1], fill: () => bragg.color('--c' + l.color) + '30' });
  });
  return bands;
};

// fewPoints: a line through a handful of points shows them.
bragg.fewPoints = function (chart) { return chart.tables.every(t => t.x.length <= 40) && !!chart.tables.length; };

// range starts at zero, because a chart that does not shows small differences as large ones. A chart that says so is near its values.
bragg.range = function (chart, min, max, log) {
  if (min === null || max === null) return log ? [1, 10] : [0, 1];
  if (log) return uPlot.rangeLog(Math.max(min, Number.MIN_VALUE), Math.max(max, min), 10, false);
  if (chart.expected !== undefined && chart.expected !== null) { min = Math.min(min, chart.expected); max = Math.max(max, chart.expected); }
  if (chart.near) { const pad = (max - min) * 0.1 || Math.abs(max) * 0.1 || 1; return [Math.max(min - pad, 0), max + pad]; }
  const pad = (Math.max(max, 0) - Math.min(min, 0)) * 0.06 || 1;
  return [min < 0 ? min - pad : 0, max > 0 ? max + pad : pad];
};

bragg.Chart = class {
  constructor(box, chart, marks) {
    this.box = box;
    this.chart = chart;
    chart.marks = chart.against ? [] : marks;
    this.lines = chart.tables.flatMap(t => t.lines);
    this.data = bragg.joined(chart);
    if (chart.spread) bragg.addSpread(this);
    this.log = !!chart.log;
    this.shown = this.lines.map(l => !chart.spread || !!l.band);
    this.tip = document.createElement('div');
    this.tip.className = 'tip';
    this.tip.hidden = true;
    this.build();
    this.buildLegend();
    this.buildTools();
    box.addEventListener('keydown', e => this.key(e));
    box.addEventListener('mouseleave', () => { this.tip.hidden = true; });
  }

  build() {
    const zoom = this.u && this.u.scales.x;
    if (this.u) this.u.destroy();
    const width = this.width();
    this.chart.rows = bragg.markRows(this.chart.marks, this.chart.from, this.chart.to, width - 100);
    const options = bragg.options(this.chart, this.lines, this.log);
    options.width = width;
    options.height = this.height();
    if (this.chart.lanes) bragg.laneOptions(this.chart, options);
    if (this.chart.against) bragg.againstOptions(this.chart, this.lines, options);
    options.hooks.setCursor = [u => this.point(u)];
    options.hooks.setSelect = [u => this.select(u)];
    // Two steps: the first scale comes from the window of the result, not from its points.
    const full = { min: this.chart.from, max: this.chart.to };
    options.scales.x.min = full.min;
    options.scales.x.max = full.max;
    this.u = new uPlot(options, this.log ? this.positive() : this.data, this.box);
    this.u.setScale('x', zoom ? { min: zoom.min, max: zoom.max } : full);
    this.shown.forEach((on, i) => { if (!on) this.u.setSeries(i + 1, { show: false }); });
    this.u.over.appendChild(this.tip);
  }

  // positive hides what a logarithm cannot show.
  positive() { return this.data.map((column, i) => i ? column.map(v => v > 0 ? v : v === undefined ? undefined : null) : column); }

  height() { return this.chart.lanes ? bragg.lanesHeight(this.chart) : bragg.printing ? 210 : window.innerWidth < 640 ? 240 : 290; }

  width() { return Math.max(200, bragg.printing ? bragg.printWidth : this.box.clientWidth); }

  resize() { this.u.setSize({ width: this.width(), height: this.height() }); }

  // select turns a dragged range into a zoom of all charts.
  select(u) {
    const { left, width } = u.select;
    if (width === 0) return;
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    // The others hear of the same drag through the shared cursor.
    if (width >= 4 && bragg.hovered === this) bragg.zoom([u.posToVal(left, 'x'), u.posToVal(left + width, 'x')]);
  }

  setZoom(range) {
    if (this.chart.against) return;
    this.u.setScale('x', range ? { min: range[0], max: range[1] } : { min: this.chart.from, max: this.chart.to });
    if (this.reset) this.reset.hidden = !range;
  }

  buildLegend() {
    const list = document.querySelector(`[data-legend="${this.chart.id}"]`);
    if (!list) return;
    if (this.chart.lanes) { bragg.laneLegend(list); return; }
    this.buttons = this.lines.map((line, i) => bragg.legendButton(line, () => this.toggle(i)));
    this.buttons.forEach((b, i) => b.setAttribute('aria-pressed', String(this.shown[i])));
    if (this.chart.spread) {
      list.append(bragg.item(bragg.textButton('show single VMs', () => this.showOnly(() => true))),
        bragg.item(bragg.textButton('band only', () => this.showOnly(i => !!this.lines[i].band))));
    } else if (this.lines.length > bragg.manyLines) {
      list.append(bragg.item(bragg.textButton('show all', () => this.showOnly(() => true))),
        bragg.item(bragg.textButton('hide all', () => this.showOnly(() => false))));
    }
    this.buttons.map((b, i) => [this.lines[i].order, b]).sort((a, b) => a[0] - b[0]).forEach(([, b]) => list.append(bragg.item(b)));
  }

  toggle(i) {
    this.shown[i] = !this.shown[i];
    this.apply(i);
  }

  showOnly(want) {
    this.u.batch(() => this.lines.forEach((line, i) => {
      this.shown[i] = want(i);
      this.apply(i);
    }));
  }

  apply(i) {
    this.u.setSeries(i + 1, { show: this.shown[i] });
    this.buttons[i].setAttribute('aria-pressed', String(this.shown[i]));
  }

  buildTools() {
    const figure = this.box.closest('figure');
    this.reset = figure && figure.querySelector('[data-reset]');
    if (this.reset) this.reset.addEventListener('click', () => bragg.zoom(null));
    const log = figure && figure.querySelector('[data-log]');
    if (log) log.addEventListener('click', () => {
      this.log = !this.log;
      log.setAttribute('aria-pressed', String(this.log));
      this.build();
    });
  }

  // point fills the tooltip; only the chart under the pointer shows one.
  point(u) {
    const { left, top, idx } = u.cursor;
    if (left < 0 || idx === null || idx === undefined || bragg.hovered !== this) { this.tip.hidden = true; return; }
    const at = u.data[0][idx], rows = [];
    this.lines.forEach((line, i) => {
      if (!this.shown[i]) return;
      const { value, at: own } = this.pointAt(i + 1, idx);
      if (value !== null) rows.push({ line, value, own, distance: Math.abs(u.valToPos(value, 'y') - top) });
    });
    rows.sort((a, b) => a.distance - b.distance);
    this.fillTip(at, this.chart.lanes ? [] : rows, bragg.marksNear(u, this.chart, left));
    const width = this.tip.offsetWidth, room = u.over.clientWidth;
    this.tip.style.left = (left + 18 + width > room ? Math.max(0, left - width - 14) : left + 14) + 'px';
  }

  // pointAt is the point of a line at or just before one of the joined axis, with its own time; its value is null in a gap.
  pointAt(column, idx) {
    const values = this.u.data[column];
    let i = idx;
    while (i > 0 && values[i] === undefined) i--;
    return { value: values[i] === undefined ? null : values[i], at: this.u.data[0][i] };
  }

  fillTip(at, rows, marks) {
    const shown = rows.slice(0, 8).sort((a, b) => a.line.order - b.line.order);
    const parts = [bragg.element('span', 'at', bragg.place(this.chart, at))];
    for (const mark of marks.slice(0, 6)) {
      const row = document.createElement('div');
      row.className = 'event';
      row.textContent = (mark.flag || mark.number) + '  ' + bragg.moment(mark.at) + ' ' + mark.label;
      parts.push(row);
    }
    if (marks.length > 6) parts.push(bragg.element('div', 'event', `and ${marks.length - 6} more events`));
    for (const r of shown) {
      const row = document.createElement('div');
      row.append(bragg.element('span', '', r.line.name), bragg.element('span', '', bragg.quantity(r.value, this.chart.unit) +
        (this.chart.full ? ` · ${bragg.quantity(r.value / this.chart.full * 100, '%')}` : '') + bragg.pieceText(this.chart, r.line, r.own) + (r.own === at ? '' : ` at ${bragg.place(this.chart, r.own)}`)));
      row.firstChild.style.color = bragg.color('--c' + r.line.color);
      parts.push(row);
    }
    if (this.chart.lanes) {
      const { name, state } = bragg.laneRow(this.chart, this.u), row = bragg.element('div', '', '');
      row.append(bragg.element('span', '', name), bragg.element('span', '', state));
      parts.push(row);
    }
    if (rows.length > shown.length) parts.push(bragg.element('span', 'event', `and ${rows.length - shown.length} more`));
    this.tip.replaceChildren(...parts);
    this.tip.hidden = false;
  }

  // key moves the cursor and zooms without a pointer.
  key(e) {
    const { min, max } = this.u.scales.x, step = (max - min) / 100, width = this.u.over.clientWidth;
    const at = this.u.cursor.left >= 0 ? this.u.cursor.left : width / 2;
    bragg.hovered = this;
    const move = x => this.u.setCursor({ left: Math.min(width, Math.max(0, x)), top: this.u.over.clientHeight / 2 });
    const middle = this.u.posToVal(at, 'x');
    switch (e.key) {
      case 'ArrowLeft': move(at - width / 100); break;
      case 'ArrowRight': move(at + width / 100); break;
      case this.chart.against && e.key: return;
      case '+': bragg.zoom([middle - 25 * step, middle + 25 * step]); break;
      case '-': case 'Escape': bragg.zoom(null); break;
      default: return;
    }
    e.preventDefault();
  }
};

// pieceText says over how long a value was measured that belongs to no single second.
bragg.pieceText = function (chart, line, at) {
  const piece = (line.pieces || []).find(p => at >= p[0] - 1e-3 && at <= p[1] + 1e-3);
  return piece ? ` · one interval of ${bragg.quantity((piece[1] - piece[0]) * 1e9, 'ns')}` : '';
};

bragg.element = function (tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  e.textContent = text;
  return e;
};

bragg.item = function (child) {
  const li = document.createElement('li');
  li.append(child);
  return li;
};

bragg.textButton = function (text, press) {
  const b = bragg.element('button', '', text);
  b.type = 'button';
  b.addEventListener('click', press);
  return b;
};

bragg.legendButton = function (line, press) {
  const b = bragg.textButton('', press);
  b.setAttribute('aria-pressed', 'true');
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('width', '18');
  svg.setAttribute('height', '10');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('d', 'M1 5H17');
  path.style.stroke = `var(--c${line.color})`;
  path.setAttribute('stroke-width', '2.5');
  if (line.dash) path.setAttribute('stroke-dasharray', bragg.dashArrays[line.dash]);
  if (line.band && line.band !== 'median') path.setAttribute('stroke-width', '1');
  svg.append(path);
  const name = bragg.element('span', '', line.name);
  name.title = line.name;
  b.append(svg, name);
  return b;
};
