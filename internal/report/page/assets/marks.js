// What is drawn on a chart besides its lines: bands of values, the expected value, and the events of the run.
'use strict';

bragg.color = function (name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); };

bragg.clipped = function (u, draw) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw(ctx, bbox, devicePixelRatio);
  ctx.restore();
};

// stretches shades every other window of the run, so that before, during and after an event can be told apart.
bragg.stretches = function () {
  return u => bragg.clipped(u, (ctx, bbox) => {
    ctx.fillStyle = bragg.color('--stretch');
    (bragg.windows || []).forEach(([from, to], i) => {
      if (i % 2 === 0) return;
      const left = u.valToPos(from, 'x', true);
      ctx.fillRect(left, bbox.top, u.valToPos(to, 'x', true) - left, bbox.height);
    });
  });
};

// bands draws ranges of values and the line of the expected value behind the lines of the chart.
bragg.bands = function (chart) {
  return u => bragg.clipped(u, (ctx, bbox, ratio) => {
    bragg.bandEdges(chart, u).forEach(({ top, bottom }, i) => {
      ctx.fillStyle = bragg.color(i ? '--band-other' : '--band');
      ctx.fillRect(bbox.left, top, bbox.width, bottom - top);
    });
    const y = bragg.expectedAt(chart, u);
    if (y === null) return;
    ctx.strokeStyle = bragg.color('--expected');
    ctx.lineWidth = 1.25 * ratio;
    ctx.setLineDash([6 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  });
};

bragg.bandEdges = function (chart, u) {
  const { min, max } = u.scales.y;
  return (chart.bands || []).map(band => {
    const upper = band.upper === null ? max : Math.min(band.upper, max), lower = band.lower === null ? min : Math.max(band.lower, min);
    if (!(upper > lower)) return { name: band.name, top: 0, bottom: 0 };
    return { name: band.name, top: u.valToPos(upper, 'y', true), bottom: u.valToPos(lower, 'y', true) };
  });
};

bragg.expectedAt = function (chart, u) {
  const v = chart.expected;
  return v === undefined || v === null || v < u.scales.y.min || v > u.scales.y.max ? null : u.valToPos(v, 'y', true);
};

// names writes what bands and the expected value are over everything, with a halo that keeps them readable.
bragg.names = function (chart) {
  return u => bragg.clipped(u, (ctx, bbox, ratio) => {
    ctx.font = '11px system-ui, "DejaVu Sans", sans-serif'.replace('11', 11 * ratio);
    ctx.lineJoin = 'round';
    ctx.lineWidth = 4 * ratio;
    ctx.strokeStyle = bragg.color('--raised');
    const write = (text, x, y, align, baseline, color) => {
      ctx.textAlign = align;
      ctx.textBaseline = baseline;
      ctx.globalAlpha = 0.85;
      ctx.strokeText(text, x, y);
      ctx.globalAlpha = 1;
      ctx.fillStyle = bragg.color(color);
      ctx.fillText(text, x, y);
    };
    const right = bbox.left + bbox.width - 8 * ratio;
    bragg.bandEdges(chart, u).forEach(({ name, top, bottom }) => {
      if (bottom - top > 16 * ratio) write(name, right, bottom - 4 * ratio, 'right', 'bottom', '--soft');
    });
    const y = bragg.expectedAt(chart, u);
    if (y !== null) write('expected ' + bragg.quantity(chart.expected, chart.unit), bbox.left + 8 * ratio, y - 3 * ratio, 'left', 'bottom', '--expected');
  });
};

bragg.markRow = 17; // pixels

// clusters joins the flags that would overlap into one with a count. A flag stands at the moment of its event, that of a
// cluster at its first; at says where a moment is drawn, width how wide the flag of some events is.
bragg.clusters = function (marks, at, width) {
  const list = [];
  for (const mark of marks) {
    if (mark.quiet) continue;
    const x = at(mark.at), last = list[list.length - 1];
    if (last && x - width([mark]) / 2 < last.x + width([...last.marks, mark]) / 2 + 2) last.marks.push(mark);
    else list.push({ x, marks: [mark] });
  }
  return list;
};

bragg.flagText = function (marks) { return marks.length > 1 ? marks.length + '×' : marks[0].flag || String(marks[0].number); };

// flagLabel names one event, or which numbers a cluster holds; the list below the timeline and the tooltip have them all.
bragg.flagLabel = function (marks) {
  if (marks.length === 1) return marks[0].label;
  const last = marks[marks.length - 1];
  return marks[0].flag ? `${marks.length} events` : `events ${marks[0].number} to ${last.number}`;
};

// markRows is how many rows of flags a chart of that width needs so that few labels are left out: one or two.
bragg.markRows = function (marks, from, to, width) {
  const at = moment => (moment - from) / (to - from) * width;
  const seen = marks.filter(m => at(m.at) >= 0 && at(m.at) <= width), end = [-Infinity, -Infinity];
  let rows = seen.length ? 1 : 0;
  for (const c of bragg.clusters(seen, at, list => 9 + 6.5 * bragg.flagText(list).length)) {
    const row = c.x - 12 < end[0] ? 1 : 0;
    end[row] = c.x + 20 + bragg.flagLabel(c.marks).length * 6.4;
    rows = Math.max(rows, row + 1);
  }
  return rows;
};

// events draws a line for each event, and flags with their number or count, with a label where there is room for it.
bragg.events = function (chart) {
  return function (u) {
    const { ctx, bbox } = u, ratio = devicePixelRatio;
    const visible = chart.marks.filter(m => m.at >= u.scales.x.min && m.at <= u.scales.x.max);
    ctx.save();
    ctx.font = '600 10.5px system-ui, "DejaVu Sans", sans-serif'.replace('10.5', 10.5 * ratio);
    ctx.textBaseline = 'middle';
    const at = moment => Math.round(u.valToPos(moment, 'x', true)), right = bbox.left + bbox.width + 20 * ratio;
    const flagWidth = list => ctx.measureText(bragg.flagText(list)).width + 9 * ratio;
    visible.filter(m => m.quiet).forEach(m => bragg.markLine(ctx, bbox, m, at(m.at), bbox.top));
    const labelled = [-Infinity, -Infinity];
    const placed = bragg.clusters(visible, at, flagWidth).map(({ x, marks }) => {
      const flag = flagWidth(marks), text = bragg.flagLabel(marks), label = ctx.measureText(text).width + 5 * ratio;
      // The first row in which it covers no label; else the one whose label is cut least.
      const fits = labelled.findIndex((end, i) => i < chart.rows && x - flag / 2 > end + 3 * ratio);
      const row = fits >= 0 ? fits : labelled[0] <= labelled[1] || chart.rows < 2 ? 0 : 1;
      labelled[row] = x + flag / 2 + label;
      return { marks, xs: marks.map(m => at(m.at)), x, text, flag, label, row, left: x - flag / 2 };
    });
    chart.flags = placed.map(p => ({ x: (p.x - bbox.left) / ratio, marks: p.marks }));
    placed.forEach((p, i) => {
      const next = placed.slice(i + 1).find(o => o.row === p.row);
      const room = (next ? next.left - 4 * ratio : right) - p.left - p.flag;
      bragg.flag(ctx, bbox, p, bbox.top - (10 + (chart.rows - 1 - p.row) * bragg.markRow) * ratio, p.label <= room);
    });
    ctx.restore();
  };
};

bragg.markColor = function (mark) {
  if (mark.run !== undefined) return bragg.color('--c' + mark.run);
  return bragg.color(mark.kind === 'disturbance' || mark.failed ? '--bad' : '--mark');
};

bragg.markLine = function (ctx, bbox, mark, x, top) {
  const ratio = devicePixelRatio;
  ctx.strokeStyle = bragg.markColor(mark);
  ctx.lineWidth = ratio;
  ctx.setLineDash([3 * ratio, 3 * ratio]);
  ctx.globalAlpha = 0.75;
  ctx.beginPath();
  ctx.moveTo(x, top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.globalAlpha = 1;
};

bragg.flag = function (ctx, bbox, { marks, xs, text, flag, left }, y, labelled) {
  const ratio = devicePixelRatio;
  marks.forEach((mark, i) => bragg.markLine(ctx, bbox, mark, xs[i], i ? bbox.top : y + 7 * ratio));
  ctx.fillStyle = bragg.markColor(marks.find(m => m.kind === 'disturbance' || m.failed) || marks[0]);
  ctx.beginPath();
  ctx.roundRect(left, y - 7.5 * ratio, flag, 15 * ratio, 7.5 * ratio);
  ctx.fill();
  ctx.fillStyle = bragg.color('--mark-ink');
  ctx.textAlign = 'center';
  ctx.fillText(bragg.flagText(marks), left + flag / 2, y + 0.5 * ratio);
  if (!labelled) return;
  ctx.fillStyle = bragg.color('--soft');
  ctx.textAlign = 'left';
  ctx.fillText(text, left + flag + 4 * ratio, y + 0.5 * ratio);
};

// marksNear are the events of the flag whose line, or one of whose lines, is within a few pixels of the cursor.
bragg.marksNear = function (u, chart, left) {
  let best = [], distance = 7;
  for (const flag of chart.flags || []) {
    const d = Math.min(...flag.marks.map(m => Math.abs(u.valToPos(m.at, 'x') - left)));
    if (d < distance) { best = flag.marks; distance = d; }
  }
  return best;
};
