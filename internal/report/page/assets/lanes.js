// Activity: one lane for each VM, filled during I/O, empty while it completes none, hatched where nothing is known of it.
'use strict';

bragg.lane = { most: 22, least: 3, text: 12, room: 440, seen: 560, printed: 760 }; // pixels

bragg.lanesOf = function (chart) {
  if (!chart.laneList) {
    chart.laneList = chart.tables.flatMap(t => t.lines.map(line => ({ line, runs: bragg.laneRuns(t.x, line.y) })));
    chart.laneList.sort((a, b) => a.line.order - b.line.order);
  }
  return chart.laneList;
};

// laneRuns are the stretches of one value. A point stands for the time up to half way to its neighbors; a null is no data, and
// so is what no point stands for.
bragg.laneRuns = function (x, y) {
  const runs = [];
  x.forEach((at, i) => {
    const before = i > 0 ? at - x[i - 1] : x[1] - at || 1, after = i + 1 < x.length ? x[i + 1] - at : before;
    const from = at - before / 2, to = at + after / 2, last = runs[runs.length - 1];
    if (y[i] === null || y[i] === undefined) return;
    const on = y[i] > 0;
    if (last && last.on === on && Math.abs(last.to - from) < 1e-6) last.to = to;
    else runs.push({ from, to, on });
  });
  return runs;
};

// laneHeight makes lanes thinner when there are many; from a number on the chart is scrolled, on paper they are thinner still.
bragg.laneHeight = function (chart) {
  const n = bragg.lanesOf(chart).length, room = bragg.printing ? bragg.lane.printed : bragg.lane.room;
  return Math.max(bragg.printing ? Math.min(bragg.lane.least, room / n) : bragg.lane.least, Math.min(bragg.lane.most, Math.floor(room / n)));
};

bragg.lanesHeight = function (chart) {
  return Math.ceil(bragg.lanesOf(chart).length * bragg.laneHeight(chart)) + 39 + (chart.rows || 0) * bragg.markRow;
};

// laneOptions turns the options of a chart of lines into those of lanes.
bragg.laneOptions = function (chart, options) {
  const list = bragg.lanesOf(chart), most = 24, every = () => Math.ceil(bragg.lane.text / bragg.laneHeight(chart)); // on paper another one
  const names = list.map(({ line }) => line.name.length > most ? '…' + line.name.slice(1 - most) : line.name);
  options.scales.y = { dir: -1, range: () => [0, list.length] };
  options.axes = [{ ...options.axes[0], grid: { show: false } }, {
    ...options.axes[1], grid: { show: false }, space: 1, size: 18 + Math.ceil(6.6 * Math.max(...names.map(n => n.length))),
    splits: () => list.map((_, i) => i + 0.5), values: () => names.map((n, i) => i % every() ? '' : n),
  }];
  options.series = options.series.map((s, i) => i ? { ...s, paths: () => null, points: { show: false } } : s);
  options.cursor.points = { show: false };
  options.bands = [];
  options.hooks = { drawClear: [bragg.drawLanes(chart)], draw: [bragg.events(chart)] };
};

bragg.hatch = function (ctx, ratio) {
  const tile = document.createElement('canvas'), size = Math.round(6 * ratio), pen = tile.getContext('2d');
  tile.width = tile.height = size;
  pen.strokeStyle = bragg.color('--strong-line');
  pen.lineWidth = ratio;
  pen.beginPath();
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift, size);
    pen.lineTo(shift + size, 0);
  }
  pen.stroke();
  return ctx.createPattern(tile, 'repeat');
};

bragg.drawLanes = function (chart) {
  return u => bragg.clipped(u, (ctx, bbox, ratio) => {
    const list = bragg.lanesOf(chart), height = bbox.height / list.length, gap = height > 6 * ratio ? Math.round(height * 0.14) : 0;
    const at = moment => Math.round(u.valToPos(moment, 'x', true)), hatched = bragg.hatch(ctx, ratio);
    list.forEach(({ runs }, i) => {
      const top = Math.round(bbox.top + i * height) + gap, tall = Math.max(1, Math.round(bbox.top + (i + 1) * height) - gap - top);
      ctx.fillStyle = hatched;
      ctx.fillRect(bbox.left, top, bbox.width, tall);
      for (const run of runs) {
        const left = at(run.from), width = Math.max(1, at(run.to) - left);
        ctx.fillStyle = bragg.color(run.on ? '--c0' : '--raised');
        ctx.fillRect(left, top, width, tall);
        if (run.on) continue;
        ctx.fillStyle = bragg.color('--c0'); // an empty lane still has its ground
        ctx.fillRect(left, top + tall - Math.ceil(ratio), width, Math.ceil(ratio));
      }
    });
  });
};

bragg.laneStates = [['on', 'I/O'], ['off', 'no I/O'], ['unknown', 'no data']];

bragg.laneState = function (lane, at) {
  const run = lane.runs.find(r => at >= r.from && at < r.to);
  return bragg.laneStates[!run ? 2 : run.on ? 0 : 1][1];
};

// laneLegend says what the three fills mean; the names are at the lanes.
bragg.laneLegend = function (list) {
  for (const [state, text] of bragg.laneStates) {
    const item = bragg.element('li', 'lane-key', text);
    item.prepend(bragg.element('i', state, ''));
    list.append(item);
  }
  list.setAttribute('aria-label', 'Lane legend');
};

// laneRow is the line of the tooltip for the lane under the pointer.
bragg.laneRow = function (chart, u) {
  const list = bragg.lanesOf(chart), { left, top } = u.cursor;
  const lane = list[Math.max(0, Math.min(list.length - 1, Math.floor(top / u.over.clientHeight * list.length)))];
  return { name: lane.line.name, state: bragg.laneState(lane, u.posToVal(left, 'x')) };
};
